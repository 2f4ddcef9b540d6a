"""Is what a name like `password` is set to a credential, or a word about one?

"password: hunter2" holds one, "password: required" and "token: RS256" hold none. Pure, and linear in the length of
the value, which is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from vouchgate.ingest.language.words import RUN

# A page token is a place in a list, and opens nothing.
_NO_PLACE = r"(?<!page[_ -])(?<!page)(?<!next[_ -])(?<!sync[_ -])(?<!continuation[_ -])(?<!cancellation[_ -])"
_SUFFIX = r"(?:[_-](?:base|prod|production|dev|test|staging|live|value|[0-9]{1,2})(?![^\W_]))?"
_SET = "now|set|changed|reset|updated|rotated"
# Also as German, French and Spanish have it: the names are known in these, too.
_VERB = (
    rf"(?:(?:is|was|are|were)(?:[ ](?:{_SET}))?|(?:has|have)[ ]been[ ](?:{_SET}))(?:[ ](?:{_SET}))?(?:[ ]to)?|to|as"
    "|ist|lautet|war|lautete|wurde[ ]auf|auf|est|était|es|era"
)
# "the password for the admin account is": only what a preposition leads over to the verb.
_ABOUT = (
    r"(?:[ ](?:for|of|on|in|at|to|from|that|which|we|für|von|vom|auf|am|pour|de|du|para|del)(?:[ ][\w-]{1,20}){1,4}?"
    r"(?:[ ](?=(?:is|was|has|ist|war|lautet|est|es)[ ])|(?=:[ ])))?"
)
# In brackets behind the name of a credential stands which one of several: "API key (staging): …".
_WHICH = r"(?:[ ]?\([^()\n]{1,40}\)(?=[ ]?[:=]))?"
_SEPARATOR = (
    rf"""{_WHICH}["'`\])]{{0,2}}\s{{0,4}}(?:(?P<set>:=|=>|->|={{1,3}}|:|\uff1a|>(?=[^\s<>]{{5,200}}+</))"""
    rf"|(?P<about>{_ABOUT})[ ]?(?P<said>{_VERB}|:)[ :]|(?<=[ ])(?P<bare>))"
)
_VALUE = r"""\s{0,4}@?(?P<quote>["'`]?)(?P<secret>[^\s"'`<>{}\[\]()]{5,200}+)"""
# Characters. People type short passwords; what is made by machines is longer.
_SHORTEST = {"password": 6, "key": 12}
_SHORTEST_LOOSE = {"password": 8, "key": 16}
_UPPER, _LOWER, _DIGIT = re.compile("[A-Z]"), re.compile("[a-z]"), re.compile("[0-9]")
_SYMBOL = re.compile("[!@#$%^*]")  # that words and settings are not joined with
_NUMBERED = re.compile(r"[a-z]+[0-9]{1,2}")
_HEX = re.compile(r"[0-9a-fA-F]+")
_SHORTEST_HEX = 24  # below it is an abbreviated hash, a colour or a number more often than a key
_BESIDE = " \t\r\n`*\"'"  # around what a cell of a table shows
_RUN = re.compile(r"[^\W\d_]+|\d+")
_MACHINE_MADE = re.compile(r"(?:sk|pk|rk|key|tok|ghp|xox[a-z])[-_][A-Za-z0-9_-]{17,}")
_ELSEWHERE = re.compile(
    r"[$%@~./\\]|0x[0-9a-f]{40}\Z|[A-Za-z][A-Za-z0-9+.-]{1,20}://|(?:sha\d+|md5|blake\w{1,4})[:-]",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"[^@\s]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})+")
_HASHED = re.compile(r"\$[0-9a-z]{1,10}\$[^\s]{8,}")  # `$2b$12$…`: what is kept of a password


