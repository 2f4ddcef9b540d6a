"""Does the claim hold text that nobody sees? Models read it all the same: tag characters spell whole sentences, and
marks that turn the order around show a reader another text than is stored.

What nobody sees is in `ingest.language.unseen`, which the pages name such characters by.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pydantic import JsonValue

from vouchgate.ingest.check import Check, ReadClaim
from vouchgate.ingest.claims.claim import Finding, Span, Verdict
from vouchgate.ingest.claims.texts import CONTENT, texts_of
from vouchgate.ingest.language.unseen import code_point, hidden_in, spelled_by

CHECK = "hidden"
CODE = "hidden_text"
_MOST_NAMED = 8  # code points of one field
_MOST_SPELLED = 80  # characters of what they spell
_MOST_FIELDS = 5
_MOST_SPANS = 50

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f]")


def judge(read: ReadClaim) -> Iterator[Finding]:
    """DOUBT `hidden_text` for a claim with such characters in its text, in a citation given beside it, in its metadata
    or in where it is to be delivered; else nothing. `facts["found"]` has of each field how many characters, which they
    are and what they spell."""
    found: dict[str, list[str]] = {}
    spans: list[Span] = []
    for where, text in texts_of(read.claim):
        if text.isascii() and (text.isprintable() or _CONTROL.search(text) is None):
            continue
        for start, end in hidden_in(text):
            found.setdefault(where, []).append(text[start:end])
            if where == CONTENT and len(spans) < _MOST_SPANS:
                spans.append(Span(start=start, end=end))
    if found:
        yield _finding({where: "".join(parts) for where, parts in found.items()}, spans)


def _finding(found: dict[str, str], spans: list[Span]) -> Finding:
    told: list[str] = []
    facts: list[JsonValue] = []
    for where, characters in list(found.items())[:_MOST_FIELDS]:
        points = [code_point(each) for each in dict.fromkeys(characters)]
        named = ", ".join(points[:_MOST_NAMED]) + (", …" if len(points) > _MOST_NAMED else "")
        spelled = spelled_by(characters)[:_MOST_SPELLED]
        spells = f", which spell “{spelled}”" if spelled else ""
        count = f"{len(characters):,} character{'s' if len(characters) > 1 else ''}"
        told.append(f"{count} in {'its text' if where == CONTENT else where} ({named}){spells}")
        facts.append(
            {
                "where": where,
                "characters": len(characters),
                "code_points": [*points[:_MOST_NAMED]],
                "spelled": spelled,
            }
        )
    more = f"; and in {len(found) - _MOST_FIELDS} fields more" if len(found) > _MOST_FIELDS else ""
    return Finding(
        check=CHECK,
        verdict=Verdict.DOUBT,
        code=CODE,
        message=f"The claim holds what nobody sees: {'; '.join(told)}{more}.",
        spans=tuple(spans),
        facts={"found": facts},
    )


CHECKS = (Check(name=CHECK, title="Hidden text", codes={CODE: Verdict.DOUBT}, order=12, judge=judge),)
