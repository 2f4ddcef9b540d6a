"""Commit ids: 7 to 40 hex digits with a letter and a digit among them, or all digits after the word "commit".

Hex is written for many other things, so what stands around the digits decides.
"""

import re
from collections.abc import Iterator

from vouchgate.ingest.citations.kinds import CitationKind, FoundCitation
from vouchgate.ingest.citations.words import COMMIT, COMMIT_KEYS, DIGEST, FILLERS, OTHER_THINGS
from vouchgate.ingest.claims.citation import CitationType

_RUNNING = re.compile(r"(?<![0-9A-Za-z_])(?:[0-9a-f]{7,40}|[0-9A-F]{7,40})(?![0-9A-Za-z_])")
_LOOK_BACK = 80  # characters before an id that can say what it is

# "commit 1234567", also further on in a list: "commits 1234567 and 2345678".
_AFTER_COMMIT = re.compile(
    r"\bcommits?(?:[ -](?:id|hash|sha|sha1))?:?\s{1,2}"
    r"(?:[`'\"(\[]?[0-9a-f]{7,40}[`'\")\]]?(?:, ?|,? and |\.{2,3})){0,3}"
    r"[`'\"(\[*]{0,2}$",
    re.ASCII | re.IGNORECASE,
)
_WORD = re.compile(r"[a-z0-9-]+")
_BETWEEN = " `'\"([*:="  # what may stand between such a word and the id
# ... unless the sentence goes on as only a sentence about a commit does: "the error 4e5d6c7 introduced".
_DEED = re.compile(
    r"[`'\"]? (?:(?:has|had) )?"
    r"(?:add|broke|brought|caus|chang|clean|creat|fix|forgot|introduc|left|made|mov|remov|tried)",
    re.IGNORECASE,
)
_DIGEST_AFTER = re.compile(
    r"[`'\"]? (?:is|was) (?:the|a|an|its|our)(?: \w{1,20}){0,2}"
    r" (?:checksum|digest|fingerprint|md5|sha-?\d+|key|token|uuid)\b",
    re.ASCII | re.IGNORECASE,
)
_SUBJECT_AFTER = re.compile(
    r"[`'\"]? ?\([^()]{3,120}(?:\([^()]{0,60}\)[^()]{0,120})?, \d{4}-\d\d-\d\d\)", re.ASCII
)
_COUNTED = re.compile(r" (?:bytes|entries|items|lines|objects|records|rows|times|transactions)\b")
# Numbers written with an exponent, dates with a letter, and what starts like an offset or a kernel address.
_NUMBER_LIKE = re.compile(r"\de\d+|\d+e\d{1,3}|(?:19|20)\d\d(?:0[1-9]|1[0-2])\d\d[a-f]\d?|(?:0000|ffff).*")
_ALPHABET = frozenset(
    ("0123456789abcdef", "123456789abcdef", "abcdef0123456789", "abcdef1234567890", "1234567890abcdef")
)
_KEY_BEFORE = re.compile(r"([\w-]+)[`'\"]?.$", re.ASCII)


def _touches(text: str, start: int, end: int) -> bool:
    """Whether a neighbouring character makes the digits part of a name, a path, a file or a literal."""
    before, after = text[max(0, start - 20) : start], text[end : end + 2]
    if before[-1:] in (":", "="):
        key = _KEY_BEFORE.search(before)
        if key is not None and key[1].lower() not in COMMIT_KEYS:
            return True
    elif before[-1:] == "/":
        if not before.endswith(("/commit/", "/commits/")):
            return True
    elif before[-1:] == ".":
        if not before.endswith(".."):  # a range of commits
            return True
    elif before and before[-1] in "#$%&\\+-":
        return True
    if after[:1] in ("-", "."):
        return after[1:].isalnum()
    return after[:1] in ("/", "=", "+", "@") and after != "@{"


def _is_other_thing(left: str, words: list[str], digits: str) -> bool:
    """Whether the words before the id name what it identifies, and that is no commit."""
    if len(digits) == 40 and not DIGEST.isdisjoint(words):
        return True
    if left.rstrip(_BETWEEN)[-1:] in (".", ",", ";", ")", "!", "?"):
        return False  # that word ended its own clause
    for word in reversed(words[-3:]):
        if word in OTHER_THINGS:
            return True
        if word not in FILLERS:
            return False
    return False


def _is_commit(text: str, start: int, end: int) -> bool:
    digits = text[start:end]
    if digits.isalpha() or digits.count(digits[0]) == len(digits) or digits in _ALPHABET:
        return False
    if _touches(text, start, end):
        return False
    if _SUBJECT_AFTER.match(text, end):
        return True
    left = text[max(0, start - _LOOK_BACK) : start]
    if digits.isdecimal():
        return bool(_AFTER_COMMIT.search(left)) and not _COUNTED.match(text, end)
    words = _WORD.findall(left.lower())[-6:]
    return not COMMIT.isdisjoint(words[-3:]) or _reads_as_commit(text, start, end, words)


def _reads_as_commit(text: str, start: int, end: int, words: list[str]) -> bool:
    """Decides on digits with a letter where nothing says "commit"; `words` are the last ones before."""
    digits = text[start:end]
    if digits.isupper() or _NUMBER_LIKE.fullmatch(digits) or len(digits) == 32:
        return False  # capitals are for GUIDs and keys, 32 digits for MD5
    if "index" in words[-2:] and ".." in text[max(0, start - 2) : end + 2]:
        return False  # the blob ids of a diff
    if _is_other_thing(text[max(0, start - 4) : start], words, digits):
        return _DEED.match(text, end) is not None
    return _DIGEST_AFTER.match(text, end) is None


def _find(text: str) -> Iterator[FoundCitation]:
    for match in _RUNNING.finditer(text):
        if _is_commit(text, *match.span()):
            yield FoundCitation(match.start(), match.end(), f"commit:{match[0].lower()}")


def _whole(value: str) -> str | None:
    match = re.fullmatch(r"(?:[Cc]ommit:? )?([0-9a-fA-F]{7,40})", value)
    return f"commit:{match[1].lower()}" if match else None


KIND = CitationKind(
    name=CitationType.COMMIT,
    label="commit",
    needles=(),
    find=_find,
    whole=_whole,
    bare=_whole,
    forms=("4e5d6c7a", "7 to 40 hex digits"),
)
