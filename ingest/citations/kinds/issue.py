"""Issues and pull requests: `#12`, `GH-12`, `owner/repo#12`, `PR 12`.

The value is the shortest part that says which one it is: `#12` of "PR #12" and of "fixes issue #12".
"""

import re
from collections.abc import Iterator
from string import ascii_letters, digits

from vouchgate.ingest.citations.kinds import CitationKind, FoundCitation
from vouchgate.ingest.citations.shared import NOT_A_COUNT
from vouchgate.ingest.citations.words import BEFORE_RANK, CITING, DESK, GLUED_TO_HASH, ORDINALS
from vouchgate.ingest.claims.citation import CitationType

_OWNER_REPO = r"(?P<repo>[A-Za-z0-9][A-Za-z0-9-]{0,38}/[\w.-]{1,100})"  # lengths are GitHub's own
_NUMBER = r"[1-9]\d{0,6}"
_PULL = r"(?:[Pp][Rr]|[Pp]ull [Rr]equest)"

# Not followed by a letter, a decimal, a hyphen and a word (#2-general), a percent sign, another hash (#31#).
_RUNNING = re.compile(
    rf"#(?P<hash>{_NUMBER})(?![\w#%]|\.\d|-[A-Za-z]|-\d+\])"
    rf"|(?<![\w#@$&\\/.-])(?:[Gg][Hh]-(?P<gh>{_NUMBER})|{_PULL}[ -](?P<pull>{_NUMBER}){NOT_A_COUNT})"
    r"(?!\w|[./-]\d)",
    re.ASCII,
)
_NAME = frozenset(ascii_letters + digits + "_.-/")
_REPO_BEFORE = re.compile(_OWNER_REPO, re.ASCII)
_COLOUR_WORD = re.compile(
    r"\b(?:colou?rs?|background|foreground|bg|fg|hex|rgba?|fill|stroke|border|palette|shade|tint|swatch|gr[ae]y"
    r"|black|white|red|green|blue|yellow|orange|purple|theme)\b",
    re.IGNORECASE,
)
_COLOUR_VALUE = re.compile(
    r"(?:colou?r|background|foreground|bg|fg|hex|fill|stroke|border)s?(?: value| code)?['\"]?"
    r"(?: is| was| to| of| =)?[ :=]{0,3}['\"(]?$",
    re.IGNORECASE,
)
_COLOUR_NEAR = re.compile(r"#(?:[0-9a-f]{3}){1,2}(?<![0-9]{3})\b", re.ASCII | re.IGNORECASE)
# A file has anchors; a repository's name seldom ends like one (`.js` does, in next.js).
_FILE = re.compile(
    r"\.(?:adoc|c|cc|cpp|css|csv|go|h|hpp|html?|ini|ipynb|java|json|jsx|md|mdx|pdf|php|png|py|rb|rs|rst|sh|svg"
    r"|toml|tsx?|txt|xml|ya?ml)$",
    re.IGNORECASE,
)


def _is_colour(text: str, start: int, end: int) -> bool:
    """Three or six digits may be a colour: they are when quoted, in a declaration, or beside colour words."""
    if end - start not in (4, 7):
        return False
    left, right = text[max(0, start - 40) : start], text[end : end + 20]
    if _COLOUR_VALUE.search(left) or _COLOUR_NEAR.search(left) or _COLOUR_NEAR.search(right):
        return True
    if left[-1:] in ("'", '"') and right[:1] == left[-1]:
        return True
    return (
        end - start == 7
        and left[-1:] != "("
        and bool(_COLOUR_WORD.search(left) or _COLOUR_WORD.search(right))
    )


def _is_counted(text: str, start: int, end: int) -> bool:
    """Whether the hash is an ordinal ("step #3", "the #1 cause", a stack frame) or names what people number at a desk
    ("Order #312"), and no issue."""
    if text[start - 1 : start] == " ":
        words = text[max(0, start - 40) : start].lower().split()
        word = words[-1].removesuffix(".") if words else ""
        if (
            word in ORDINALS
            or word.removesuffix("s") in ORDINALS
            or (end - start == 2 and word in BEFORE_RANK)
        ):
            return True
        if word.removesuffix("s") in DESK and not text.startswith((":", ")", "]", " -"), end):
            cites = [before for before in words[-3:-1] if before not in BEFORE_RANK]
            return not cites or cites[-1] not in CITING
    return text.startswith(("  ", " 0x"), end)


def _left_word(text: str, end: int) -> int:
    """Start of the run of ASCII letters, digits and `_ . - /` before `end`, at most 150 characters."""
    start = end
    while start > 0 and end - start < 150 and text[start - 1] in _NAME:
        start -= 1
    return start


def _with_repository(text: str, start: int, end: int, number: str) -> FoundCitation | None:
    """A hash written against a word: an issue of that repository, or an anchor, a file, a language."""
    left = _left_word(text, start)
    word = text[left:start]
    # the second of #12/#13 or #12-#14
    listed = word[:-1].isdecimal() and word[-1] in "/-" and text[left - 1 : left] == "#"
    if listed or word.lower() in GLUED_TO_HASH:
        return FoundCitation(start, end, f"issue:#{number}")
    if _REPO_BEFORE.fullmatch(word) and not _FILE.search(word) and text[left - 1 : left] != "@":
        return FoundCitation(left, end, f"issue:{word.lower()}#{number}")
    return None


def _hash(text: str, match: re.Match[str]) -> FoundCitation | None:
    start, end = match.span()
    before = text[start - 1] if start else " "
    if before in "&#\\$%@=?":  # HTML entities, pre-processor pasting, escapes, formats, links in attributes
        return None
    if before == "(" and text[start - 2 : start - 1] == "]":  # [text](#12) links to a place in the page
        return None
    if before in "_.-/" or (before.isascii() and before.isalnum()):
        return _with_repository(text, start, end, match["hash"])
    if _is_counted(text, start, end) or _is_colour(text, start, end):
        return None
    return FoundCitation(start, end, f"issue:#{match['hash']}")


def _find(text: str) -> Iterator[FoundCitation]:
    for match in _RUNNING.finditer(text):
        number = match["gh"] or match["pull"]
        found = (
            FoundCitation(match.start(), match.end(), f"issue:#{number}") if number else _hash(text, match)
        )
        if found is not None:
            yield found


_WHOLE = re.compile(
    rf"(?:{_OWNER_REPO}|(?:(?:[Ii]ssue|{_PULL}) ?)?)#(?P<hash>{_NUMBER})"
    rf"|(?:[Gg][Hh]-|{_PULL}[ -])(?P<plain>{_NUMBER})",
    re.ASCII,
)


def _whole(value: str) -> str | None:
    match = _WHOLE.fullmatch(value)
    if match is None:
        return None
    return f"issue:{(match['repo'] or '').lower()}#{match['hash'] or match['plain']}"


def _bare(value: str) -> str | None:
    return _whole(value) or _whole(f"#{value}")


KIND = CitationKind(
    name=CitationType.ISSUE,
    label="issue",
    needles=("#", "gh-", "pr ", "pr-", "pull request"),
    find=_find,
    whole=_whole,
    bare=_bare,
    forms=("#12", "GH-12", "owner/repo#12"),
)
