"""Finds citations of every type in a text, and reads the ones given on their own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from vouchgate.ingest.citations import kinds
from vouchgate.ingest.citations.kinds import CitationKind, FoundCitation, KindError, url
from vouchgate.ingest.claims.citation import Citation, CitationType
from vouchgate.ingest.language.normalise import plain_signs
from vouchgate.ingest.language.spelling import nearest_name
from vouchgate.ingest.parts import parts_of

# Those of the files in `kinds/`; no two accept the same string as a whole.
BUILT_IN: tuple[CitationKind, ...] = tuple(parts_of(kinds, "KIND"))
_MAY_CITE = re.compile(r"[0-9/(]|symbol:|\.[a-z]")  # every type has one of these
_FIRST = re.compile(r"[A-Za-z]{2,8}(?=[^A-Za-z])")
_MASK = "\0"  # stands for a character of a URL: neither a letter nor a space to the rules


class _InUse:
    """The kinds of this process: which there are is a matter of the installation, not of a claim."""

    def __init__(self) -> None:
        self.use(())

    def use(self, added: Iterable[CitationKind]) -> None:
        self.every = (*BUILT_IN, *added)
        self.in_text = tuple(kind for kind in self.every if kind is not url.KIND)
        self.labels = {str(kind.name): kind.label for kind in self.every}


_KINDS = _InUse()


def install(added: Iterable[CitationKind]) -> None:
    """Uses these kinds beside those that are built in, and no others. Raises KindError for a name that is taken, and
    for one that does not find its own example."""
    added = tuple(added)
    taken = {kind.name for kind in BUILT_IN}
    for kind in added:
        if kind.name in taken:
            raise KindError(f"there are two kinds of citation called {kind.name!r}")
        taken.add(kind.name)
    _KINDS.use(())
    for kind in added:
        _try(kind)
    _KINDS.use(added)


def _try(kind: CitationKind) -> None:
    example = kind.forms[0]
    sentence = f"As {example} says, it is so."
    try:
        found = [sentence[one.start : one.end] for one in kind.find(sentence)]
        key = kind.whole(example)
        Citation(type=kind.name, value=example, key=key or "")
    except Exception as error:
        raise KindError(f"the kind of citation {kind.name!r} is broken: {error}") from error
    if found != [example] or key is None or not key.startswith(f"{kind.name}:"):
        raise KindError(f"the kind of citation {kind.name!r} does not find its example {example!r}")
    others = [one for one in detect_citations(sentence) if one.value == example]
    if others:
        raise KindError(f"the example of the kind {kind.name!r} is one of {others[0].type} already")


def kinds_in_use() -> frozenset[str]:
    """The type of every citation that is looked for."""
    return frozenset(_KINDS.labels)


def label_of(kind: str) -> str:
    """What people call a thing of this kind; its name, where it is not known here any more."""
    return _KINDS.labels.get(kind, kind)


class TooManyCitations(ValueError):
    """A text names more things than will be looked at."""


def detect_citations(text: str, most: int | None = None) -> tuple[Citation, ...]:
    """Every citation in the text, by position; none overlap, and a repeated one is there again.

    Offsets are characters of the text as sent, and `value` is exactly what stands there. What stands inside
    a URL is part of the URL. Takes time linear in the length of the text and never raises.

    With `most`, raises TooManyCitations for a text in which one kind finds more than so many; it is then not
    searched to its end.
    """
    citations: list[Citation] = []
    masked = text
    if "://" in text:
        urls = list(_at_most(url.KIND.find(text), most))
        citations = [_citation(text, CitationType.URL, *found) for found in urls]
        masked = _mask(masked, [found[:2] for found in urls])
        masked = _mask(masked, url.other_schemes(masked))
    folded = plain_signs(masked)
    if _MAY_CITE.search(folded.text):
        for kind, found in _without_overlaps(folded.text, most):
            start, end = folded.span(found.start, found.end)
            citations.append(_citation(text, kind.name, start, end, found.key))
        citations.sort(key=lambda citation: citation.start or 0)
    return tuple(citations)


def given_citation(type: str, value: str) -> Citation:  # noqa: A002  (the API's own word)
    """A citation given beside the claim, with its type. White space around it does not count.

    Bare forms do once the type is known: "3" is an ADR, "12" an issue. Raises ValueError, with a sentence
    for the caller, unless the value is exactly one well-formed citation of that type.
    """
    kind = next((kind for kind in _KINDS.every if kind.name == type), None)
    if kind is None:
        known = ", ".join(_KINDS.labels)
        raise ValueError(
            f"{_quote_value(type)} is no kind of citation that is known here; known are {known}."
        )
    stripped = value.strip()
    key = kind.bare(_readable(kind, stripped))
    if key is None:
        raise ValueError(
            f"{_quote_value(stripped)} is not one {type} citation; write it like {', '.join(kind.forms)}."
        )
    return _made(kind.name, stripped, key)


def parse_citation(value: str) -> Citation:
    """A citation given without its type, like an argument of the command line. Bare hex is a commit.

    Raises ValueError, naming the accepted forms, unless the value is exactly one citation.
    """
    stripped = value.strip()
    for kind in _KINDS.every:
        key = kind.whole(_readable(kind, stripped))
        if key is not None:
            return _made(kind.name, stripped, key)
    forms = "; ".join(kind.forms[0] for kind in _KINDS.every)
    raise ValueError(
        f"{_quote_value(stripped)} is not one citation{_meant(stripped)}; accepted forms: {forms}."
    )


def _made(type_: str, value: str, key: str) -> Citation:
    return Citation(type=type_, value=value, key=key)


def _citation(text: str, type_: str, start: int, end: int, key: str) -> Citation:
    return Citation(type=type_, value=text[start:end], key=key, start=start, end=end)


def _readable(kind: CitationKind, value: str) -> str:
    """The value as the kind reads it. A URL's characters are its own: folding would name another page."""
    return value if kind is url.KIND else plain_signs(value).text


