"""What a document refers to, and where: links, addresses, records, commits, paths; notes and numbers with their
entries."""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from vouchgate.ingest.citations import detect_citations, given_citation, parse_citation
from vouchgate.ingest.claims.citation import Citation, CitationType
from vouchgate.ingest.documents.classify import WANTED
from vouchgate.ingest.documents.layout import Flow, FlowKind, Layout, Mark, MarkKind
from vouchgate.ingest.documents.types import Reference, Span, Unreadable

_LONGEST_ENTRY = 1000  # characters; what is longer is text, whatever number it begins with
_MOST_NUMBERS = 50  # of one reference such as [3-7]
_MOST_RESOLVED = (
    200_000  # sources behind the notes and numbers of a document; LARGEST holds no more in earnest
)
_NO_SOURCE = re.compile(r"(?:mailto|tel|javascript|data|about):|#|\Z", re.IGNORECASE)
_APART = "|"  # stands in no citation of any kind
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,30}:")
_NOTE = re.compile(r"\[\^([^\]\s\[]{1,100})\]|\[([1-9]\d{0,3}|#[\w-]{1,50}|[A-Z][\w-]{1,50})\]_(?!\w)")
_NUMBERED = re.compile(r"\[([1-9]\d{0,3}(?:\s?[,;–-]\s?[1-9]\d{0,3}){0,20})\](?![(\w:])")
_ENTRY = re.compile(r"\[([1-9]\d{0,3})\][.:]?\s+(?=\S)")
_RANGE = re.compile(r"(\d+)\s?[–-]\s?(\d+)|(\d+)")
_CITING = re.compile(r"[/\d]")  # every citation has one of these
_NAME = re.compile(r"[`\s]*(?:[^\s`\[\]:]+/[^\s`\[\]/][^\s`\[\]]*|[0-9a-fA-F]{7,40})[`\s]*")  # in code
_QUOTED = re.compile(r"[\"“”‘'«]\[\^?[\w ,;–-]{1,50}\]_?[\"“”’'»]")  # a reference that is spoken of
_LINES = re.compile(r"#L\d")
_PLAIN_PLACE = re.compile(r"[#?].*\Z", re.DOTALL)


@dataclass(slots=True)
class Entry:
    """What a note or a number stands for: a footnote, or a line of a list of references."""

    label: str
    start: int
    end: int
    references: list[Reference] = field(default_factory=list)
    used: bool = False


@dataclass(slots=True)
class Found:
    """Everything in a document that refers to something, in order. `entries` has the first of each label, a note's with
    `^` before it; `numerals` are where notes, numbers and the labels of entries stand: none of them is a word."""

    references: list[Reference]
    entries: dict[str, Entry]
    repeated: list[Entry]  # entries whose label is taken already
    listing: set[int]  # flows, by number, that are lists of sources
    wanted: list[Span]  # where the writer asks for a source
    numerals: list[Span]


def find_references(text: str, layout: Layout, listing: set[int], name: str = "") -> Found:
    """The references of a document. `listing` are the flows, by number, that stand under the heading of a list of
    sources; `name` is its path in its repository, from which links to other files lead."""
    seen = _seen_text(text, layout.flows)
    direct = sorted((*_links(text, layout.flows, name), *_cited(seen, layout.flows)), key=_place)
    found = Found([], {}, [], set(listing), [match.span() for match in WANTED.finditer(seen)], [])
    numbered = list(_NUMBERED.finditer(seen))
    _find_entries(seen, layout.flows, numbered, found)
    _fill(direct, [*found.entries.values(), *found.repeated])
    begun = {start for start, _ in found.numerals}
    resolved: list[Reference] = []
    for note in _NOTE.finditer(seen):
        _resolve(text, note.span(), ["^" + (note[1] or note[2].lstrip("#"))], found, resolved)
    for match in numbered:
        if match.start() not in begun and _refers(seen, match, found.entries):
            _resolve(text, match.span(), _numbers(match[1]), found, resolved)
    found.references = sorted((*direct, *resolved), key=_place)
    return found


def _place(reference: Reference) -> Span:
    return reference.start, reference.end


def _fill(direct: list[Reference], entries: list[Entry]) -> None:
    """Gives each entry the references in it, each source once."""
    starts = [reference.start for reference in direct]
    for entry in entries:
        within = direct[bisect_left(starts, entry.start) : bisect_left(starts, entry.end)]
        entry.references = list({one.target: one for one in within}.values())


def _resolve(text: str, span: Span, labels: list[str], found: Found, resolved: list[Reference]) -> None:
    """Adds what notes or numbers that stand at `span` refer to. Raises Unreadable where that is more than anybody could
    mean: a few notes of many sources, cited again and again, would fill the memory."""
    found.numerals.append(span)
    missing = False
    for label in labels:
        entry = found.entries.get(label)
        if entry is None:
            missing = True
            continue
        entry.used = True
        resolved += (Reference(*span, one.target, one.citation) for one in entry.references)
        if not entry.references:
            resolved.append(Reference(*span, " ".join(text[entry.start : entry.end].split()), None))
    if missing:
        resolved.append(Reference(*span, text[slice(*span)], None, dangling=True))
    if len(resolved) > _MOST_RESOLVED:
        raise Unreadable(f"its notes and numbers stand for more than {_MOST_RESOLVED} sources")


def _refers(seen: str, match: re.Match[str], entries: dict[str, Entry]) -> bool:
    """Whether a number between brackets refers to an entry, and is no index or year."""
    if any(number in entries for number in _numbers(match[1])):
        return True
    before = seen[match.start() - 1 : match.start()]
    return not (before.isalnum() or before in ("_", "]", ")") or len(match[1]) == len("2000"))


