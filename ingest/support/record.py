"""An architecture decision record as its parts: what it decides, what it weighed, and what follows. Pure, linear.

The templates in use agree on little more than the names of their headings (Nygard: Context, Decision, Consequences;
MADR: Considered Options, Decision Outcome, Pros and Cons of the Options; log4brains and adr-tools: variants of both),
so a part is told by the words of its heading, and what has no such heading belongs to the part around it. An option
that was weighed is not the decision, though it stands in the same record: only `SPEAKING` parts are its own word.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import islice

from vouchgate.ingest.data import read_data
from vouchgate.ingest.language.terms import Kind, Word, words_of

MOST_OPTIONS = 50  # of one record that are looked at; more is no choice but a catalogue
_LONGEST_OPTION = 300  # characters of an option's name
_LONGEST_HEADING = 200


class Part(StrEnum):
    """What a stretch of a record is for."""

    TITLE = "title"
    STATUS = "status"
    CONTEXT = "context"
    DECISION = "decision"
    OPTIONS = "options"
    CONSEQUENCES = "consequences"
    OTHER = "other"  # a heading that says none of these: a plan, an example, a table


SPEAKING = frozenset({Part.TITLE, Part.DECISION, Part.CONSEQUENCES, Part.OTHER})


@dataclass(frozen=True, slots=True)
class Option:
    """One thing that a record weighed. `start` and `end` are offsets in the record's text."""

    name: str
    start: int
    end: int
    words: frozenset[str]  # keys of its content words


@dataclass(frozen=True)
class Record:
    """A record's text as stretches: where each begins, and which part it is of."""

    text: str
    starts: tuple[int, ...]
    parts: tuple[Part, ...]
    title: str
    options: tuple[Option, ...]
    chosen: tuple[Option, ...]  # of the options; empty when the record does not say which, or has none

    def part_at(self, offset: int) -> Part:
        """The part that a place of the text is in."""
        at = bisect_right(self.starts, offset) - 1
        return self.parts[at] if at >= 0 else Part.OTHER

    @cached_property
    def spoken(self) -> str:
        """The text with all blanked out that is not the record's own word, so that offsets stay."""
        pieces = []
        for index, (start, part) in enumerate(zip(self.starts, self.parts, strict=True)):
            end = self.starts[index + 1] if index + 1 < len(self.starts) else len(self.text)
            piece = self.text[start:end]
            pieces.append(piece if part in SPEAKING else _SHOWN.sub(" ", piece))
        return "".join(pieces)

    @cached_property
    def rejected(self) -> tuple[Option, ...]:
        """The options that were not chosen, where one was."""
        return tuple(option for option in self.options if option not in self.chosen) if self.chosen else ()

    def told_as_chosen(self, statement: str) -> Option | None:
        """The rejected option that a statement tells as what was decided: it has every word by which the option
        differs from what was chosen, none by which what was chosen differs from it, and no word of turning down."""
        if not self.rejected:
            return None
        words = tuple(words_of(statement))
        keys = _keys(words)
        chosen = frozenset().union(*(option.words for option in self.chosen))
        if keys & _WORDS.declining or any(word.key.endswith("n't") for word in words):
            return None
        best: Option | None = None
        for option in self.rejected:
            own = option.words - chosen
            others = chosen - option.words
            denied = keys & _WORDS.denials - option.words - chosen
            if (
                own
                and not denied
                and own <= keys
                and not others & keys
                and (best is None or len(own) > len(best.words - chosen))
            ):
                best = option
        if best is None or self._said_of_the_choice(best.words - chosen):
            return None
        return best

    def _said_of_the_choice(self, own: frozenset[str]) -> bool:
        """Whether the title, which names what was decided, has the words too."""
        return own <= _keys(words_of(self.title))


def looks_like_record(text: str) -> bool:
    """Whether a text has at least two of a record's headings, one of which is its decision or its options."""
    found = {part for _, part, _ in _headings(text[:200_000])}
    return bool(found & {Part.DECISION, Part.OPTIONS}) and len(found - {Part.OTHER, Part.TITLE}) >= 2


def read_record(text: str) -> Record:
    """The parts of a record. Any text gives some; one without headings is one stretch of OTHER."""
    starts, parts, titles = [0], [Part.OTHER], []
    stack: list[tuple[int, Part]] = []
    headings: list[tuple[int, int, Part]] = []
    for heading, named, titled in _headings(text):
        part = named
        while stack and stack[-1][0] >= heading.level:
            stack.pop()
        if titled:
            titles.append(heading.name)
        elif part is Part.OPTIONS and _OPTION_PREFIX.match(_MARKUP.sub(r"\1", heading.name)):
            headings.append(
                (heading.start, heading.end, part)
            )  # "Option 2: Vector" is one, not a list of them
        elif part is Part.OTHER and stack:
            part = stack[-1][1]
            headings.append((heading.start, heading.end, part))
        if not titled:
            stack.append((heading.level, part))
        starts.append(heading.start)
        parts.append(part)
        if titled:
            starts.append(heading.end)
            parts.append(Part.OTHER)
    title = titles[0] if titles else ""
    options = tuple(_options(text, starts, parts, headings))
    return Record(
        text, tuple(starts), tuple(parts), title, options, _chosen(text, title, options, starts, parts)
    )