def _meant(value: str) -> str:
    """The citation that a slip in the first letters may have been meant for (`RCF 9110`); empty when there is none."""
    first = _FIRST.match(value)
    if first is None:
        return ""
    known = [needle for kind in _KINDS.every for needle in kind.needles if needle.isalpha()]
    nearest = nearest_name(first.group(), known)
    meant = f"{(nearest or '').upper()}{value[first.end() :]}"
    found = nearest is not None and any(kind.whole(_readable(kind, meant)) for kind in _KINDS.every)
    return f" (did you mean {meant}?)" if found else ""


def _quote_value(value: str) -> str:
    """The value for an error sentence: quoted, and cut when long."""
    return ascii(value if len(value) <= 80 else value[:80] + "...")


def _at_most(found: Iterable[FoundCitation], most: int | None) -> Iterator[FoundCitation]:
    for count, one in enumerate(found):
        if most is not None and count >= most:
            raise TooManyCitations(f"the text holds more than {most} citations of one type")
        yield one


def _without_overlaps(folded: str, most: int | None) -> list[tuple[CitationKind, FoundCitation]]:
    """What the rules find, by position. Of two that overlap the earlier counts, then the longer."""
    lower = folded.lower()
    candidates: list[tuple[CitationKind, FoundCitation]] = []
    for kind in _KINDS.in_text:
        for needle in kind.needles or ("",):
            if needle in lower:
                candidates += [(kind, found) for found in _at_most(kind.find(folded), most)]
                break
    candidates.sort(key=lambda candidate: (candidate[1].start, -candidate[1].end))
    kept: list[tuple[CitationKind, FoundCitation]] = []
    for kind, found in candidates:
        if not kept or found.start >= kept[-1][1].end:
            kept.append((kind, found))
    return kept


def _mask(text: str, spans: Iterable[tuple[int, int]]) -> str:
    pieces: list[str] = []
    position = 0
    for start, end in spans:
        pieces += (text[position:start], _MASK * (end - start))
        position = end
    return "".join((*pieces, text[position:])) if pieces else text
