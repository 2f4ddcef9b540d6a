"""The texts that go with a claim beside its own: whatever is said there can come out again."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pydantic import JsonValue

from vouchgate.ingest.claims.claim import Claim

CONTENT = "content"
_PLAIN_CHARACTERS = 64  # a UUID has 36
_PLAIN_WORDS = 4  # of letters; a sentence has more
_PLAIN = re.compile(r"[A-Za-z0-9]+(?:[._:@+/-]{1,2}[A-Za-z0-9]+)*|_{1,2}[A-Za-z0-9]+(?:_[A-Za-z0-9]+)*")
_WORD = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]{2,}(?![A-Za-z0-9])")


def texts_of(claim: Claim) -> Iterator[tuple[str, str]]:
    """Where each text stands, by the name of its field, and the text: its own, the citations given beside it, and
    every name and text in `metadata` and `delivery`."""
    yield CONTENT, claim.content
    for number, citation in enumerate(claim.citations):
        yield f"citations[{number}]", citation.value
        if citation.quote:
            yield f"citations[{number}].quote", citation.quote
    if claim.metadata:
        yield from (("metadata", text) for text in texts_in(claim.metadata))
    if claim.delivery is not None:
        yield "delivery.sink", claim.delivery.sink
        yield "delivery.place", claim.delivery.place
        yield from (("delivery.data", text) for text in texts_in(claim.delivery.data))


def is_plain_name(name: str) -> bool:
    """Whether `name` is an identifier, which needs no check: at most 64 ASCII letters, digits and `._:@+/-`, with at
    most four words in it. A UUID, `users/ada` and `favourite_food` are plain; `we_should_really_use_redis` is not."""
    return (
        len(name) <= _PLAIN_CHARACTERS
        and _PLAIN.fullmatch(name) is not None
        and words_in_name(name) <= _PLAIN_WORDS
    )


def words_in_name(name: str) -> int:
    """How many words of letters a name is made of."""
    return len(_WORD.findall(name.replace("_", "-")))


def texts_in(value: JsonValue) -> Iterator[str]:
    """Names and texts in the order in which they are written, however deep they are."""
    to_read = [value]
    while to_read:
        match to_read.pop():
            case str() as text:
                yield text
            case dict() as named:
                to_read += [part for name, each in reversed(named.items()) for part in (each, name)]
            case list() as listed:
                to_read += reversed(listed)
            case _:
                pass
