"""Does the claim hold a credential? Found before anything else is done with a claim, and masked at once: of a match
only its kind and its place are kept (ADR-0017).

Detection is `SecretDetector.find`, pure and linear; what a credential looks like is in `ingest/data/secrets.toml`.
What is found becomes `Claim.secrets`, and the finding is judged from that alone, so that a decision can be made again
from its evidence, in which the credential is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from vouchgate.ingest.check import Check, describe_matches
from vouchgate.ingest.claims.claim import Finding, SecretMatch, Span, Verdict
from vouchgate.ingest.claims.texts import CONTENT
from vouchgate.ingest.data import read_data
from vouchgate.ingest.language.credentials import assignments
from vouchgate.ingest.language.normalise import normalise

CHECK = "secrets"
CODE = "credential"
MASK = "*"
_ASSIGNED = {"password": "password", "key": "key or token"}  # the kinds of what a name is set to

_TOKEN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")
_GROUPS = ("secret", "secret2", "secret3")
# But for passwords, which are short, every credential has as many of these in a row; ordinary prose has not.
_LONG = re.compile("[A-Za-z0-9_+/=.:~%-]{16}")
_UPPER, _LOWER, _DIGIT = re.compile("[A-Z]"), re.compile("[a-z]"), re.compile("[0-9]")


@dataclass(frozen=True, slots=True)
class _Kind:
    name: str
    words: tuple[str, ...]  # in lower case; none: the pattern is always tried
    pattern: re.Pattern[str]
    wanted: tuple[re.Pattern[str], ...]  # each must be somewhere in the secret
    password: bool  # the secret is one that people choose, so it may be a placeholder


class SecretDetector:
    """Finds credentials in texts. Thread-safe; `secret_detector` is the one of this process."""

    def __init__(self) -> None:
        raw = read_data("secrets.toml")
        self._kinds = tuple(_kind(entry) for entry in raw["kinds"])
        self._passwords = tuple(kind for kind in self._kinds if kind.password)
        table = raw["assignment"]
        groups = {group: table[group] for group in _ASSIGNED}
        self._assignments = assignments(groups, table["names"], table["placeholders"])

    @property
    def kinds(self) -> tuple[str, ...]:
        """The name of every kind that can be found."""
        return (*(kind.name for kind in self._kinds), *_ASSIGNED.values())

    def find(self, text: str, where: str = CONTENT) -> tuple[SecretMatch, ...]:
        """The credentials in a text, in order, none overlapping another: offsets are characters of `text`. Disguised
        ones (invisible characters, look-alike letters, entities) are found as the hedge check finds hedges."""
        found = list(self._found(text))
        normalised = normalise(text)
        if normalised.text != text:
            for kind, start, end in self._found(normalised.text):
                found.append((kind, *normalised.span(start, end)))
        return tuple(
            SecretMatch(kind=kind, where=where, start=start, end=end) for kind, start, end in _joined(found)
        )

    def find_value(self, name: str, text: str, where: str) -> tuple[SecretMatch, ...]:
        """As `find`, for a text that stands under a name, as in metadata: under `password` it may be one whole."""
        found = self.find(text, where)
        if found or not text.strip():
            return found
        prefix = f'{name}: "'
        for assigned in self._assignments.find(f'{prefix}{text}"'):
            if assigned.start >= len(prefix):
                kind = _ASSIGNED[assigned.group]
                return (SecretMatch(kind=kind, where=where, start=0, end=len(text)),)
        return ()

    def _found(self, text: str) -> Iterator[tuple[str, int, int]]:
        lowered = text.lower()
        long = _LONG.search(text) is not None
        for kind in self._kinds if long else self._passwords:
            if kind.words and not any(word in lowered for word in kind.words):
                continue
            reached = 0
            for match in kind.pattern.finditer(text):
                if match.start() < reached:  # within the one before, which went on
                    continue
                group = next((name for name in _GROUPS if match.groupdict().get(name) is not None), 0)
                start, end = match.span(group)
                if not all(wanted.search(text, start, end) for wanted in kind.wanted):
                    continue
                if kind.password and not self._chosen(text[start:end]):
                    continue
                start, reached = _whole(text, start, end)
                yield kind.name, start, reached
        if any(word in lowered for word in self._assignments.words):
            for assigned in self._assignments.find(text):
                yield _ASSIGNED[assigned.group], assigned.start, assigned.end

    def _chosen(self, value: str) -> bool:
        """Whether a password in an address is none of the words that stand for one in examples."""
        lowered = value.lower()
        if lowered in _STANDS_FOR_ONE or value[0] in "$%{[" or len(set(lowered)) < 3:
            return False
        return not any(word in lowered for word in self._assignments.placeholders)


_STANDS_FOR_ONE = frozenset(
    {"pass", "passwd", "password", "pw", "pwd", "secret", "token", "key", "apikey", "word"}
)


@cache
def secret_detector() -> SecretDetector:
    """The detector, built when it is first asked for."""
    return SecretDetector()


def _kind(entry: dict[str, Any]) -> _Kind:
    wanted = (_UPPER, _LOWER, _DIGIT) if entry.get("mixed") else (_DIGIT,) if entry.get("digit") else ()
    return _Kind(
        name=entry["name"],
        words=tuple(entry["words"]),
        pattern=re.compile(entry["pattern"]),
        wanted=wanted,
        password=entry.get("password", False),
    )


def _whole(text: str, start: int, end: int) -> tuple[int, int]:
    """With what goes on beside it without a break: half a credential is a credential, too."""
    while start > 0 and text[start - 1] in _TOKEN and text[start] in _TOKEN:
        start -= 1
    while end < len(text) and text[end] in _TOKEN and text[end - 1] in _TOKEN:
        end += 1
    return start, end


def _joined(found: Iterable[tuple[str, int, int]]) -> Iterator[tuple[str, int, int]]:
    """In order, those that overlap as one, of the kind that begins first (of equals the longest, then the one that
    was found first: the narrow patterns come before the wide ones)."""
    at: tuple[str, int, int] | None = None
    for kind, start, end in sorted(found, key=lambda each: (each[1], -each[2])):
        if at is not None and start < at[2]:
            at = (at[0], at[1], max(at[2], end))
            continue
        if at is not None:
            yield at
        at = (kind, start, end)
    if at is not None:
        yield at


def mask(text: str, matches: Iterable[SecretMatch]) -> str:
    """The text with a mask of the same length in place of each match, so that offsets hold."""
    pieces: list[str] = []
    done = 0
    for match in sorted(matches, key=lambda match: match.start):
        pieces += (text[done : match.start], MASK * (match.end - max(done, match.start)))
        done = max(done, match.end)
    return "".join(pieces) + text[done:]


def judge(secrets: Sequence[SecretMatch], *, removes: bool = False) -> Finding | None:
    """The finding of the check, with the code `credential`, or None where there is nothing to say. FAIL; of a claim
    that `removes` a text with credentials DOUBT, because what holds one had better go."""
    if not secrets:
        return None
    goes = removes and all(match.where == CONTENT for match in secrets)
    return Finding(
        check=CHECK,
        verdict=Verdict.DOUBT if goes else Verdict.FAIL,
        code=CODE,
        message=f"{'What is to go' if goes else 'The claim'} holds a credential: {describe_matches(secrets)}.",
        spans=tuple(Span(start=match.start, end=match.end) for match in secrets if match.where == CONTENT),
        facts={"found": [match.model_dump() for match in secrets]},
    )


def kinds_of(finding: Finding) -> list[str]:
    """The kinds that a finding of this check names, each once."""
    found = finding.facts.get("found")
    kinds = [each["kind"] for each in found if isinstance(each, dict)] if isinstance(found, list) else []
    return list(dict.fromkeys(map(str, kinds)))


CHECKS = (
    Check(
        name=CHECK,
        title="Credentials",
        codes={CODE: (Verdict.FAIL, Verdict.DOUBT)},
        order=10,
        judge=lambda read: filter(None, (judge(read.claim.secrets, removes=read.claim.removes),)),
        of_removals=True,
        label=lambda finding: f"{finding.code}: {', '.join(kinds_of(finding))}",
    ),
)
