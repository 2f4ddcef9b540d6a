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

from vouchgate.ingest.check import Check, ReadClaim, describe_matches
from vouchgate.ingest.claims.claim import Finding, SecretMatch, Span, Verdict
from vouchgate.ingest.claims.texts import CONTENT, texts_of
from vouchgate.ingest.data import read_data
from vouchgate.ingest.language.normalise import normalise
from vouchgate.ingest.scoring.sites import is_public_suffix

CHECK = "personal"
MASKED, WAITS = "personal_data_masked", "personal_data"
_CODES = {MASKED: Verdict.PASS, WAITS: Verdict.DOUBT}
KINDS = {  # as the policy names them, and as people do
    "payment_card": "payment card number",
    "us_social_security": "US social security number",
    "iban": "bank account number (IBAN)",
    "phone": "phone number",
    "mail": "mail address",
}
_AROUND = 40  # characters beside a number in which a word says what it is
_FEWEST = 8  # digits of an IBAN behind its first four signs: fewer are words

_DATA = read_data("personal.toml")
_OTHER_DIGIT = re.compile(r"(?![0-9])\d")
_SIGNS = str.maketrans("\u2010\u2011\u2012\u2013\u2014\u2212\u00a0\u2007\u2009\u202f\u3000", "------     ")
_ENOUGH = re.compile(r"@|(?:[0-9][^0-9]{0,3}){6}[0-9]")  # nothing is found without
_DIGITS = re.compile("[0-9]+")
_SIGN = r"[ \t]?[-. ]?[ \t\n]?"  # between two groups of digits
# A number is no part of a word, or of a longer number; in one piece, of no path or name either.
_BEFORE, _BEHIND = r"(?<!\w)(?<![0-9][-./])", r"(?!\w|[-./][0-9])"
_PARTS = "/#@&."
_CARDS = _DATA["payment_card"]["groups"]
_ISSUERS = tuple(
    (first.partition("-")[0], first.rpartition("-")[2], each["digits"])
    for each in _DATA["payment_card"]["issuers"]
    for first in each["first"]
)
_USER_OF_URL = re.compile(r"://[^\s/]*\Z")


def _any_of(kind: str, name: str = "words") -> str:
    return rf"(?<![a-z])(?:{'|'.join(each.replace(' ', '[ _-]?') for each in _DATA[kind][name])})"


_OF_OTHERS = re.compile(
    rf"{_any_of('payment_card', 'others')}s?\W{{0,3}}(?:no|nr|number|id|ref|code)?\W{{0,4}}\Z", re.IGNORECASE
)
_OF_SECURITY = re.compile(_any_of("us_social_security"), re.IGNORECASE)


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
        at = len(name) + 2
        found = [match for match in self.find(f"{name}: {text}", where) if match.start >= at]
        return tuple(
            match.model_copy(update={"start": match.start - at, "end": match.end - at}) for match in found
        )

    def _found(self, text: str) -> Iterator[tuple[str, int, int]]:
        if _ENOUGH.search(text) is None:
            return
        for kind, pattern, holds in _PATTERNS:
            if kind in self.kinds:
                for match in pattern.finditer(text):
                    if holds(match):
                        yield kind, *match.span("it")


def _plain(text: str) -> str:
    """The text with digits, hyphens and spaces of all scripts as ASCII has them; as long as it was."""
    if text.isascii():
        return text
    return _OTHER_DIGIT.sub(lambda match: str(unicodedata.decimal(match[0])), text.translate(_SIGNS))


def _before(match: re.Match[str]) -> str:
    return match.string[max(match.start() - _AROUND, 0) : match.start()]


def _sign_of(match: re.Match[str], sizes: Sequence[Sequence[int]]) -> str | None:
    """What joins the groups of a number, "" for white space; None where it is not in one piece, or in groups of one of
    these sizes that one sign joins, so that nobody wrote it as one number."""
    signs = {sign.strip() for sign in _DIGITS.split(match[0])[1:-1]}
    groups = [len(digits) for digits in _DIGITS.findall(match[0])]
    return signs.pop() if len(signs) == 1 and groups in sizes else "" if not signs else None


def _is_card(match: re.Match[str]) -> bool:
    digits = "".join(_DIGITS.findall(match[0]))
    if not any(len(digits) in sizes and low <= digits[: len(low)] <= high for low, high, sizes in _ISSUERS):
        return False
    # Luhn's check digit (ISO/IEC 7812-1, annex B).
    doubled = (sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])
    if (sum(doubled) + sum(map(int, digits[::-2]))) % 10 or _sign_of(match, _CARDS) is None:
        return False
    before = _before(match)
    return digits != match[0] or (before[-1:] not in (*_PARTS,) and _OF_OTHERS.search(before) is None)


