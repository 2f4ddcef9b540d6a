"""The words of a cited address that its page does not have: what an agent writes there is content.

"See https://site/page#Root-passwords-are-shared-with-Mallory" says something, and a server may answer any path or query
with the same page. So what stands after the host is read as words, however it is written: percent-encoded, joined by
signs, by capitals or by nothing. Those that neither title nor text of the page has, and that together say something,
are a statement that nothing covers. An ordinary slug has its words in title or text. Where a server redirects to does
not excuse them: it may repeat what it was asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from urllib.parse import unquote, urlsplit

from vouchgate.ingest.claims.citation import Citation, CitationType
from vouchgate.ingest.data import read_data
from vouchgate.ingest.language.stems import stem
from vouchgate.ingest.language.terms import LISTS
from vouchgate.ingest.language.words import RUN

SAYS = 2  # words of one part of an address, missing on its page, from which on it says something
SAYS_IN_ALL = 3  # and of all its parts together, of which each may have one
NAMED = 12  # words that are kept
_DECODINGS = 3  # times that an address is percent-decoded: encoded twice is readable still
_LONGEST = 2_048  # characters of an address that are read, as many as a citation may have
_LEAST = 4  # letters of a word that tells something in a path, where labels of sites stand
_LEAST_BESIDE = 3  # and in a query or a fragment, whose words an honest one has from its page
# Letters in a row that are several words written together; no English word in use is as long.
_RUN_TOGETHER = 20
_DIRECTIVE = ":~:"  # from here on a fragment tells a browser what to mark; text=... is a quotation
_EXTENSION = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,4}$")
_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\dA-Za-z_]+")
_HEX = re.compile(r"(?=[a-f]*[0-9])[0-9a-f]{6,}|[0-9a-f]{12,}", re.IGNORECASE)
_ID_PIECE = 4  # letters that pieces of letters and digits have on average, unless they were made by chance


def unsaid(
    citations: Sequence[Citation], title: str, text: str, lowered: str | None = None
) -> tuple[str, ...]:
    """The words of the addresses that these citations of one page give, as written, that neither title nor text has,
    when together they say something; else none. At most NAMED. The text in small letters may be known already as
    `lowered`. Linear in both."""
    addresses = [citation.value for citation in citations if citation.type == CitationType.URL]
    parts = [words for address in addresses for words in _parts(address[:_LONGEST])]
    if not any(parts):
        return ()
    pages = (title.lower(), text.lower() if lowered is None else lowered)
    missing = [[word for word in words if not any(_has(page, word) for page in pages)] for words in parts]
    saying = [
        lacks
        for words, lacks in zip(parts, missing, strict=True)
        if _weight(lacks) >= SAYS and 2 * len(lacks) > len(words)
    ]
    every = [word for lacks in missing for word in lacks]
    if not saying and not (_weight(every) >= SAYS_IN_ALL and 2 * len(every) > sum(map(len, parts))):
        return ()
    named = [word for lacks in (saying or [every]) for word in lacks]
    return tuple(dict.fromkeys(named))[:NAMED]


def _weight(words: Sequence[str]) -> int:
    return sum(2 if len(word) >= _RUN_TOGETHER else 1 for word in words)


def _has(page: str, word: str) -> bool:
    """Whether a page, in small letters, has a word or another form of it."""
    low = word.lower()
    return low in page or re.search(rf"\b{re.escape(stem(low))}", page) is not None


def _parts(address: str) -> Iterator[list[str]]:
    """The telling words of each part of an address: who signs in, every segment of the path, every value of the query
    with its name, the fragment."""
    try:
        split = urlsplit(address)
    except ValueError:
        yield _words(address, _LEAST_BESIDE)
        return
    yield _words(split.netloc.rpartition("@")[0], _LEAST_BESIDE)
    *folders, last = _decoded(split.path).split("/")
    for segment in (*folders, _EXTENSION.sub("", last)):
        yield _words(segment, _LEAST)
    for pair in _decoded(split.query).replace(";", "&").split("&"):
        yield _words(pair.replace("+", " "), _LEAST_BESIDE)
    yield _words(_spoken(split.fragment), _LEAST_BESIDE)


def _spoken(fragment: str) -> str:
    """A fragment without its text directives, which are quotations and looked up as such."""
    own, found, directives = fragment.partition(_DIRECTIVE)
    others = [each for each in directives.split("&") if not each.startswith("text=")] if found else []
    return _decoded(" ".join((own, *others)))


def _decoded(text: str) -> str:
    for _ in range(_DECODINGS):
        plain = unquote(text)
        if plain == text:
            break
        text = plain
    return text


def _words(text: str, least: int) -> list[str]:
    """The words that tell something, each once. No numbers, hashes and identifiers made by chance, and no labels that
    are in the addresses of any site."""
    found: dict[str, str] = {}
    for chunk in RUN.findall(text):
        if _HEX.fullmatch(chunk):
            continue
        pieces = _PIECE.findall(chunk)
        letters = sum(map(len, pieces))
        if letters < len(chunk) and letters < _ID_PIECE * len(pieces):
            continue
        for piece in pieces:
            if _tells(piece, least):
                found.setdefault(piece.lower(), piece)
    return list(found.values())


def _tells(word: str, least: int) -> bool:
    low = word.lower()
    return len(low) >= (least if low.isascii() else 1) and low not in LISTS.function and low not in _LABELS


# A constant read once from the package's own data file.
_LABELS = frozenset(read_data("support.toml")["address"]["labels"])
