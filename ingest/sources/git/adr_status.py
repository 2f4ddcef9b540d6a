"""What the status words of an architecture decision record mean. Pure.

Several conventions are in use (adr-tools, MADR 2 to 4, log4brains, Backstage) and people write free text in
all of them, so the rule is cautious: a decision is in force only if its status begins with a word for
"accepted" and nothing beside it takes that back. A status that nobody can place counts as proposed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.ingest.claims.source import Standing

_LONGEST = 500  # characters of one status statement that are looked at

_ACCEPTED = re.compile(
    r"(?:accepted|accept|approved|done|active|adopted|agreed|decided|final|finali[sz]ed|implemented|ratified"
    r"|enacted|in force|in effect|in use|current|valid|completed?)\b"
)
_PENDING = re.compile(
    r"\b(?:proposed|proposal|draft|drafted|rfc|pending|in review|under review|under discussion|in progress"
    r"|wip|todo|tbd|undecided|on hold|deferred|postponed|experimental|trial)\b"
)
_SUPERSEDED = re.compile(r"\b(?:super[sc]eded|replaced|obsoleted|overridden|overruled)\b")
_REJECTED = re.compile(r"\b(?:rejected|declined|refused|denied|abandoned|cancell?ed)\b")
_DEPRECATED = re.compile(r"\b(?:deprecated|withdrawn|retired|obsolete|revoked|archived|expired|reverted)\b")
_VOCABULARY = {
    Standing.SUPERSEDED: _SUPERSEDED,
    Standing.REJECTED: _REJECTED,
    Standing.DEPRECATED: _DEPRECATED,
    Standing.PROPOSED: _PENDING,
    Standing.IN_FORCE: re.compile(r"\b" + _ACCEPTED.pattern),
}
_OVER = (Standing.SUPERSEDED, Standing.REJECTED, Standing.DEPRECATED)

# What an acceptance may not have beside it: "accepted pending the audit", "no longer active".
_TAKEN_BACK = re.compile(
    r"\b(?:dropped|rolled back|void|undone|reversed|lapsed"
    r"|not|no|never|unless|until|if|conditional(?:ly)?|provisional(?:ly)?|against|reject|decline|discussion"
    r"|evaluation|investigation)\b|\?"
)
# Links to other records that say nothing about this one's own standing.
_LINK = re.compile(
    r"\W{0,8}(?:super[sc]edes?|replaces?|obsoletes?|overrides|amends|amended|amended by|clarif\w{1,5}|extends"
    r"|extended by|refines|refined by|relates to|related to|depends on|driven by|see also|see|links?)\b"
)
# Not of what replaces a part of another, which stays in force (`adr_links`).
_SUPERSEDES = re.compile(
    r"(?<!partly )(?<!partially )\b(?:super[sc]edes?|replaces|obsoletes)\b"
    r"(?!\s{1,3}(?:in part|partly|partially|(?:a |the |some )?parts?\b|sections?\b))"
)
_BLANK = re.compile(r"(?:\W|none|n/a|na|nil|null|nothing|nobody)*", re.IGNORECASE)
_STRUCK = re.compile(r"~~[^~]{0,300}~~")
# A box of a list of choices, the choice behind it; one with a cross or a tick is chosen.
_BOX = re.compile(r"(\[[ xX✓✔]?\]|\([ xX]\)|[☐☑☒⬜✅])\s{0,4}")
_TICKED = frozenset("xX✓✔☑☒✅")
_OVER_NOW = re.compile(
    r"(?:(?:this|it)(?: \w+)? (?:is|was) )?(?:no longer|not any ?more|not (?:in (?:use|force)|used|valid))\b"
)
_ALONE = re.compile(
    r"\W*(?:$|(?:as of|by|in|on|since|with)\b|\d)"
)  # behind a word that is the status by itself
_CROSS = re.compile("[❌✗✘]")
_RFC = re.compile(r"rfc\b")  # in a title mostly the name of one, and of a folder whatever their standing is
_LEADING_DATE = re.compile(r"\d{4}-\d{2}-\d{2}\W{0,5}")
_REFERENCE = re.compile(
    r"\badr[-_ #]{0,2}0{0,8}(?P<named>\d{1,6})\b"
    # A bare number only where a record's name begins: not the 16 of "Use PostgreSQL 16", nor an issue #16.
    r"|(?:^|[\[(/,]|\band\b|\bby\b)[\s:]{0,3}0{0,8}(?P<leading>\d{1,6})(?=[-_.:)\],\s]|$)(?!-\d)",
    re.IGNORECASE,
)
_SLUG = re.compile(r"(?<![\w-])((?:19|20)\d{2}(?:\d{4}|-\d{2}-\d{2})-[\w-]{1,100})")

_FILE_NUMBER = re.compile(r"(?:adr[-_ ]?)?0{0,8}(\d{1,6})(?=[-_ .]|$)", re.IGNORECASE)
_DATED_NAME = re.compile(r"(?:adr[-_ ]?)?(?:19|20)\d{2}(?:\d{4}|-\d{2}-\d{2})(?=[-_ .]|$)", re.IGNORECASE)


class Statement(Frozen):
    """One thing an ADR says about its own standing. `quoted` is its text, for a human."""

    standing: Standing
    quoted: str
    successor: str | None = None  # `ADR-005`, or the file name of a record that has no number


def file_number(path: str) -> int | None:
    """The ADR number in a file name; None when it has none, as with names that begin with a date."""
    stem = PurePosixPath(path).stem
    if _DATED_NAME.match(stem):
        return None
    match = _FILE_NUMBER.match(stem)
    return int(match[1]) if match else None


def adr_id(number: int) -> str:
    """The name by which an ADR is shown: at least three digits."""
    return f"ADR-{number:03d}"


def is_blank(text: str) -> bool:
    """Whether a field was left empty in one of the usual ways (nothing, a dash, `none`, `n/a`)."""
    return _BLANK.fullmatch(text[:_LONGEST]) is not None


def references(text: str) -> tuple[int, ...]:
    """The ADR numbers a statement such as `[2. Use X](0002-use-x.md), ADR-4` points at, in order."""
    found: list[int] = []
    for match in _REFERENCE.finditer(_SLUG.sub(" ", text[:_LONGEST])):
        number = int(match["named"] or match["leading"])
        if number not in found:
            found.append(number)
    return tuple(found)


def successor_of(text: str) -> str | None:
    """The record that a `superseded by …` statement names first, or None when it names none."""
    numbers = references(text)
    if numbers:
        return adr_id(numbers[0])
    slug = _SLUG.search(text[:_LONGEST])
    return slug[1] if slug else None


def superseded_numbers(text: str) -> tuple[int, ...]:
    """The ADRs that a statement says this one replaces; empty when it says no such thing."""
    match = _SUPERSEDES.search(text[:_LONGEST].lower())
    return references(text[match.end() :]) if match else ()


def _clean(text: str) -> str:
    bare = re.sub(r"^[\W_]{1,20}", "", _STRUCK.sub(" ", text[:_LONGEST]).strip())
    return _LEADING_DATE.sub("", bare, count=1)


def judge(text: str) -> Statement | None:
    """What one status statement means. None: it only links to other records."""
    if _BOX.search(text[:_LONGEST]):
        text = " / ".join(_ticked(text[:_LONGEST]))
    whole = " ".join(_clean(text).split()).rstrip(" |*_")
    quoted, lower = whole[:120], whole.lower()
    crossed = _CROSS.search(text[:_LONGEST])
    if _LINK.match(lower):
        return None
    # What follows "supersedes" is about other records, titles of theirs included.
    own = _SUPERSEDES.split(lower, maxsplit=1)[0]
    hits = {standing: match.start() for standing, word in _VOCABULARY.items() if (match := word.search(own))}
    over = [standing for standing in _OVER if standing in hits]
    replaced_at = hits.get(Standing.SUPERSEDED)
    successor = None if replaced_at is None else successor_of(own[replaced_at:])
    if len(hits) > 1 and ("|" in own or (len(hits) > 2 and not successor)):
        return Statement(standing=Standing.PROPOSED, quoted=quoted)  # a template's list of choices
    if successor:
        return Statement(standing=Standing.SUPERSEDED, quoted=quoted, successor=successor)
    if over:
        return Statement(standing=min(over, key=hits.__getitem__), quoted=quoted)
    if _ACCEPTED.match(own) and Standing.PROPOSED not in hits and not (crossed or _TAKEN_BACK.search(own)):
        return Statement(standing=Standing.IN_FORCE, quoted=quoted)
    return Statement(standing=Standing.PROPOSED, quoted=quoted)


def _ticked(text: str) -> list[str]:
    """The choices whose boxes are ticked, and what stands before the first box, if it says anything."""
    before, *rest = _BOX.split(text)
    chosen = [choice for box, choice in zip(rest[::2], rest[1::2], strict=True) if _TICKED & {*box}]
    return [one.strip(" \t*-+|,;") for one in (*(chosen or ()), before) if one.strip(" \t*-+|,;0123456789.)")]


def _begins_with_status_word(text: str) -> bool:
    lower = _clean(text).lower()
    return any(word.match(lower) for word in _VOCABULARY.values())


def says_over(text: str) -> Statement | None:
    """What words say of a decision that is over or not made yet, where they say nothing else: "superseded by ADR-4",
    "draft", "no longer in use"."""
    lower = _clean(text).lower()
    for standing in (*_OVER, Standing.PROPOSED):
        match = _VOCABULARY[standing].match(lower)
        if match and _ALONE.match(lower, match.end()) and not _RFC.match(lower):
            return judge(text)
    over = Statement(standing=Standing.DEPRECATED, quoted=" ".join(text.split())[:120])
    return over if _OVER_NOW.match(lower) else None


def in_folder(path: str, statement: Statement | None) -> Statement | None:
    """What a record says of itself, with what the folders say in which it lies: `docs/adr/rejected/0005-use-x.md`."""
    for folder in PurePosixPath(path).parts[:-1]:
        said = says_over(folder) or says_over(folder.removesuffix("s"))
        if said and (said.standing is not Standing.PROPOSED or statement is None):
            statement = worst([said, *([statement] if statement else [])])
    return statement


def _cells(line: str) -> list[str]:
    return (
        [cell.strip() for cell in line.strip().strip("|").split("|")] if line.lstrip().startswith("|") else []
    )


def judge_section(lines: Sequence[str]) -> Statement:
    """What a `Status` section means. Its first line must be a status; later lines count when they begin with
    a status word. One that ends the decision wins over all others; else the last one stands."""
    statements: list[Statement] = []
    lines = [line for line in lines if line.strip()][:40]
    if any(map(_BOX.search, lines)):
        lines = _ticked("\n".join(lines))
    for line in lines:
        if statements and _OVER_NOW.match(_clean(line).lower()):
            statements.append(Statement(standing=Standing.DEPRECATED, quoted=line.strip()[:120]))
        cells = _cells(line)
        parts = [cell for cell in cells if _begins_with_status_word(cell)] if cells else [line]
        for part in parts:
            if not cells and statements and not _begins_with_status_word(part):
                continue
            statement = judge(part)
            if statement is not None:
                statements.append(statement)
    over = [statement for statement in statements if statement.standing in _OVER]
    if over:
        return over[-1]
    return statements[-1] if statements else Statement(standing=Standing.PROPOSED, quoted="")


def worst(statements: Iterable[Statement]) -> Statement | None:
    """The statement that weighs most when a page has several: an ended decision, then a pending one."""
    order = [*_OVER, Standing.PROPOSED, Standing.IN_FORCE]
    return min(
        statements,
        # Of two that end the decision alike, the one that names what came after.
        key=lambda statement: (order.index(statement.standing), statement.successor is None),
        default=None,
    )
