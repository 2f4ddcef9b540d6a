"""What a claim tells of the standing of what it cites: "ADR-2 is superseded by ADR-1", "Use Z was rejected (ADR-4)".

A record that is not in force vouches for nothing but that. The sentence has to say this and nothing else, with the word
that the record has for it, for whoever reads "rejected" of a draft reads another thing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from vouchgate.ingest.claims.source import Found, Stance, Standing
from vouchgate.ingest.claims.statements import Statement, statements
from vouchgate.ingest.language.terms import Kind, words_of

_LONGEST = 400  # characters of a sentence that tells nothing but where something stands
_NAME = r"(?:[A-Za-z]{2,10}[-_ #]{0,2}\d[\d-]{0,20}|commit [0-9a-f]{7,40}|[\w.-]{1,80}(?:/[\w.-]{1,80}){1,8})"
# The words for each standing. Those for a record that was replaced mean the same, of the others each its own.
_WORDS = {
    Standing.IN_FORCE: "accepted|approved|adopted|ratified|final|in force",
    Standing.PROPOSED: "proposed|a proposal|a draft|pending",
    Standing.SUPERSEDED: "superseded|replaced|obsoleted",
    Standing.REJECTED: "rejected|declined",
    Standing.DEPRECATED: "deprecated|withdrawn|retired|revoked|historic",
    Standing.REVERTED: "reverted",
}
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_OF_WORD = {word: standing for standing, words in _WORDS.items() for word in words.split("|")}
_BECAME = (
    r"(?:is|was|has been|got|has the status)(?: (?:now|still|only|already|since|currently|marked|listed|recorded|as))* "
    rf"(?P<word>{'|'.join(_OF_WORD)})(?: by (?P<by>{_NAME}))?"
    r"(?: on (?P<on>\d{4}-\d\d-\d\d|\d{1,2} [a-z]{3,9} \d{4}))?"
)
_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"(?:(?:the )?(?:decision|record|proposal) (?:in |of )?)?(?P<name>{_NAME}) {_BECAME}",
        rf"(?P<name>{_NAME}) [(](?P<title>[^()]+)[)] {_BECAME}",
        rf"(?P<title>[^()\[\]]{{3,200}}) [(\[](?:see )?(?P<name>{_NAME})[)\]] {_BECAME}",
        rf"(?P<title>[^()\[\]]{{3,200}}?) {_BECAME} [(\[](?:see )?(?P<name>{_NAME})[)\]]",
        rf"(?P<by>{_NAME}) (?P<word>supersede[sd]|replace[sd]|obsolete[sd]) (?P<name>{_NAME})",
    )
)
_CITED = re.compile(rf" [(\[](?:see )?{_NAME}[)\]]$", re.IGNORECASE)  # where it is said, at the end
_WRITTEN = re.compile(r"[-_ #]+0*(?=\d)|(?<=[a-z])0+(?=\d)")
_OF_ANY_RECORD = frozenset(word.key for word in words_of("proposal decision idea plan ADR record use"))
_NUMBERED_FILE = re.compile(r".*/(?:adr[-_])?0*(\d+)[-_.][^/]*", re.IGNORECASE)


def standing_told(claim: str, found: Found, parts: Sequence[Statement]) -> dict[tuple[int, int], Stance]:
    """The statements of a claim that tell where a cited thing stands and name this source, and what it does to each:
    it is silent of what others became. `parts` are those of the claim without its citing. Linear."""
    told: dict[tuple[int, int], Stance] = {}
    names = {_plain(each) for each in (found.citation.value, found.called, found.source_id)}
    for start, end in _stretches(claim, parts):
        said = _parsed(claim[start:end])
        if said is None or any(first <= start < last for first, last in told):
            continue
        if _plain(said["name"] or "") in names:
            stance = _stance(said["word"] or "", said["by"], said.get("title"), found)
            dated = not said.get("on") or _is_dated(said["on"] or "", found)
            told[start, end] = stance if dated or stance is not Stance.STATES else Stance.SILENT
        elif said["by"] and _plain(said["by"]) in names:
            told[start, end] = Stance.SILENT
    return told


def _stretches(claim: str, parts: Sequence[Statement]) -> Iterator[tuple[int, int]]:
    """Each sentence and its clauses, but for those to which more belongs once names are blanked out."""
    raw = statements(claim)
    for start, end in dict.fromkeys(span for each in raw for span in (each.sentence, (each.start, each.end))):
        if not any(start <= part.start < end < part.end for part in parts):
            yield start, end


def _parsed(text: str) -> dict[str, str | None] | None:
    sentence = " ".join(text.split()).rstrip(" .!") if len(text) <= _LONGEST else ""
    shapes = (_CITED.sub("", sentence), sentence)
    matches = (form.fullmatch(shape) for shape in shapes for form in _FORMS)
    return next((match.groupdict() for match in matches if match), None)


def _stance(word: str, by: str | None, title: str | None, found: Found) -> Stance:
    standing = _OF_WORD.get(word.lower(), Standing.SUPERSEDED)
    if title and not _is_title(title, found.title):
        return Stance.SILENT
    if found.standing is not standing:
        knows = found.form == "record" and found.standing in _WORDS and standing is not Standing.REVERTED
        return Stance.REFUTES if knows else Stance.SILENT
    if by:
        numbered = _NUMBERED_FILE.fullmatch(by)
        newer = f"adr{numbered[1]}" if numbered else _plain(by)
        return Stance.STATES if found.successor and newer == _plain(found.successor) else Stance.SILENT
    if standing in {Standing.SUPERSEDED, Standing.REVERTED}:
        return Stance.STATES
    said = re.search(rf"(?<!counts as )\b{re.escape(word)}\b", found.detail, re.IGNORECASE)
    return Stance.STATES if said else Stance.SILENT


def _is_dated(on: str, found: Found) -> bool:
    """Whether this is the day of a record, which is when it was decided, and not when that ended."""
    if found.dated is None or found.standing not in {Standing.IN_FORCE, Standing.PROPOSED, Standing.REJECTED}:
        return False
    day = found.dated.date()
    return on in {day.isoformat(), f"{day.day} {_MONTHS[day.month - 1]} {day.year}"}


def _is_title(said: str, title: str) -> bool:
    """Whether these are the words of a title, and no others."""
    ours, theirs = (
        {word.key for word in words_of(text) if word.kind is not Kind.FUNCTION and not word.key.isdigit()}
        - _OF_ANY_RECORD
        for text in (said, title)
    )
    return bool(theirs) and ours == theirs


def _plain(name: str) -> str:
    """A name without what is written in several ways: `ADR-0005`, `adr 5`."""
    lower = name.casefold().removeprefix("commit ").removeprefix("commit:")
    return lower if "/" in lower else _WRITTEN.sub("", lower)
