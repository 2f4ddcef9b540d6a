"""A claim held against one source that was read: what is kept of the source, and what it does to each statement.

The whole text that was read is looked at here, once; what is kept with the decision are the passages that bear on the
claim, the stance to every statement with its place in the text, and the digest of the text.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter

from vouchgate.ingest.claims.bounds import TEXT_CHARACTERS
from vouchgate.ingest.claims.citation import Citation, CitationType
from vouchgate.ingest.claims.source import STANDING_TOLD, UNSPOKEN, Found, Held, Stance, Standing
from vouchgate.ingest.contradictions.match import Contradiction
from vouchgate.ingest.contradictions.rules import contradictions
from vouchgate.ingest.language.asserted import without_hidden
from vouchgate.ingest.language.sentences import without_questions
from vouchgate.ingest.language.terms import ENGLISH, foreign_words, language_of
from vouchgate.ingest.language.words import NAME
from vouchgate.ingest.support import passages, turns
from vouchgate.ingest.support.address import unsaid
from vouchgate.ingest.support.clauses.standing import standing_told
from vouchgate.ingest.support.glossed import stances_in
from vouchgate.ingest.support.prepared import READ_BY_GLOSS, PreparedSource, PreparedTexts
from vouchgate.ingest.support.quotation import Quotation, look_up, stretches
from vouchgate.ingest.support.record import Record, read_record
from vouchgate.ingest.support.scope import Said, said_by
from vouchgate.ingest.support.source_text import SourceText
from vouchgate.ingest.support.stance import stances
from vouchgate.ingest.support.tokens import LISTS

log = logging.getLogger(__name__)

_OF_CHOICE = frozenset({"choice", "status"})  # rules on words of choosing, and of where a decision stands
_SAYS = {Stance.UNKNOWN: 0, Stance.SILENT: 1, Stance.SPEAKS: 2, Stance.STATES: 3, Stance.REFUTES: 4}
_CODED, _OUTER = re.compile(r"`(\w+)"), re.compile(r"(\w+)\[")
_WAYS = re.compile(r"\b(above|after|before|below|from|into|over|than|to|under|until) (?:an? |the )?`?(\w+)")
_LONGEST_MESSAGE = 3_000  # characters of a page that may tell of one change; a longer one tells of more
_BOUNDS = {"about", "exactly", "fewer", "least", "less", "more", "most", "only", "up", "without"}


def hold(
    claim: str,
    citations: Sequence[Citation],
    found: Found,
    quotations: Sequence[Quotation] = (),
    texts: PreparedTexts | None = None,
) -> Found:
    """The source as it is kept for this claim, whose `citations` name it, and whose `quotations` are from this source
    or others. `texts` are those of sources that other claims were held against. Linear; never raises: a source that
    the claim could not be held against has a stance of UNKNOWN to it as a whole."""
    texts = PreparedTexts() if texts is None else texts
    ready = texts.of(found)
    cut = found.cut or len(ready.whole) >= TEXT_CHARACTERS
    try:
        said = said_by(claim)
        shown = ready.whole if found.form == "turn" else ready.text  # people see what was not asserted, too
        excerpt = passages.passages(claim, citations, found.title, shown, lambda: ready.ranked).text
        quoted = look_up(found, lambda: ready.folded, ready.record, quotations)
        near = tuple(stretches(ready.text, quoted, quotations, found.citation.key))
        held = held_against(said, found, ready, excerpt, texts, near)
        held = _with_standing(claim, said, found, held, citations)
        beyond = _beyond_the_page(citations, found, ready)
    except Exception:  # of one source; what it says is unknown then, and the others count
        log.exception("the claim could not be held against %a", found.source_id)
        excerpt, held = "", (Held(start=0, end=len(claim), stance=Stance.UNKNOWN, score=0.0, why="failed"),)
        beyond, quoted = (), ()
    read = [ready, *([texts.later(found)] if found.later else ())]
    packed = tuple(each.packed for each in read if 0 < len(each.whole) <= TEXT_CHARACTERS)
    digests = {"text_digest": ready.digest, "later_digest": read[1].digest if found.later else ""}
    kept = {"excerpt": excerpt, "text": "", "later": "", "cut": cut, "held": held, "packed": packed}
    return found.model_copy(update=kept | digests | {"unsaid": beyond, "quoted": quoted})


def text_held(found: Found, whole: str) -> str:
    """What a source says in its own words, of all its text: what offsets of `Held.place` are in."""
    return read_record(whole).spoken if found.form == "record" else whole


def hold_again(
    claim: str, found: Found, whole: str, later: str, quotations: Sequence[Quotation] = ()
) -> tuple[Held, ...]:
    """The statements held once more against a source as it was kept, whose texts these are. May raise."""
    again = found.model_copy(update={"text": whole, "later": later})
    if found.tells_its_end:
        return found.held or ()  # where it stood no text says
    texts = PreparedTexts()
    ready = texts.of(again)
    near = tuple(stretches(ready.text, found.quoted, quotations, found.citation.key))
    said = said_by(claim)
    held = held_against(said, again, ready, found.excerpt, texts, near)
    return _with_standing(claim, said, again, held)


def _with_standing(
    claim: str, said: Said, found: Found, held: tuple[Held, ...], citations: Sequence[Citation] = ()
) -> tuple[Held, ...]:
    """The same with what the source does to statements on where it or another stands. One that is not in force, and is
    named by its `citations` in no other, is silent of all else."""
    told = standing_told(claim, found, said.statements)
    if not told or said.disguised:
        return held
    ends = [_of_standing(start, end, stance) for (start, end), stance in told.items()]
    others = [one for one in held if not any(start <= one.start < end for start, end in told)]
    ended = found.standing is not Standing.IN_FORCE and {*told.values()} == {Stance.STATES}
    within = [c.start is not None and any(start <= c.start < end for start, end in told) for c in citations]
    if ended and within and all(within):
        others = [_of_standing(one.start, one.end, Stance.SILENT) for one in others]
    return tuple(sorted((*others, *ends), key=lambda one: one.start))


def _of_standing(start: int, end: int, stance: Stance) -> Held:
    return Held(start=start, end=end, stance=stance, score=float(stance is Stance.STATES), why=STANDING_TOLD)


def _beyond_the_page(citations: Sequence[Citation], found: Found, ready: PreparedSource) -> tuple[str, ...]:
    """What the address says that the page does not. A forge's own name of an issue has words of its address."""
    named = "" if found.source_id.startswith("http") else found.source_id
    return unsaid(citations, f"{found.title}\n{named}", ready.whole, ready.lowered)