def _is_security(match: re.Match[str]) -> bool:
    digits, sign = "".join(_DIGITS.findall(match[0])), _sign_of(match, ([3, 2, 4],))
    if digits[3:5] == "00" or digits[5:] == "0000":  # never given out, like 000, 666 and 9xx in front
        return False
    behind = match.string[match.end() : match.end() + _AROUND]
    said = f"{_before(match)}\n{behind}"
    return sign == "-" or (sign is not None and _OF_SECURITY.search(said) is not None)


def _is_iban(match: re.Match[str]) -> bool:
    written = re.sub("[^0-9A-Za-z]", "", match[0])
    if written not in (written.upper(), written.lower()) or sum(map(str.isdigit, written[4:])) < _FEWEST:
        return False
    # The check digits of ISO 7064: all of it, with letters as numbers from 10 on, is 1 modulo 97.
    return int("".join(str(int(sign, 36)) for sign in written[4:] + written[:4])) % 97 == 1


def _is_mail(match: re.Match[str]) -> bool:
    """Whether it is not who signs in to a host, or `icon@2x.png`."""
    signs_in = _USER_OF_URL.search(_before(match)) is not None
    return not signs_in and is_public_suffix(match["domain"].lower().rpartition(".")[2])


def _grouped(*sizes: int) -> str:
    return _SIGN.join(f"[0-9]{{{size}}}" for size in sizes)


_IBAN = "|".join(
    rf"(?:{countries.replace(' ', '|')})[0-9]{{2}}(?:[ \t\n.-]{{0,2}}[0-9A-Z]){{{size - 4}}}"
    for size, countries in _DATA["iban"]["lengths"]
)
_AREA = "[2-9][0-9]{2}"  # and exchange, of North America
_MORE = r"(?:(?:[ /()-]{0,3}|\.)[0-9])"  # of a phone number
# How each kind is written, and what else must hold.
_FORMS: tuple[tuple[str, str, Callable[[re.Match[str]], bool]], ...] = (
    *(  # a list of numbers of four digits is none
        (
            "payment_card",
            rf"{_BEFORE}(?<![0-9]{{4}}[ -])(?P<it>{_grouped(*sizes)}){_BEHIND}(?![ -][0-9]{{4}}(?![0-9]))",
            _is_card,
        )
        for sizes in _CARDS
    ),
    (
        "us_social_security",
        rf"{_BEFORE}(?<![{_PARTS}])(?!000|666|9)(?P<it>{_grouped(3, 2, 4)}){_BEHIND}",
        _is_security,
    ),
    ("iban", rf"(?<![0-9A-Z])(?P<it>{_IBAN})(?![0-9A-Z])", _is_iban),
    ("phone", rf"(?<![\w+])(?P<it>\+\(?[2-9]{_MORE}{{7,14}})(?!\w)", bool),
    (
        "phone",
        rf"(?<![\w+])(?<![0-9][-/.])(?P<it>\+1[ .-]?\(?{_AREA}\)?[ .-]?{_AREA}[ .-]?[0-9]{{4}}"
        rf"|(?:1[ .-]?)?\({_AREA}\) ?{_AREA}[ .-][0-9]{{4}}"
        rf"|(?:1[-.])?{_AREA}(?P<sign>[-.]){_AREA}(?P=sign)[0-9]{{4}})(?!\w|[-.][0-9])",
        bool,
    ),
    (
        "phone",
        rf"{_any_of('phone')}(?:[ _-]?(?:no|nr|number))?(?: is)?\W{{0,4}}(?P<it>[0-9(]{_MORE}{{6,14}})(?!\w)",
        bool,
    ),
    (
        "mail",
        r"(?<![\w.%+-])(?P<it>[\w%+-](?:[\w.%+'-]{0,62}[\w%+-])?"
        r"@(?P<domain>(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,8}[^\W\d_]{2,24}))(?![\w@-]|:\S)",
        _is_mail,
    ),
)
_PATTERNS = tuple((kind, re.compile(form, re.IGNORECASE), holds) for kind, form, holds in _FORMS)


def judge(read: ReadClaim) -> Iterator[Finding]:
    """PASS `personal_data_masked` for a claim in which something was masked; DOUBT `personal_data` for one that
    has what the policy queues, in its text or beside it (`texts_of`)."""
    detector = PersonalDataDetector(read.policy.personal_data.kinds("queue"))
    queued = [match for where, text in texts_of(read.claim) for match in detector.find(text, where)]
    for code, says, found in (
        (MASKED, "The claim held personal data, which is masked", read.claim.personal),
        (WAITS, "The claim holds personal data", queued),
    ):
        if found:
            yield Finding(
                check=CHECK,
                verdict=_CODES[code],
                code=code,
                message=f"{says}: {describe_matches(found)}.",
                spans=tuple(Span(start=each.start, end=each.end) for each in found if each.where == CONTENT),
                facts={"found": [each.model_dump() for each in found]},
            )


CHECKS = (Check(name=CHECK, title="Personal data", codes=_CODES, order=16, judge=judge),)