class Assigned(NamedTuple):
    """A credential that a name is set to: the name's group (`password` or `key`), and where the value is."""

    group: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Assignments:
    """Finds what names of credentials are set to. Thread-safe."""

    pattern: re.Pattern[str]
    heads: re.Pattern[str]  # a name at the end of the cell that heads a column
    words: tuple[str, ...]  # one of them is in every text, in lower case, that holds a name
    names: frozenset[str]
    placeholders: tuple[str, ...]

    def find(self, text: str) -> Iterator[Assigned]:
        """The credentials among what is set, in order, then those in tables."""
        for match in self.pattern.finditer(text):
            group = "password" if match["password"] else "key"
            shown = match["secret"]
            # An exclamation mark ends a sentence or a password: it is not judged, and masked all the same.
            value = shown if match["quote"] else shown.rstrip(".,;:!?*")
            if match["set"]:
                sure = self.is_credential(value, group)
            else:
                loose = not match["said"] or (group == "key" and bool(match["about"]))
                sure = self._is_said(value, group, loose=loose)
            if sure:
                start = match.start("secret")
                end = start + len(shown if match["quote"] else shown.rstrip(".,;:"))
                yield Assigned(group, start, end)
        if "|" in text:
            yield from self._in_tables(text)

    def _in_tables(self, text: str) -> Iterator[Assigned]:
        """The credentials in columns of tables that a name of one heads."""
        at = 0
        columns: list[str | None] = []
        for line in text.splitlines(keepends=True):
            # With a bar in front or not: how a text is read takes some of those for marks of a quotation.
            start = at + len(line) - len(line.lstrip().removeprefix("|"))
            cells = line[start - at :].split("|")
            if "|" not in line:
                columns = []
            elif not columns:
                heads = [self.heads.search(cell.strip(_BESIDE)) for cell in cells]
                columns = [head and ("password" if head["password"] else "key") for head in heads]
            for group, cell in zip(columns, cells, strict=False):
                value = cell.strip(_BESIDE)
                if group is not None and self.is_credential(value, group):
                    begin = start + cell.index(value)
                    yield Assigned(group, begin, begin + len(value))
                start += len(cell) + 1
            at += len(line)

    def is_credential(self, value: str, group: str) -> bool:
        """Whether the value of an assignment is one: long enough, no placeholder, no address of where it is kept,
        and not made of words, numbers and names of methods alone."""
        if _HASHED.match(value):
            return True
        if not self._may_be_one(value, group):
            return False
        if _MACHINE_MADE.fullmatch(value):
            return True
        if group == "password" and (
            _SYMBOL.search(value, 1, len(value) - 1) or (value.isdecimal() and len(value) <= 12)
        ):
            return True
        return self._has_mixed_part(value)

    def _is_said(self, value: str, group: str, *, loose: bool) -> bool:
        """Whether what a verb in prose leads to is one, where most of what follows is none; `loose` where even the
        verb is missing, or stands far from the name."""
        typed = group == "password" and _SYMBOL.search(value) and _DIGIT.search(value)
        classes = sum(pattern.search(value) is not None for pattern in (_UPPER, _LOWER, _DIGIT, _SYMBOL))
        # "hunter2-Harbour-77": parts that are each a word with a number, and of several kinds of characters.
        joined = group == "password" and classes >= 3 and any(map(self._is_mixed, RUN.findall(value)))
        if not self._may_be_one(value, group) or not (typed or joined or self._has_mixed_part(value)):
            return False
        if not loose:
            return True
        return len(value) >= _SHORTEST_LOOSE[group] and classes >= 3

    def _may_be_one(self, value: str, group: str) -> bool:
        if len(value) < _SHORTEST[group] or _ELSEWHERE.match(value) or _ADDRESS.fullmatch(value):
            return False
        lowered = value.lower()
        if len(set(lowered)) < 4 or any(word in lowered for word in self.placeholders):
            return False
        return not (group == "key" and len(value) < _SHORTEST_HEX and _HEX.fullmatch(value))

    def _has_mixed_part(self, value: str) -> bool:
        """Whether letters and digits stand together in a part of it as in no word and no name of a method. Of
        several parts one with a number at its end (`volume3`) is a name."""
        parts = RUN.findall(value)
        return any(
            len(part) >= _SHORTEST["password"]
            and self._is_mixed(part)
            and (len(parts) == 1 or not _NUMBERED.fullmatch(part))
            for part in parts
        )

    def _is_mixed(self, part: str) -> bool:
        runs = _RUN.findall(part)
        letters = [run.lower() for run in runs if not run[0].isdecimal()]
        if not letters or len(letters) == len(runs):
            return False
        return not all(run in self.names for run in letters)


def assignments(
    groups: dict[str, Sequence[str]], names: Sequence[str], placeholders: Sequence[str]
) -> Assignments:
    """The finder for the table `[assignment]` of `ingest/data/secrets.toml`."""
    listed = {group: sorted(words, key=len, reverse=True) for group, words in groups.items()}
    named = "|".join(
        f"(?P<{group}>{'|'.join(re.escape(word).replace(chr(92) + ' ', '[ _.-]?') for word in words)})"
        for group, words in listed.items()
    )
    # The value is only looked at: in "password is password: …" it is the next name.
    pattern = re.compile(rf"{_NO_PLACE}(?:{named})(?![^\W_]){_SUFFIX}{_SEPARATOR}(?={_VALUE})", re.IGNORECASE)
    # The last word of a name, which says more than the first: texts are full of "user", "app" and "access".
    ends = {word.split()[-1] for words in listed.values() for word in words}
    fewest = sorted(word for word in ends if not any(end in word for end in ends - {word}))
    heads = re.compile(rf"(?:{named})s?\Z", re.IGNORECASE)
    return Assignments(pattern, heads, tuple(fewest), frozenset(names), tuple(placeholders))