def states_all(found: Found) -> bool:
    """Whether a source by itself states every statement of the claim, of which there is one."""
    held = found.held or ()
    return bool(held) and all(one.stance is Stance.STATES for one in held)


def by_statement(sources: Iterable[Found]) -> list[list[tuple[Held, Found]]]:
    """What sources do to each statement of a claim, in the order of the claim."""
    found: dict[tuple[int, int], list[tuple[Held, Found]]] = {}
    for source in sources:
        for one in source.held or ():
            found.setdefault((one.start, one.end), []).append((one, source))
    return [pairs for _, pairs in sorted(found.items(), key=itemgetter(0))]


def held_against(  # noqa: PLR0917  (what a source is held against by, all of it)
    said: Said,
    found: Found,
    ready: PreparedSource,
    excerpt: str,
    texts: PreparedTexts,
    near: Sequence[tuple[int, int, str]] = (),
) -> tuple[Held, ...]:
    """Every statement of a claim held against a text, and against each place `near` a quotation by itself. UNKNOWN
    where the text or the claim cannot be read."""
    if unreadable := _unreadable(said, found, ready):
        return (Held(start=0, end=len(said.text), stance=Stance.UNKNOWN, score=0.0, why=unreadable),)
    if ready.language != ENGLISH:
        return tuple(stances_in(said, ready))
    record, source, sent = ready.record, ready.source, said
    if found.form == "turn":
        said = turns.addressed(said, found.who)
    message = found.citation.type != CitationType.URL or len(ready.whole) <= _LONGEST_MESSAGE
    conflicts = _conflicts(said, found.title, excerpt, record, message=message)
    held = stances(said.text, source, conflicts, said.statements)
    for start, end, section in near:
        title = f"{found.title}\n{section}" if section else found.title
        part = source.text[start:end]
        conflicts = _conflicts(said, "", part, record, message=message)
        quoted = stances(said.text, SourceText(part, title, found.project), conflicts, said.statements)
        held = tuple(map(_better, held, _moved(quoted, start)))
    held = tuple(turns.limited(held, sent, found, ready.text)) if found.recorded else held
    held = tuple(_in_english(said, one, source.text) for one in held)
    later: tuple[Held, ...] = ()
    if found.later:
        later = stances(said.text, texts.later(found).source, (), said.statements)
    if found.citation.type == CitationType.SYMBOL:
        held = tuple(_to_the_letter(said, one, source.text, found.title) for one in held)
    if record is not None:
        held = _with_unspoken(said, held, ready)
    return (*_told(said, held, later, record), *_unsaid_pictures(said, source.text))


def _with_unspoken(said: Said, held: tuple[Held, ...], ready: PreparedSource) -> tuple[Held, ...]:
    """The same, told where the context or the options of a record state what its own word is silent about."""
    silent = {(one.start, one.end) for one in held if one.stance is Stance.SILENT}
    asked = [each for each in said.statements if (each.start, each.end) in silent]
    whole = stances(said.text, ready.whole_source, (), asked) if asked else ()
    stated = {(one.start, one.end) for one in whole if one.stance is Stance.STATES}
    return tuple(
        one.model_copy(update={"why": UNSPOKEN}) if (one.start, one.end) in stated else one for one in held
    )