def _numbers(written: str) -> list[str]:
    """The numbers of `3`, `3, 5` and `3-5`."""
    if written.isdecimal():
        return [written]
    numbers: dict[str, None] = {}
    for first, last, single in _RANGE.findall(written):
        low, high = (int(single), int(single)) if single else (int(first), int(last))
        numbers |= dict.fromkeys(str(number) for number in range(low, min(high, low + _MOST_NUMBERS) + 1))
    return list(numbers)


def _find_entries(seen: str, flows: list[Flow], numbered: list[re.Match[str]], found: Found) -> None:
    begins = {start for flow in flows for start, _ in flow.lines} if numbered else set()
    cited = {number for match in numbered if match.start() not in begins for number in _numbers(match[1])}
    note: Entry | None = None
    for index, flow in enumerate(flows):
        end = flow.lines[-1][1]
        if flow.kind is FlowKind.NOTE:
            if note is not None and note.label == f"^{flow.label}" and flows[index - 1].block == flow.block:
                note.end = end  # another paragraph of it
            else:
                note = _add(found, f"^{flow.label}", flow.lines[0][0], end)
            continue
        begun = [
            match
            for start, stop in flow.lines
            if seen.startswith("[", start)
            and (match := _ENTRY.match(seen, start, stop))
            and (index in found.listing or match[1] in cited)
        ]
        for match, stop in zip(begun, [*(one.start() for one in begun[1:]), end], strict=False):
            _add(found, match[1], match.end(), min(stop, match.end() + _LONGEST_ENTRY))
            found.numerals.append((match.start(), match.end()))
        if begun and begun[0].start() == flow.lines[0][0]:
            found.listing.add(index)
        if not begun and index in found.listing and flow.label.isdecimal():
            _add(found, str(int(flow.label)), flow.lines[0][0], min(end, flow.lines[0][0] + _LONGEST_ENTRY))


def _add(found: Found, label: str, start: int, end: int) -> Entry:
    entry = Entry(label, start, end)
    if label in found.entries:
        found.repeated.append(entry)
    else:
        found.entries[label] = entry
    return entry


def _seen_text(text: str, flows: Iterable[Flow]) -> str:
    """The text with everything blanked out in which no citation is looked for: code, but for the name of a file or a
    commit alone, which people write so; a number that is quoted; destinations and words of links; what no reader
    sees."""
    visible: list[Span] = []
    for flow in flows:
        if flow.kind is FlowKind.CODE:
            continue
        hidden = sorted(
            (mark.start, mark.end)
            for mark in flow.marks
            if mark.kind in (MarkKind.LINK, MarkKind.HIDDEN)
            or (mark.kind is MarkKind.CODE and _NAME.fullmatch(text, mark.start, mark.end) is None)
        )
        number = 0
        for start, end in flow.lines:
            at = start
            while number < len(hidden) and hidden[number][0] < end:
                visible.append((at, hidden[number][0]))
                at = max(at, hidden[number][1])
                number += 1
            visible.append((at, end))
    pieces: list[str] = []
    at = 0
    for start, end in sorted(visible):
        if start >= at and end > start:
            pieces += (_APART * (start - at), text[start:end])
            at = end
    pieces.append(_APART * (len(text) - at))
    return _QUOTED.sub(lambda quoted: _APART * len(quoted[0]), "".join(pieces))


def _links(text: str, flows: Iterable[Flow], name: str) -> Iterator[Reference]:
    for flow in flows:
        for mark in flow.marks:
            if mark.kind is MarkKind.LINK and not _NO_SOURCE.match(mark.target) and _shows(text, flow, mark):
                citation = _citation(mark.target, text[slice(*mark.shown)], name)
                yield Reference(mark.start, mark.end, mark.target, citation)


def _shows(text: str, flow: Flow, link: Mark) -> bool:
    """Whether there are words on a link, or it is bare. One on a picture only (a badge) cites nothing."""
    if link.shown[0] == link.shown[1]:
        return True
    words = text[slice(*link.shown)].strip()
    return bool(words) and not words.startswith(("![", "<img"))


def _citation(target: str, shown: str, name: str) -> Citation | None:
    """What a link points at, as the checks know it. One to another file is taken by its words when these are a citation
    ("[ADR-5](0005-oak.md)"), else by the path of that file in the repository."""
    try:
        if _SCHEME.match(target) or target.startswith("//"):
            return given_citation(CitationType.URL, target)
        cited = detect_citations(shown)
        if len(cited) == 1 and cited[0].value == shown.strip("`*_ "):
            return _beside(cited[0])
        place = target if _LINES.search(target) else _PLAIN_PLACE.sub("", target)
        folder = "" if place.startswith("/") else posixpath.dirname(name.replace("\\", "/"))
        return given_citation(
            CitationType.PATH, posixpath.normpath(posixpath.join(folder, place.lstrip("/")))
        )
    except ValueError:
        try:
            return parse_citation(target) if len(target) < 300 else None
        except ValueError:
            return None


def _cited(seen: str, flows: Iterable[Flow]) -> Iterator[Reference]:
    """What is cited in so many words. Each flow is searched by itself: most kinds have a sign that few flows have."""
    for flow in flows:
        first, last = flow.lines[0][0], flow.lines[-1][1]
        if flow.kind is FlowKind.CODE or _CITING.search(seen, first, last) is None:
            continue
        for citation in detect_citations(seen[first:last]):
            if citation.start is not None and citation.end is not None:
                span = first + citation.start, first + citation.end
                yield Reference(*span, citation.value, _beside(citation))


def _beside(citation: Citation) -> Citation:
    """The citation as one that is given beside a claim: it has no place in the claim's text."""
    return Citation(type=citation.type, value=citation.value, key=citation.key)
