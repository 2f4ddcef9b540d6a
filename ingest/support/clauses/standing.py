"""What a claim tells of the standing of what it cites: "ADR-2 is superseded by ADR-1", "Use Z was rejected (ADR-4)".

A record that is not in force vouches for nothing but that. The sentence has to say this and nothing else, with the word
that the record has for it, for whoever reads "rejected" of a draft reads another thing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from vouchgate.ingest.claims.source import Found, Stance, Standing
from vouchgate.ingest.claims.statements import Statement, statements
from vouchgate.ingest.language.dates import MONTHS, parts_of_date
from vouchgate.ingest.language.terms import Kind, words_of

_LONGEST = 400  # characters of a sentence that tells nothing but where something stands
_NAME = r"(?:[A-Za-z]{2,10}[-_ #]{0,2}\d[\d-]{0,20}|commit [0-9a-f]{7,40}|[\w.-]{1,80}(?:/[\w.-]{1,80}){1,8})"
# The words for each standing. Those for a record that was replaced mean the same, of the others each its own.
_WORDS = {
    Standing.IN_FORCE: "accepted|approved|adopted|ratified|final|in force",
    Standing.PROPOSED: (
        "proposed|a proposal|a draft|pending|deferred|postponed|on hold|in review|under review|under discussion"
    ),
    Standing.SUPERSEDED: "superseded|replaced|obsoleted",
    Standing.REJECTED: "rejected|declined|turned down",
    Standing.DEPRECATED: "deprecated|withdrawn|retired|revoked|historic",
    Standing.REVERTED: "reverted",
}
_OF_WORD = {word: standing for standing, words in _WORDS.items() for word in words.split("|")}
# Words that a record may have another one for; most it has to have itself.
_SAID_AS = {"turned down": "(?:rejected|declined)"}
# What is true of every record that was in force once.
_ENDED = (
    *("no longer in force", "no longer valid", "no longer current", "no longer applicable"),
    *("no longer applies", "out of force", "obsolete"),
)
_ENDS = {Standing.SUPERSEDED, Standing.DEPRECATED, Standing.REVERTED}
_MONTH = rf"(?:{'|'.join(MONTHS)})"
_DAY = rf"\d{{4}}-\d\d(?:-\d\d)?|(?:\d{{1,2}} )?{_MONTH} \d{{4}}|{_MONTH} \d{{1,2}}, \d{{4}}"
_ON = rf"(?: (?:on|in|since|of|as of) (?P<on>{_DAY}))?"
_STILL = "(?: (?:so far|for now|at present|to date|as yet|yet))?"
_BECAME = (
    r"(?:(?:is|was|has been|got|has the status)"
    r"(?: (?:now|still|only|already|since|currently|marked|listed|recorded|as))*"
    rf" (?P<word>{'|'.join((*_OF_WORD, *_ENDED))})|(?P<ended>no longer applies))"
    rf"(?: by (?P<by>{_NAME}))?{_ON}{_STILL}"
)
_TOOK = "(?:has )?(?:taken its place|took its place|replaces it|replaced it|supersedes it|superseded it)"
_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"(?:(?:the )?(?:decision|record|proposal) (?:in |of )?)?(?P<name>{_NAME}) {_BECAME}",
        rf"(?P<name>{_NAME}) [(](?P<title>[^()]+)[)] {_BECAME}",
        rf"(?P<title>[^()\[\]]{{3,200}}) [(\[](?:see )?(?P<name>{_NAME})[)\]] {_BECAME}",
        rf"(?P<title>[^()\[\]]{{3,200}}?) {_BECAME} [(\[](?:see )?(?P<name>{_NAME})[)\]]",
        rf"(?P<by>{_NAME}) (?P<word>supersede[sd]|replace[sd]|obsolete[sd]) (?P<name>{_NAME}){_ON}",
        rf"(?P<name>{_NAME}) (?P<word>rejected|declined|turned down|deferred|postponed) (?P<itself>[^()\[\]]{{3,200}})",
        rf"(?P<by>{_NAME}) (?P<word>took) the place of (?P<name>{_NAME}){_ON}",
        rf"(?P<name>{_NAME}) (?:is (?P<word>{'|'.join(_ENDED)})|(?P<ended>no longer applies))(?:[;,]| and|, and| as)"
        rf" (?P<by>{_NAME}) {_TOOK}{_ON}",
    )
)
_DATE = re.compile(rf"\b(?:{_DAY})\b", re.IGNORECASE)
_HEAD = 4_000  # characters of a record in which its status stands
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
        if said.get("itself") and not _is_title(said["itself"] or "", found.title):
            continue  # it rejected something else, of which its text may tell
        by = said.get("by")
        if _plain(said["name"] or "") in names:
            word = (said.get("word") or said.get("ended") or "").lower()
            stance = _stance(word, by, said.get("title"), found)
            dated = not said.get("on") or _is_dated(said["on"] or "", found)
            told[start, end] = stance if dated or stance is not Stance.STATES else Stance.SILENT
        elif by and _plain(by) in names:
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
    standings = _ENDS if word in _ENDED else {_OF_WORD.get(word, Standing.SUPERSEDED)}
    if title and not _is_title(title, found.title):
        return Stance.SILENT
    if found.standing not in standings:
        knows = found.form == "record" and found.standing in _WORDS and standings != {Standing.REVERTED}
        return Stance.REFUTES if knows else Stance.SILENT
    if by:
        numbered = _NUMBERED_FILE.fullmatch(by)
        newer = f"adr{numbered[1]}" if numbered else _plain(by)
        return Stance.STATES if found.successor and newer == _plain(found.successor) else Stance.SILENT
    if word in _ENDED or found.standing in {Standing.SUPERSEDED, Standing.REVERTED}:
        return Stance.STATES
    written = _SAID_AS.get(word, re.escape(word))
    said = re.search(rf"(?<!counts as )\b{written}\b", found.detail, re.IGNORECASE)
    return Stance.STATES if said else Stance.SILENT


def _is_dated(on: str, found: Found) -> bool:
    """Whether this is the day or the month of where a record stands: its own, which is when it was decided and not
    when that ended, or what its text has beside the word for its standing."""
    wanted = _date(on)
    if (
        found.dated is not None
        and found.standing not in _ENDS
        and wanted <= _date(found.dated.date().isoformat())
    ):
        return True
    told = re.compile(rf"\b(?:{_WORDS.get(found.standing, '(?!)')})\b", re.IGNORECASE)
    lines = (line for line in found.text[:_HEAD].splitlines() if told.search(line))
    return any(wanted <= _date(each.group()) for line in lines for each in _DATE.finditer(line))


def _date(written: str) -> frozenset[str]:
    """The keys of the year, the month and the day of a date."""
    parts = parts_of_date(written)
    return frozenset(key for key, _ in parts) or frozenset(word.key for word in words_of(written))


def _is_title(said: str, title: str) -> bool:
    """Whether these are words of a title, at least half of them, and no others."""
    ours, theirs = (
        {word.key for word in words_of(text) if word.kind is not Kind.FUNCTION and not word.key.isdigit()}
        - _OF_ANY_RECORD
        for text in (said, title)
    )
    return bool(ours) and ours <= theirs and 2 * len(ours) >= len(theirs)


def _plain(name: str) -> str:
    """A name without what is written in several ways: `ADR-0005`, `adr 5`."""
    lower = name.casefold().removeprefix("commit ").removeprefix("commit:")
    return lower if "/" in lower else _WRITTEN.sub("", lower)