def _in_english(said: Said, one: Held, text: str) -> Held:
    """A statement as it is held, unless the place that states it has a small word of another language that the claim
    has not, and none of English: it may be that language's "not"."""
    if one.stance is not Stance.STATES or one.place is None:
        return one
    beyond = foreign_words(text[slice(*one.place)]) - foreign_words(said.text[one.start : one.end])
    return one.model_copy(update={"stance": Stance.UNKNOWN, "why": "language"}) if beyond else one


def _to_the_letter(said: Said, one: Held, text: str, title: str) -> Held:
    """What a definition does to a statement: one fact has every word of one that it states, with the same bounds and
    directions, every name of a parameter, be it `since` or `x`, and the outer type. It speaks of nothing (ADR-0069)."""
    statement, place = said.text[one.start : one.end], text[slice(*one.place or (0, 0))]
    ours, theirs = ({*NAME.findall(each)} for each in (statement, place))
    lacks = ({*_CODED.findall(text)} & ours) - theirs - {*NAME.findall(title)}
    lacks |= {*_OUTER.findall(place)} - ours
    turned = {*_WAYS.findall(statement)} - {*_WAYS.findall(place)}
    bounds = {word.lower() for word in ours ^ theirs} & (LISTS.modals | _BOUNDS)
    stated = one.stance is Stance.STATES and not (one.missing or lacks or turned or bounds)
    if stated or one.stance is Stance.REFUTES:
        return one
    return one.model_copy(update={"stance": Stance.SILENT, "why": one.why or "symbol"})


def _unsaid_pictures(said: Said, text: str) -> Iterator[Held]:
    """Signs that the source does not have, each run a statement of its own that it is silent about."""
    for start, end in said.pictures:
        if (shown := said.text[start:end]) not in text:
            yield Held(
                start=start, end=end, stance=Stance.SILENT, score=0.0, missing=(shown,), uncovered=(shown,)
            )


def _conflicts(
    said: Said, title: str, text: str, record: Record | None, *, message: bool
) -> tuple[Contradiction, ...]:
    clauses = [(one.start, one.end) for one in said.statements if not one.whole]
    passage = without_questions(without_hidden(f"{title}\n{text}" if title else text))
    conflicts = contradictions(said.text, passage, clauses, message=message)
    if record is not None and record.chosen:  # what was chosen, its structure says better than its words
        return tuple(each for each in conflicts if each.rule not in _OF_CHOICE)
    return tuple(conflicts)


def _moved(held: Sequence[Held], by: int) -> Iterator[Held]:
    for one in held:
        place = None if one.place is None else (one.place[0] + by, one.place[1] + by)
        yield one.model_copy(update={"place": place})


def _better(whole: Held, near: Held) -> Held:
    """What the text as a whole does to a statement, or what a place that was quoted does, when that says more. Either
    may refute it."""
    return near if _SAYS[near.stance] > _SAYS[whole.stance] else whole


def _told(said: Said, held: Sequence[Held], later: Sequence[Held], record: Record | None) -> Iterator[Held]:
    """The statements, without the sentences that only point; with what a record's options and a later record say."""
    told = _options_told(said, record)
    amended = {(one.start, one.end) for one in later if one.stance is not Stance.SILENT}
    for one in held:
        if any(start <= one.start < end for start, end in said.pointing):
            continue
        if one.stance is not Stance.REFUTES and any(start <= one.start < end for start, end in told):
            yield one.model_copy(update={"stance": Stance.REFUTES, "why": "option"})
            continue
        if (one.start, one.end) in amended and one.stance is not Stance.REFUTES:
            yield one.model_copy(update={"stance": Stance.SPEAKS, "why": "amended"})
            continue
        yield one


def _options_told(said: Said, record: Record | None) -> list[tuple[int, int]]:
    """The sentences that tell what a record weighed and did not choose as what it decided."""
    if record is None or not record.rejected:
        return []
    parts = dict.fromkeys(one.sentence for one in said.statements)
    return [(start, end) for start, end in parts if record.told_as_chosen(said.text[start:end])]


def _unreadable(said: Said, found: Found, ready: PreparedSource) -> str:
    """Why no statement can be told from the text; empty when it can. What has a form of its own, the rules know in
    English alone."""
    if said.disguised:
        return "disguised"
    if not ready.source.words:
        return "no_text"
    formed = ready.record or found.recorded or found.citation.type == CitationType.SYMBOL
    known = ready.language == ENGLISH or (ready.language in READ_BY_GLOSS and not formed)
    return "" if known and ready.language == language_of(said.text, "unknown") else "language"