@dataclass(frozen=True, slots=True)
class _Heading:
    name: str
    level: int
    start: int
    end: int


_HEADING = re.compile(
    r"^(?:(?P<marks>#{1,6}|={1,6})[ \t]{1,4}(?P<name>[^\n]{1,200}?)[ \t#=]{0,20}$"
    r"|(?P<bold>\*\*[^*\n]{2,80}\*\*:?)[ \t]{0,20}$"
    r"|(?P<over>[^\s#>*+|=~`-][^\n]{1,199})\n(?P<line>=|-|~|\^|\"){3,200}[ \t]{0,20}$)",
    re.MULTILINE,
)
# "**Decision:** Logs are kept …", in a record whose parts are paragraphs.
_LABEL = re.compile(r"^\*\*(?P<label>[^*\n:]{2,40})(?::\*\*|\*\*:)(?=[ \t]{1,4}\S)", re.MULTILINE)
_NUMBERED = re.compile(r"^(?:adr[-_ ]?)?\[?\d{1,6}\]?[.:)]?(?:\s+[-–—:]\s*|\s+)", re.IGNORECASE)
_SHOWN = re.compile(r"[^\n]")
_FENCE = re.compile(r"^ {0,3}(```|~~~)", re.MULTILINE)


def _headings(text: str) -> Iterator[tuple[_Heading, Part, bool]]:
    """Headings in order with the part that each begins, and whether it is the title: the first one that names no
    part. Those in fenced code are none."""
    fences = _fences(text)
    seen = False
    labels = [match for match in _LABEL.finditer(text) if _part_of(match["label"]) is not Part.OTHER]
    if all(_part_of(match["label"]) is not Part.DECISION for match in labels):
        labels = []
    for match in sorted((*_HEADING.finditer(text), *labels), key=re.Match.start):
        if bisect_right(fences, match.start()) % 2:
            continue
        if match.re is _LABEL:
            seen = True
            yield _Heading(match["label"], 7, match.start(), match.end()), _part_of(match["label"]), False
            continue
        name = match["name"] or match["bold"] or match["over"] or ""
        marks = match["marks"]
        level = len(marks) if marks else 7 if match["bold"] else {"=": 1, "-": 2}.get(match["line"] or "", 3)
        name = name.strip(" *:#`")[:_LONGEST_HEADING]
        part = _part_of(name)
        titled = not seen and part is Part.OTHER and level < 7
        seen = seen or titled or part is not Part.OTHER
        if titled:
            name, part = _NUMBERED.sub("", name), Part.TITLE
        yield _Heading(name, level, match.start(), match.end()), part, titled


def _fences(text: str) -> list[int]:
    """Where fences of code begin and end, by turns. Tildes as long as the line above them underline it."""
    found: list[int] = []
    opened = ""
    for match in _FENCE.finditer(text):
        if opened:
            if match[1] != opened:
                continue
            opened = ""
        elif match[1] == "~~~" and _underlines(text, match.start()):
            continue
        else:
            opened = match[1]
        found.append(match.start())
    return found


def _underlines(text: str, start: int) -> bool:
    end = text.find("\n", start)
    line = text[start : end if end >= 0 else len(text)].rstrip()
    above = text[text.rfind("\n", 0, max(0, start - 1)) + 1 : start].strip()
    return bool(above) and not line.strip("~") and len(line) >= len(above)


def _part_of(name: str) -> Part:
    plain = re.sub(r"[^a-z ]+", " ", name.lower()).split()
    words = " ".join(plain[:8])
    for part, phrases in _WORDS.headings:
        if any(words == phrase or words.startswith(phrase + " ") for phrase in phrases):
            return part
    return Part.OTHER


_ITEM = re.compile(r"^ {0,3}(?:[-*+]|\d{1,3}[.)])[ \t]{1,4}(?P<item>[^\n]+)", re.MULTILINE)
_MARKUP = re.compile(r"\[([^\]\n]{0,200})\]\([^)\n]{0,500}\)|[*_`\[\]]")
# Where an option's name ends and what is said of it begins.
_NAME_END = re.compile(r"\s(?:[–—-]|--)\s|:\s|,\s(?:because|which)\b|\.\s|\s\(")
_OPTION_PREFIX = re.compile(
    r"^(?:option|alternative|solution|variant|approach)\s{0,2}(?:\d{1,2}|[a-z])?\s{0,2}[.:)–—-]\s*",
    re.IGNORECASE,
)


