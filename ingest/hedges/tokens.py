"""A normalised text as words: what the phrases and the rules of hedge detection look at.

Only prose becomes words. A chunk that is a name, a path, a flag, a URL or a call becomes a blank that no phrase
reads across. Marks that end a clause or a sentence become words of their own: `,` `.` `?`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from functools import cached_property

from vouchgate.ingest.hedges.literals import Interval
from vouchgate.ingest.language.sentences import ABBREVIATIONS
from vouchgate.ingest.language.words import PROSE, RUN

BLANK = "_"  # stands for a chunk that is not prose

_LEADING = "\"'([{—`"
_TRAILING = "\"')]}—,.:;!?-`"
_NUMBER = re.compile(
    r"(?P<tilde>~)?(?:[$€£]|USD|EUR)?(?P<value>\d[\d,_]*(?:\.\d+)?)(?:-\d[\d,]*(?:\.\d+)?)?"
    r"(?P<unit>[kmgtb]|%|x|[mun]?s|[kmgt]i?b(?:ps)?|min|mins|hrs?|h|d|secs?|st|px|loc|[ap]m)?\+?(?:/\w{1,8})?",
    re.IGNORECASE,
)
_TILDE_UNIT = re.compile(r"~\d[\d,_]*(?:\.\d+)?(?:-?[a-zA-Z%]{1,12})?(?:/\w{1,8})?")
_ROUGH_NUMBER = re.compile(r"\d[\d,.]*-?(?P<kind>ish|odd)", re.IGNORECASE)
_LEET = re.compile(r"(?=[a-z0-9!|@$+']*[a-z][a-z0-9!|@$+']*[a-z])[a-z0-9!|@$+']{4,16}")
# What a digit or sign stands for; a one is an i or an l.
_LETTERS = tuple(str.maketrans("0134579!|@$+8", f"o{one}eastg{one}{one}astb") for one in "il")
_JOINT = re.compile(r"[,;!?—]|\.{2,}|--")
_TAILS = frozenset({"t", "m", "d", "s", "ve", "re", "ll", "nt", "n't"})


class Tokens:
    """Words in small letters with their offsets in the normalised text. A contraction is two words that share one
    place. `literal[i]` numbers the code span or quotation that word i stands in, 0 for none."""

    def __init__(
        self, text: str, aliases: Mapping[str, tuple[str, ...]], disguised: frozenset[str] = frozenset()
    ) -> None:
        """`disguised` are the words that are read although digits and signs stand for letters of theirs (`th1nk`)."""
        self.text = text
        self._disguised = disguised
        self.words: list[str] = []
        self.starts: list[int] = []
        self.ends: list[int] = []
        self._aliases = aliases
        words, starts, ends = self.words, self.starts, self.ends
        end = 0
        for chunk in text.split():
            start = text.index(chunk, end)  # the very next thing that is no white space
            end = start + len(chunk)
            word = chunk.lower()
            if chunk.isalpha() and word not in aliases and word not in _TAILS:
                words.append(word)
                starts.append(start)
                ends.append(end)
            else:
                self._chunk(chunk, start)

    def _chunk(self, chunk: str, at: int) -> None:
        """A chunk that is more than letters: marks around a core."""
        core = chunk.lstrip(_LEADING)
        if core.startswith(".."):
            core = core.lstrip(".")
        at_core = at + len(chunk) - len(core)
        core = core.rstrip(_TRAILING)
        if any(mark in "([{—" for mark in chunk[: at_core - at]):
            self._add(",", at, at_core)
        if core:
            self._core(core, at_core)
        self._mark(core, chunk[at_core + len(core) - at :], at_core + len(core))

    def _mark(self, core: str, tail: str, at: int) -> None:
        """The mark a chunk ends in: of a sentence, of a clause, or none."""
        if not tail or core.lower() in ABBREVIATIONS:
            return
        if "?" in tail:
            mark = "?"
        elif any(c in tail for c in ".:;!"):
            mark = "."
        elif any(c in tail for c in ",)]}—-"):
            mark = ","
        else:
            return
        self._add(mark, at, at + len(tail))

    def _core(self, core: str, at: int) -> None:
        if PROSE.fullmatch(core):
            self._word(core.lower(), at, at + len(core))
        elif core == "~":
            self._add("~", at, at + 1)
        elif RUN.search(core) is None:
            return  # a bullet, a rule, a table's bar: nothing to read, and a phrase goes on across it
        elif number := _NUMBER.fullmatch(core):
            # ~0 is an operator on a number far more often than "about none".
            rough = number["tilde"] and number["value"].strip("0,._")
            self._add("~#" if rough else BLANK if number["tilde"] else "#", at, at + len(core))
        elif _TILDE_UNIT.fullmatch(core):
            self._add("~#", at, at + len(core))
        elif rough_number := _ROUGH_NUMBER.fullmatch(core):
            self._add("#" + rough_number["kind"].lower(), at, at + len(core))
        elif word := self._undisguised(core.lower()):
            self._word(word, at, at + len(core))
        else:
            self._compound(core, at)

    def _undisguised(self, core: str) -> str | None:
        """The word that is meant by one with digits and signs for some of its letters."""
        if not self._disguised or len(core) > 16 or _LEET.fullmatch(core) is None:
            return None
        words = (core.translate(table) for table in _LETTERS)
        return next((word for word in words if word in self._disguised), None)

    def _compound(self, core: str, at: int) -> None:
        """Words glued by a comma, a dash or a slash are read one by one; everything else is no prose."""
        if "://" in core or "_" in core or "(" in core or "=" in core or core[0] in "-@#$%/\\<.":
            self._add(BLANK, at, at + len(core))
            return
        parts = _JOINT.split(core)
        slashed = core.split("/")
        if len(parts) > 1 and all(PROSE.fullmatch(part) or _NUMBER.fullmatch(part) for part in parts if part):
            pieces, mark = _JOINT.finditer(core), ","
        elif len(slashed) == 2 and all(part.isalpha() for part in slashed):
            pieces, mark = re.finditer("/", core), BLANK
        else:
            self._add(BLANK, at, at + len(core))
            return
        done = 0
        for joint in pieces:
            if core[done : joint.start()]:
                self._core(core[done : joint.start()], at + done)
            self._add(mark, at + joint.start(), at + joint.end())
            done = joint.end()
        if core[done:]:
            self._core(core[done:], at + done)

    def _word(self, word: str, at: int, end: int) -> None:
        if word in _TAILS and self.words:
            spread = self._joined(self.words[-1], word)
            if spread:
                start = self.starts.pop()
                self.words.pop()
                self.ends.pop()
                for part in spread:
                    self._add(part, start, end)
                return
        for part in self._aliases.get(word, (word,)):
            self._add(part, at, end)

    def _joined(self, before: str, tail: str) -> tuple[str, ...]:
        """The words that two halves of a contraction stand for (`don t`, `do nt`, `do n't`); none if they do not."""
        found = self._aliases.get(before + ("n't" if tail in ("nt", "n't") else "'" + tail), ())
        return found or ((before, "not") if tail == "n't" and before != BLANK else ())

    def _add(self, word: str, start: int, end: int) -> None:
        self.words.append(word)
        self.starts.append(start)
        self.ends.append(end)

    def word(self, index: int) -> str:
        """The word at `index`, or the end of a sentence outside the text."""
        return self.words[index] if 0 <= index < len(self.words) else "."

    def written(self, index: int) -> str:
        """The word as it is written in the normalised text, capitals kept; empty outside the text."""
        return self.text[self.starts[index] : self.ends[index]] if 0 <= index < len(self.words) else ""

    def after_break(self, index: int) -> bool:
        """Whether a blank line, a bullet or the start of the text lies before this word."""
        return index == 0 or self.text[self.ends[index - 1] : self.starts[index]].count("\n") > 1

    def starts_line(self, index: int) -> bool:
        """The same, or one line break and a capital: a wrapped line seldom happens to begin with one."""
        if index == 0:
            return True
        breaks = self.text[self.ends[index - 1] : self.starts[index]].count("\n")
        return breaks > 1 or (breaks == 1 and self.written(index)[:1].isupper())

    def shouted(self, index: int) -> bool:
        """Whether the words around are in capitals too, so that the capitals of this one say nothing."""
        around = [self.written(i) for i in range(index - 3, index + 4) if i != index]
        letters = [c for c in "".join(around) if c.isalpha()]
        return sum(map(str.isupper, letters)) * 10 > len(letters) * 7

    @cached_property
    def title_cased(self) -> bool:
        """Whether nearly every word begins with a capital, so that one capital does not make a name."""
        written = [self.written(i) for i, word in enumerate(self.words) if word.isalpha()]
        return sum(word[:1].isupper() for word in written) * 10 > len(written) * 8

    @cached_property
    def closing_marks(self) -> list[str]:
        """For every word the mark that ends its sentence; a full stop where the text ends without one."""
        marks = ["."] * len(self.words)
        mark = "."
        for index in range(len(self.words) - 1, -1, -1):
            if self.words[index] in (".", "?"):
                mark = self.words[index]
            marks[index] = mark
        return marks

    def literals(self, intervals: list[Interval]) -> list[int]:
        """For every word the number (from 1) of the interval it lies in, or 0."""
        starts = [start for start, _ in intervals]
        found = []
        for start in self.starts:
            number = bisect_right(starts, start)
            found.append(number if number and start < intervals[number - 1][1] else 0)
        return found
