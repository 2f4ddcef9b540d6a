"""Does the claim hold a number or an address of a person: of a payment card, US social security, a bank account, a
phone, a mailbox? What the policy masks is masked before anything else is done with the claim, as a credential is, and
of a match only its kind and its place are kept; what it queues is shown to the owner as sent (ADR-0067).

Found is what has the form and the check digits of its kind: `PersonalDataDetector.find`, pure and linear.
`ingest/data/personal.toml` has who issues what.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from vouchgate.ingest.check import Check, ReadClaim
from vouchgate.ingest.claims.claim import Finding, SecretMatch, Span, Verdict
from vouchgate.ingest.claims.texts import CONTENT, texts_of
from vouchgate.ingest.data import read_data
from vouchgate.ingest.language.normalise import normalise
from vouchgate.ingest.scoring.sites import is_public_suffix

CHECK = "personal"
MASKED, WAITS = "personal_data_masked", "personal_data"
KINDS = {  # as the policy names them, and as people do
    "payment_card": "payment card number",
    "us_social_security": "US social security number",
    "iban": "bank account number (IBAN)",
    "phone": "phone number",
    "mail": "mail address",
}
_MOST_SHOWN = 5  # places named in one sentence
_AROUND = 40  # characters beside a number in which a word says what it is

_DATA = read_data("personal.toml")
_OTHER_DIGIT = re.compile(r"(?![0-9])\d")
_SIGNS = str.maketrans("\u2010\u2011\u2012\u2013\u2014\u2212\u00a0\u2007\u2009\u202f\u3000", "------     ")
_ENOUGH = re.compile(
    r"@|(?:[0-9][^0-9]{0,3}){6}[0-9]"
)  # all kinds have this; numbers, without being in words
# Digits with at most three signs between two of them. No two parts of it can match the same sign.
_RUN = re.compile(r"(?<![0-9A-Za-z_])[0-9]+(?:[ \t\n.()/-]{1,3}[0-9]+)*")
_DIGITS = re.compile("[0-9]+")
_GROUPS = frozenset(map(tuple, _DATA["payment_card"]["groups"]))
_ISSUERS = tuple(
    (first.partition("-")[0], first.rpartition("-")[2], frozenset(each["digits"]))
    for each in _DATA["payment_card"]["issuers"]
    for first in each["first"]
)
_IBAN = re.compile(r"(?<![0-9A-Za-z])([A-Za-z]{2})[0-9]{2}")
_IBANS = {
    country: re.compile(rf"(?:[ \t\n.-]{{0,2}}[0-9A-Za-z]){{{length - 4}}}(?![0-9A-Za-z])")
    for country, length in _DATA["iban"]["lengths"].items()
}
_NEVER = re.compile("(?!)")
_FEWEST = 8  # digits of an IBAN behind its first four signs: fewer are words
_MAIL = re.compile(
    r"(?<![\w.%+-])[\w%+-](?:[\w.%+'-]{0,62}[\w%+-])?"
    r"@((?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,8}[^\W\d_]{2,24})(?![\w@-]|:\S)"
)
_USER_OF_URL = re.compile(r"://[^\s/]*\Z")
_PLUS = re.compile(r"(?<![\w+)])(?:\+\(?|\()\Z")
_BREAK = re.compile(r"[\n]|[.] | [.]")  # in a phone number there is none
_NORTH_AMERICAN = re.compile(r"(?:[2-9][0-9]{2}){2}[0-9]{4}")  # area, exchange and line
_WITH_COUNTRY = re.compile(r"[2-9][0-9]{7,14}")  # E.164; those with 1 are North American


def _words(kind: str, name: str = "words") -> str:
    return "|".join(each.replace(" ", "[ _-]?") for each in _DATA[kind][name])


_OF_OTHERS = re.compile(
    rf"(?<![a-z])(?:{_words('payment_card', 'others')})s?\W{{0,3}}(?:no|nr|number|id|ref|code)?\W{{0,4}}\Z"
)
_OF_SECURITY = re.compile(rf"(?<![a-z])(?:{_words('us_social_security')})")
_OF_PHONES = re.compile(rf"(?<![a-z])(?:{_words('phone')})(?:[ _-]?(?:no|nr|number))?(?: is)?\W{{0,4}}\Z")


class _Group(NamedTuple):
    """Digits in a row, and what stands between them and those before: "" for the first of a run."""

    digits: str
    start: int
    end: int
    between: str

    @property
    def sign(self) -> str:
        """What joins them to those before."""
        return self.between.strip() or " "


@dataclass(frozen=True, slots=True)
class PersonalDataDetector:
    """Finds personal data of these kinds, which are names of `KINDS`. Thread-safe."""

    kinds: frozenset[str]

    def find(self, text: str, where: str = CONTENT) -> tuple[SecretMatch, ...]:
        """What is in a text, in order, none overlapping another: offsets are characters of `text`. What is disguised
        is found as the hedge check finds hedges."""
        if not self.kinds:
            return ()
        found = list(self._found(_plain(text)))
        normalised = normalise(text)
        if normalised.text != text:
            for kind, start, end in self._found(_plain(normalised.text)):
                found.append((kind, *normalised.span(start, end)))
        kept: list[SecretMatch] = []
        for kind, start, end in sorted(found, key=lambda each: (each[1], -each[2])):
            if not kept or start >= kept[-1].end:
                kept.append(SecretMatch(kind=KINDS[kind], where=where, start=start, end=end))
        return tuple(kept)

    def find_value(self, name: str, text: str, where: str) -> tuple[SecretMatch, ...]:
        """As `find`, for a text that stands under a name, as in metadata: under `ssn` nine digits are one."""
        before = f"{name}: "
        return tuple(
            SecretMatch(
                kind=match.kind, where=where, start=match.start - len(before), end=match.end - len(before)
            )
            for match in self.find(before + text, where)
            if match.start >= len(before)
        )

    def _found(self, text: str) -> Iterator[tuple[str, int, int]]:
        if _ENOUGH.search(text) is None:
            return
        if not self.kinds.isdisjoint(_OF_NUMBERS):
            lowered = text.lower()
            for run in _RUN.finditer(text):
                yield from self._numbers(lowered if len(lowered) == len(text) else text, run)
        if "iban" in self.kinds:
            yield from _ibans(text)
        if "mail" in self.kinds:
            yield from _mails(text)

    def _numbers(self, text: str, run: re.Match[str]) -> Iterator[tuple[str, int, int]]:
        groups: list[_Group] = []
        for match in _DIGITS.finditer(text, run.start(), run.end()):
            between = text[groups[-1].end : match.start()] if groups else ""
            groups.append(_Group(match[0], match.start(), match.end(), between))
        if text[run.end() : run.end() + 1].isalpha():  # the last belongs to a word
            groups.pop()
        reached = 0
        for at in range(len(groups)):
            for kind, judge in _OF_NUMBERS.items() if at >= reached else ():
                if kind in self.kinds and (size := judge(text, groups, at)):
                    reached, start = at + size, groups[at].start
                    if kind == "phone" and (signs := _PLUS.search(text, max(start - 3, 0), start)):
                        start = signs.start()
                    yield kind, start, groups[reached - 1].end
                    break


def _plain(text: str) -> str:
    """The text with digits, hyphens and spaces of all scripts as ASCII has them; as long as it was."""
    if text.isascii():
        return text
    return _OTHER_DIGIT.sub(lambda match: str(unicodedata.decimal(match[0])), text.translate(_SIGNS))


def _joined(groups: Sequence[_Group], at: int, size: int) -> str | None:
    """The digits of so many groups that one sign joins; None where it goes on before or behind, so that they are a part
    of something longer."""
    taken = groups[at : at + size]
    signs = {group.sign for group in taken[1:]} or {"-", ".", "/"}
    beside = {groups[at].between, *(group.between for group in groups[at + size : at + size + 1])}
    if (size > 1 and len(signs) > 1) or not beside.isdisjoint(signs - {" "}):
        return None
    return "".join(group.digits for group in taken)


def _card(text: str, groups: Sequence[_Group], at: int) -> int:
    """How many groups from here on are the number of a payment card; 0: none."""
    for size in range(1, 6) if len(groups[at].digits) > 3 else ():
        sizes = tuple(len(group.digits) for group in groups[at : at + size])
        if sizes not in _GROUPS or len(sizes) < size or (digits := _joined(groups, at, size)) is None:
            continue
        if not (_issued(digits) and _luhn(digits)):
            continue
        start = groups[at].start
        if size == 1:
            before = text[max(start - _AROUND, 0) : start]
            if before[-1:] in set("/#@&.") or _OF_OTHERS.search(before) is not None:
                continue
        elif any(  # a list of numbers of four digits
            len(each.digits) == 4 and joined == groups[at + 1].between
            for each, joined in (
                *((groups[at - 1], groups[at].between) for _ in range(min(at, 1))),
                *((each, each.between) for each in groups[at + size : at + size + 1]),
            )
        ):
            continue
        return size
    return 0


def _issued(digits: str) -> bool:
    return any(len(digits) in sizes and low <= digits[: len(low)] <= high for low, high, sizes in _ISSUERS)


def _luhn(digits: str) -> bool:
    """Whether the last digit is the check digit of those before (ISO/IEC 7812-1, annex B)."""
    doubled = (sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])
    return (sum(doubled) + sum(map(int, digits[::-2]))) % 10 == 0


def _security(text: str, groups: Sequence[_Group], at: int) -> int:
    """How many groups from here on are a US social security number, none of those that are never given out."""
    for size, sizes in ((3, [3, 2, 4]), (1, [9])):
        if len(groups[at].digits) != sizes[0]:
            continue
        taken = groups[at : at + size]
        digits = _joined(groups, at, size) if [len(group.digits) for group in taken] == sizes else None
        if digits is None or digits[:3] in ("000", "666") or digits[0] == "9":
            continue
        if digits[3:5] == "00" or digits[5:] == "0000":
            continue
        start, end = taken[0].start, taken[-1].end
        around = f"{text[max(start - _AROUND, 0) : start]}\n{text[end : end + _AROUND]}"
        if (size == 3 and taken[1].sign == "-") or _OF_SECURITY.search(around):
            return size
    return 0


def _phone(text: str, groups: Sequence[_Group], at: int) -> int:
    """How many groups from here on are a phone number: with a country code, as in North America, or behind a word."""
    start = groups[at].start
    before = text[max(start - _AROUND, 0) : start]
    plus = (signs := _PLUS.search(before)) is not None and signs[0] != "("
    if plus or _OF_PHONES.search(before) is not None:
        size = 1
        while size < min(len(groups) - at, 7) and _BREAK.search(groups[at + size].between) is None:
            size += 1
        for most in range(size, 0, -1):
            digits = "".join(group.digits for group in groups[at : at + most])
            north = digits.removeprefix("1") if digits[0] == "1" else ""
            if plus and (_NORTH_AMERICAN if north else _WITH_COUNTRY).fullmatch(north or digits):
                return most
            if not plus and 7 <= len(digits) <= 15:
                return most
        return 0
    first = at + (groups[at].digits == "1")
    taken = groups[first : first + 3]
    if [len(group.digits) for group in taken] != [3, 3, 4] or not _NORTH_AMERICAN.fullmatch(
        "".join(group.digits for group in taken)
    ):
        return 0
    written = taken[1].sign.startswith(")") or (
        taken[1].between == taken[2].between in ("-", ".") and _joined(groups, at, first - at + 3) is not None
    )
    return first - at + 3 if written else 0


_OF_NUMBERS: dict[str, Callable[[str, Sequence[_Group], int], int]] = {
    "payment_card": _card,
    "us_social_security": _security,
    "phone": _phone,
}


def _ibans(text: str) -> Iterator[tuple[str, int, int]]:
    for head in _IBAN.finditer(text):
        rest = _IBANS.get(head[1].upper(), _NEVER).match(text, head.end())
        written = "" if rest is None else re.sub("[^0-9A-Za-z]", "", text[head.start() : rest.end()])
        if rest is None or written not in (written.upper(), written.lower()):
            continue
        behind = written[4:]
        if sum(map(str.isdigit, behind)) < _FEWEST:
            continue
        # The check digits of ISO 7064, by which all of it, with letters as numbers from 10 on, is 1 modulo 97.
        if int("".join(str(int(sign, 36)) for sign in behind + written[:4])) % 97 == 1:
            yield "iban", head.start(), rest.end()


def _mails(text: str) -> Iterator[tuple[str, int, int]]:
    for match in _MAIL.finditer(text):
        start, end = match.span()
        # Not who signs in to a host, and not `icon@2x.png`.
        signs_in = _USER_OF_URL.search(text[max(start - _AROUND, 0) : start]) is not None
        if not signs_in and is_public_suffix(match[1].lower().rpartition(".")[2]):
            yield "mail", start, end


def judge(read: ReadClaim) -> Iterator[Finding]:
    """PASS `personal_data_masked` for a claim in which something was masked; DOUBT `personal_data` for one that
    has what the policy queues, in its text or beside it (`texts_of`)."""
    if read.claim.personal:
        yield _finding(
            Verdict.PASS, MASKED, "The claim held personal data, which is masked", read.claim.personal
        )
    detector = PersonalDataDetector(read.policy.personal_data.kinds("queue"))
    if detector.kinds:
        found = [match for where, text in texts_of(read.claim) for match in detector.find(text, where)]
        if found:
            yield _finding(Verdict.DOUBT, WAITS, "The claim holds personal data", found)


def _finding(verdict: Verdict, code: str, says: str, found: Sequence[SecretMatch]) -> Finding:
    named = [
        f"{each.kind} in {'its text' if each.where == CONTENT else each.where} (characters {each.start} to {each.end})"
        for each in found[:_MOST_SHOWN]
    ]
    if len(found) > _MOST_SHOWN:
        named.append(f"{len(found) - _MOST_SHOWN} more")
    return Finding(
        check=CHECK,
        verdict=verdict,
        code=code,
        message=f"{says}: {', '.join(named)}.",
        spans=tuple(Span(start=each.start, end=each.end) for each in found if each.where == CONTENT),
        facts={"found": [each.model_dump() for each in found]},
    )


CHECKS = (
    Check(
        name=CHECK,
        title="Personal data",
        codes={MASKED: Verdict.PASS, WAITS: Verdict.DOUBT},
        order=16,
        judge=judge,
    ),
)