def _options(
    text: str, starts: list[int], parts: list[Part], headings: list[tuple[int, int, Part]]
) -> Iterator[Option]:
    """The options a record lists, each once: items of its list of options, and the headings under it."""
    seen: set[frozenset[str]] = set()
    found = 0
    for start, end in _named_options(text, starts, parts, headings):
        name = _plain(text[start:end])
        words = _keys(words_of(name))
        if not words or words in seen:
            continue
        seen.add(words)
        yield Option(name, start, end, words)
        found += 1
        if found >= MOST_OPTIONS:
            return


def _named_options(
    text: str, starts: list[int], parts: list[Part], headings: list[tuple[int, int, Part]]
) -> Iterator[tuple[int, int]]:
    listed = False
    within = {start for start, _, _ in headings}
    for index, (start, part) in enumerate(zip(starts, parts, strict=True)):
        end = starts[index + 1] if index + 1 < len(starts) else len(text)
        line = text.find("\n", start, end)
        if part is not Part.OPTIONS or start in within:
            continue
        for match in _ITEM.finditer(text, line if line >= 0 else end, end):
            first = match.start("item")
            item = match["item"][:_LONGEST_OPTION]
            cut = _NAME_END.search(item, 2)
            listed = True
            yield first, first + (cut.start() if cut else len(item))
    if not listed:
        for start, end, part in headings:
            if part is Part.OPTIONS:
                yield start, end


_CHOSEN = re.compile(
    r"(?:chosen|selected|preferred)\s{1,4}(?:option|alternative|solution)s?\b[*_]{0,2}\s{0,4}[:=]?[*_]{0,2}\s{0,4}"
    r"(?P<name>[^\n]{2,300})"
    r"|(?:we|it was)\s(?:have\s|has\s)?(?:decided|chose|choose|will\suse|agreed|opted|go|went)\b"
    r"(?P<decided>[^\n]{2,300})",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"[\"“'‘](.{2,200}?)[\"”'’](?=\W|$)")


def _chosen(
    text: str, title: str, options: tuple[Option, ...], starts: list[int], parts: list[Part]
) -> tuple[Option, ...]:
    """The options that were decided for: those the sentence of the choice names, else the one the title does."""
    if not options:
        return ()
    for index, (start, part) in enumerate(zip(starts, parts, strict=True)):
        if part is not Part.DECISION:
            continue
        end = starts[index + 1] if index + 1 < len(starts) else len(text)
        for match in islice(_CHOSEN.finditer(text, start, end), MOST_OPTIONS):
            said = _plain(match["name"] or match["decided"])
            quoted = _QUOTED.search(said)
            for candidate in ([quoted[1]] if quoted else []) + [
                re.split(r",? because\b|\. ", said, maxsplit=1)[0]
            ]:
                if named := _nearest(candidate, options):
                    return named
    return _nearest(title, options)


def _nearest(said: str, options: tuple[Option, ...]) -> tuple[Option, ...]:
    """The options that a text names: all whose words it has, else the one that shares most, if one does."""
    keys = _keys(words_of(said))
    whole = [option for option in options if option.words <= keys]
    if whole:
        longest = [o for o in whole if not any(o.words < other.words for other in whole)]
        return tuple(longest)
    ranked = sorted(options, key=lambda option: -len(option.words & keys) / len(option.words | keys))
    first, *rest = ranked
    share = len(first.words & keys) / len(first.words | keys)
    if share < 0.3 or (rest and len(rest[0].words & keys) / len(rest[0].words | keys) >= share):
        return ()
    return (first,)


def _plain(text: str) -> str:
    return _OPTION_PREFIX.sub("", " ".join(_MARKUP.sub(r"\1", text).strip(" #=").split()))


def _keys(words: Iterator[Word] | tuple[Word, ...]) -> frozenset[str]:
    return frozenset(word.key for word in words if word.kind is not Kind.FUNCTION or _denies(word.key))


def _denies(key: str) -> bool:
    return key in _WORDS.denials or key.endswith("n't")


@dataclass(frozen=True, slots=True)
class _Words:
    headings: tuple[tuple[Part, tuple[str, ...]], ...]
    declining: frozenset[str]
    denials: frozenset[str]


def _load() -> _Words:
    raw = read_data("record.toml")
    headings = tuple((Part(part), tuple(phrases)) for part, phrases in raw["headings"].items())
    declining = frozenset(word.key for phrase in raw["declining"] for word in words_of(phrase))
    return _Words(headings, declining, frozenset(raw["denials"]))


# A constant read once from the package's own data file.
_WORDS = _load()
