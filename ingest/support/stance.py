"""What a source does to each statement of a claim: states it, refutes it, speaks of it, is silent, or nobody knows.

Shared words are not support: they find the wrong source, not the right claim. A source STATES a statement when one
place of it has nearly all the statement says, in its order, with its names, its numbers and its polarity. First come
the reasons why it cannot (`VETOES`), then a scorer over a few measures of the nearest place (`Alignment.measures`),
whose weights were learned from rows that people had judged (`[scorer]` in `ingest/data/stance.toml`; ADR-0029).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vouchgate.ingest.claims.source import Held, Stance
from vouchgate.ingest.claims.statements import Statement, statements
from vouchgate.ingest.contradictions.match import Contradiction
from vouchgate.ingest.data import read_data
from vouchgate.ingest.support.alignment import HALF, MOST_TOKENS, Alignment, align
from vouchgate.ingest.support.clauses.acts import is_verb
from vouchgate.ingest.support.clauses.signs import asks, unticked
from vouchgate.ingest.support.qualifiers import universals
from vouchgate.ingest.support.source_text import SourceText
from vouchgate.ingest.support.tokens import LISTS, Token, tokens_of

FAINT = "faint"  # why a place that has some words of a statement is not taken to speak of it
# Those that only keep a place from showing that it says so: one with nearly all of the statement speaks of it.
_UNSHOWN = frozenset({"elsewhere", "mixed", "part", "roles", "unnamed"})
MOST_WORDS = 12  # of a statement that are named as missing
_CLAUSE = 5  # words of a clause that say something, from which on it is refuted without its sentence
_OF_SENTENCE = ("crossed", "labelled", "turned_round")  # what no clause shows by itself
_OF_DENIAL = {"denial", "elsewhere"}  # what is denied of a subject is no act of it
_OWN_PLACE = 0.6  # of a clause's weight, from which on the place of its sentence is its own
_OTHER_THING = ("replaced", "beside")  # of two places one has something else for the words of a clause

# A stretch of the claim at its nearest place, how surely it is said there, and what keeps it from being said.
_Laid = tuple[Alignment, float, str]

# Measures of which one alone keeps a place from stating a statement, and what that is called.
VETOES: Mapping[str, str] = {
    "absent_numbers": "number",
    "miscounted": "count",
    "other_sign": "sign",
    "labelled": "label",
    "missing_numbers": "far",
    "named_otherwise": "name",
    "absent_identifiers": "identifier",
    "denial_unsaid": "denial",
    "denial_said": "denial",
    "opposites": "opposite",
    "replaced": "replaced",
    "added": "added",
    "left_out": "left out",
    "set_otherwise": "relation",
    "universals": "universal",
    "former": "former",
    "reported": "reported",
    "under": "under",
    "governed": "governed",
    "exchanged": "exchanged",
    "turned_about": "exchanged",
    "wrong_end": "exchanged",
    "crossed": "crossed",
    "compared": "opposite",
    "borrowed": "borrowed",
    "stray": "stray",
    "beside": "beside",
    "other_verb": "beside",
    "manner": "manner",
    "other_row": "row",
    "passed_over": "passed over",
    "only_named": FAINT,
    "bystander": "bystander",
    "unrelated": "relation",
    "turned_round": "relation",
    "amounts_to_less": "amount",
    # These (`_UNSHOWN`) come behind what shows more.
    "missing_names": "unnamed",
    "swapped": "roles",
    "mixed": "mixed",
    "elsewhere": "elsewhere",
    "part_unsaid": "part",
    # With these alone a place may still speak of a statement (`ingest.checks.statements.TURNED` has the others).
    "possible": "possible",
    "framed": "framed",
    "intended": "intended",
    "subject": "subject",
    "scoped": "scoped",
}


def stances(
    text: str,
    source: SourceText,
    conflicts: Sequence[Contradiction] = (),
    parts: Sequence[Statement] | None = None,
) -> tuple[Held, ...]:
    """The stance of a source to every statement of `text`, a claim in which what only cites is blanked out; `parts`
    are its statements, where they are known. What contradicts one (`conflicts`) refutes it. Linear in both; never
    raises."""
    found = []
    laid: dict[tuple[int, int], _Laid] = {}
    for statement in statements(text) if parts is None else parts:
        tokens = tokens_of(text[statement.start : statement.end], statement.start)
        if not statement.whole and not any(token.content or token.low in LISTS.negations for token in tokens):
            continue  # a clause of small words says what its sentence does
        if statement.sentence not in laid:
            start, end = statement.sentence
            laid[statement.sentence] = _lay(text, start, end, source)
        best = laid[statement.sentence]
        turns = _turns(best[0])
        of_sentence = statement.whole or _only_leads(statement, tokens)
        if not of_sentence and not any(map(best[0].measures.get, _OF_SENTENCE)):
            clause = _lay(text, statement.start, statement.end, source)
            cut = (
                len(best[0].statement) >= MOST_TOKENS
            )  # what of the sentence was not laid over, nobody looked at
            best = clause if cut else _nearer(best, clause)
            turns = _turns(clause[0]) and len(clause[0].wanted) >= _CLAUSE
        against = next((c for c in conflicts if statement.start <= c.claim_start < statement.end), None)
        held = _held(statement, tokens, best, against, turns=turns)
        if held.stance is not Stance.REFUTES and (unheld := _unheld(text, statement, tokens)):
            held = held.model_copy(update=unheld)
        found.append(held)
    return tuple(found)


def _only_leads(statement: Statement, tokens: Sequence[Token]) -> bool:
    """Whether a clause begins its sentence and has no verb: "the proxy" of "the proxy and the relay keep mail"."""
    verbs = (is_verb(tokens, at) for at in range(len(tokens)))
    return statement.start == statement.sentence[0] and not any(verbs)


def _unheld(text: str, statement: Statement, tokens: Sequence[Token]) -> dict[str, object]:
    """What a statement comes to that no source can state: one that asks, and one that is too long to be looked at."""
    if len(tokens) > MOST_TOKENS:
        return {"stance": Stance.UNKNOWN, "why": "long"}
    sentence = text[slice(*statement.sentence)]
    if unticked(sentence):
        return {"stance": Stance.SILENT, "why": "label"}
    return {"stance": Stance.SILENT, "why": "asks"} if asks(sentence) else {}


def _lay(text: str, start: int, end: int, source: SourceText) -> _Laid:
    """A stretch of the claim over the source, how surely it is said there, and what keeps it from being said."""
    alignment = align(text, start, end, source)
    return alignment, SCORER.score(alignment.measures), _veto(alignment)


def _veto(alignment: Alignment) -> str:
    return next((why for measure, why in VETOES.items() if alignment.measures.get(measure)), "")


def _nearer(sentence: _Laid, clause: _Laid) -> _Laid:
    """A clause is said where its sentence is, when it has its share of that place, or at a place of its own."""
    alignment = clause[0]
    lost = {token.keys[0] for token in sentence[0].missing}
    weight = sum(token.weight for token in alignment.wanted)
    here = sum(token.weight for token in alignment.wanted if token.keys[0] not in lost)
    said = clause[1] >= SCORER.states and not clause[2]
    other = sentence[2] in _OTHER_THING and not said  # what the place has in its stead shows what it is about
    own = (here < _OWN_PLACE * weight and not other) or (clause[1] >= sentence[1] and not clause[2])
    return clause if own else sentence


def _held(
    statement: Statement, tokens: Sequence[Token], laid: _Laid, against: Contradiction | None, *, turns: bool
) -> Held:
    alignment, score, veto = laid
    absent, opener = _uncovered(alignment, tokens)
    # A row of a table is no sentence, and has a low score: what has all of a statement in one row states it.
    enough = SCORER.plainly if alignment.row and not alignment.missing else SCORER.states
    stated = not (veto or absent) and score >= enough
    near = alignment.place is not None and score >= SCORER.speaks and alignment.measures["here"] > HALF
    apart = near and not stated and sum(token.content for token in tokens) >= _CLAUSE
    if against is not None and (apart or not against.clause):
        stance, veto = Stance.REFUTES, against.rule
    elif turns:
        stance, veto = Stance.REFUTES, "denied"
    elif not near:
        stance = Stance.SILENT
    else:
        stance = Stance.STATES if stated else Stance.SPEAKS
        if not (stated or veto or alignment.row) and score < SCORER.plainly:
            veto = FAINT
    return Held(
        start=statement.start,
        end=statement.end,
        stance=stance,
        score=round(score, 4),
        missing=tuple(token.shown for token in alignment.missing)[:MOST_WORDS],
        uncovered=(absent if stance is Stance.STATES else (*opener, *absent))[:MOST_WORDS],
        place=alignment.place,
        why=veto,
        nearly=stance is Stance.SPEAKS and veto in _UNSHOWN and score >= SCORER.nearly,
    )


def _turns(alignment: Alignment) -> bool:
    """Whether nothing but a denial keeps the place from stating what it says otherwise."""
    found = alignment.measures
    whys = {why for measure, why in VETOES.items() if found.get(measure)}
    return bool(found.get("turned")) and "denial" in whys and whys <= _OF_DENIAL


def _uncovered(alignment: Alignment, tokens: Sequence[Token]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names, numbers and identifiers that the source has nowhere; and the word that opens the statement, if it is one
    more: of 3,020 labelled rows 24 are stated but for that, 19 of them rightly, so it tells what lacks and no more."""
    own = {token.start for token in tokens}
    # A capital at the start may make a name of anything: a source that has the word nowhere has not its subject.
    opens = next((token.start for token in tokens if token.content and token.shown[:1].isupper()), -1)
    here = [token for token in alignment.absent if token.start in own]
    absent = [token.shown for token in here if token.number or token.name or token.identifier]
    if alignment.measures.get("universals"):
        absent += [token.shown for token in universals(tokens)]
    opener = [token.shown for token in here if token.start == opens and token.shown not in absent]
    return tuple(dict.fromkeys(absent)), tuple(opener)


@dataclass(frozen=True, slots=True)
class Scorer:
    """A weighted sum of measures, made a probability by the logistic function."""

    intercept: float
    weights: Mapping[str, float]
    states: float  # from here on a place states a statement
    speaks: float  # and from here on it speaks of it
    nearly: (
        float  # from here on a place has nearly all of it, which is enough to speak of it in another order
    )
    plainly: float  # and here so that it may do; a row of a table is no sentence, and has a low score

    def score(self, measures: Mapping[str, float]) -> float:
        """0 to 1; 0 where there is no place to measure."""
        if not measures:
            return 0.0
        total = self.intercept + sum(weight * measures[name] for name, weight in self.weights.items())
        return 1 / (1 + math.exp(-total))


def _load() -> Scorer:
    raw = read_data("stance.toml")["scorer"]
    return Scorer(
        raw["intercept"], raw["weights"], raw["states"], raw["speaks"], raw["nearly"], raw["plainly"]
    )


# A constant read once from the package's own data file.
SCORER = _load()
