"""Is every statement of a claim covered by what it cites? A claim is as good as its worst statement.

Each source was held against every statement (`Found.held`); here they are put together. One source may cover one
statement, and another the next. What no source covers is named: the statement, and the words that no source has.
Only asked when every source could be read and none speaks against the claim, for then other rules decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from vouchgate.ingest.check import Check, Findings, ReadClaim, shorten
from vouchgate.ingest.claims.claim import Finding, Span, Verdict
from vouchgate.ingest.claims.source import UNSPOKEN, Found, Held, Stance
from vouchgate.ingest.language.terms import words_of
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.scoring.score import is_listed
from vouchgate.ingest.support.beside import said_beside
from vouchgate.ingest.support.holding import by_statement
from vouchgate.ingest.support.stance import FAINT
from vouchgate.ingest.support.turns import NOT_OWN, OF_PERSON

CHECK = "statements"
NAMED = 4  # words of a statement that a message names
_OF_ANOTHER = " The source says this of something else, or of another time or place."
_OTHER_WORD = " The source has another word in place of one of these."
_SIDES = " The source has it the other way about."
# Why a place that speaks of a statement says something else, and what is told of that when not a word is missing.
TURNED = {
    "denial": " One of the two denies it, and the other does not.",
    "opposite": _OTHER_WORD,
    "replaced": _OTHER_WORD,
    "beside": _OTHER_WORD,
    "added": " The source does not say that of it.",
    "left out": " The source says it of some cases or of another time.",
    "manner": " The source does not say how.",
    "amended": " A later record changes what this one says.",
    "count": " The source counts otherwise.",
    "sign": " The source has the number without that sign, or on another scale.",
    "amount": " The source has that number as a limit or in a range, or says it of some or of a part.",
    "label": " What stands before the colon is not in the source.",
    "asks": " It asks, and says nothing.",
    "name": " The source says this of something else.",
    "unnamed": " The source says this of something else.",
    "far": " The source has the number of something else.",
    "roles": _SIDES,
    "exchanged": _SIDES,
    "crossed": _SIDES,
    "mixed": _OF_ANOTHER,
    "borrowed": _OF_ANOTHER,
    "stray": _OF_ANOTHER,
    "elsewhere": _OF_ANOTHER,
    "passed over": " The source prefers something else to it.",
    "bystander": _OF_ANOTHER,
    "row": _OF_ANOTHER,
    "relation": " The source does not set the two beside each other so.",
    "part": " Of a part of it the source has next to nothing.",
    "under": " The source has it under a heading, a condition or a label that the claim leaves out.",
    "governed": " The source says of it that it is planned, tried, allowed, rare or doubted.",
    FAINT: " The source has some of its words, and nothing like it.",
    "former": " The source says that it was so once.",
    UNSPOKEN: " The record has it only in a part that is not its own word, such as its context or its options.",
    "standing": " What it cites does not say so of its own standing.",
    "reported": " The source only tells that somebody says so.",
    NOT_OWN: " A user's turn shows just what that user wants, likes, decided or said, and nothing else.",
    OF_PERSON: " What a person wants or said, no tool's output shows.",
}


@dataclass(frozen=True, slots=True)
class Coverage:
    """What all sources together do to one statement."""

    start: int
    end: int
    stance: Stance
    listed: bool  # some source that covers it is listed, official, or of the repository
    inferred: bool = False  # it is stated to the entailment model, whose word the policy takes
    lacking: tuple[str, ...] = ()  # words that no source has
    why: str = ""  # what keeps the first source from stating it


def cover(sources: Sequence[Found], policy: Policy) -> tuple[Coverage, ...]:
    """Each statement with the best that any source does to it, in the order of the claim."""
    return tuple(_best(pairs, policy) for pairs in by_statement(sources))


def _best(pairs: Sequence[tuple[Held, Found]], policy: Policy) -> Coverage:
    """One statement: stated by any source, or to the model whose word counts, else spoken of by one, else by none."""
    one = pairs[0][0]
    stating = [source for held, source in pairs if held.stance is Stance.STATES]
    if stating:
        return Coverage(
            one.start, one.end, Stance.STATES, any(is_listed(source, policy) for source in stating)
        )
    least, speaking = policy.entailment.lifts_from, []
    for held, source in pairs:
        entailed = 0 < least <= held.probability and held.relation == "entailment"
        # What a place says in other words is what a model that may lift is there for: it is asked, and has to.
        open_ = (
            held.nearly
            or held.why not in TURNED
            or (held.why == FAINT and least > 0 and (entailed or not held.relation))
        )
        if held.stance is Stance.SPEAKS and not held.uncovered and open_ and is_listed(source, policy):
            speaking.append(entailed)
    if speaking:
        stance = Stance.STATES if (lifted := any(speaking)) else Stance.SPEAKS
        return Coverage(one.start, one.end, stance, listed=True, inferred=lifted)
    nowhere = set.intersection(*(set(held.uncovered or held.missing) for held, _ in pairs))
    lacking = tuple(word for word in pairs[0][0].uncovered or pairs[0][0].missing if word in nowhere)
    return Coverage(one.start, one.end, Stance.SILENT, listed=False, lacking=lacking, why=one.why)


def _judge(read: ReadClaim, findings: Findings) -> Iterator[Finding]:
    sources = [
        reading for reading in read.readings if isinstance(reading, Found) and reading.held is not None
    ]
    if not sources or len(sources) < len(read.readings):
        return
    if any(one.stance is Stance.UNKNOWN for source in sources for one in source.held or ()):
        return
    if beside := list(said_beside(read.claim)):
        yield _beside(beside)
        return
    beyond = [source for source in sources if source.unsaid]
    if beyond:
        yield _beyond(read, beyond)
        return
    covered = cover(sources, read.policy)
    if not covered:
        files = [source.source_id for source in sources if source.citation.type == "path"]
        homes = tuple(each.source_id.partition("::")[0] for each in sources if each.citation.type == "symbol")
        if files and homes and not any(file.startswith(homes) for file in files):
            yield _finding(Verdict.DOUBT, "uncovered", "No file that it cites defines what it cites.", ())
            return
        yield _finding(Verdict.PASS, "pointer", "The claim says nothing beyond what it cites.", covered)
        return
    open_ = [each for each in covered if each.stance is Stance.SILENT]
    if open_:
        yield _finding(Verdict.DOUBT, "uncovered", _uncovered(read.claim.content, open_, sources), open_)
    elif any(each.stance is Stance.SPEAKS for each in covered):
        message = "Its sources speak of every statement, and are not shown to say it."
        yield _finding(Verdict.PASS, "spoken_of", message, [c for c in covered if c.stance is Stance.SPEAKS])
    elif read.policy.unlisted_pages == "queue" and not all(each.listed for each in covered):
        message = "Only pages of publishers that nobody listed say it."
        yield _finding(Verdict.DOUBT, "unlisted", message, [each for each in covered if not each.listed])
    else:
        inferred = [each for each in covered if each.inferred]
        as_read = ", as the entailment model reads them" if inferred else ""
        yield _finding(Verdict.PASS, "stated", f"Its sources state every statement{as_read}.", inferred)


def _beside(fields: Sequence[tuple[str, tuple[str, ...]]]) -> Finding:
    """What is sent along for the store behind the gate, and is no part of what the sources were asked about."""
    where, words = fields[0]
    named = ", ".join(f"“{word}”" for word in words[:NAMED])
    more = f" (and {len(fields) - 1} more)" if len(fields) > 1 else ""
    message = f"{where} says what the claim does not: {named}{more}. Say it in the text."
    facts: dict[str, JsonValue] = {"lacking": list(words), "where": where}
    return Finding(check=CHECK, verdict=Verdict.DOUBT, code="uncovered", message=message, facts=facts)


def _beyond(read: ReadClaim, sources: Sequence[Found]) -> Finding:
    """What an agent writes into an address is a statement that only the page itself can cover."""
    words = tuple(dict.fromkeys(word for source in sources for word in source.unsaid))
    named = ", ".join(f"“{word}”" for word in words[:NAMED])
    more = f" (and {len(sources) - 1} more)" if len(sources) > 1 else ""
    address = shorten(sources[0].citation.value)
    message = f"The address {address} says more than its page: that has nothing of {named}{more}."
    spans = tuple(
        Span(start=citation.start, end=citation.end)
        for source in sources
        for citation in read.naming(source.citation.key)
        if citation.start is not None and citation.end is not None
    )
    facts: dict[str, JsonValue] = {"lacking": list(words)}
    return Finding(
        check=CHECK, verdict=Verdict.DOUBT, code="uncovered", message=message, spans=spans, facts=facts
    )


def _uncovered(content: str, open_: Sequence[Coverage], sources: Sequence[Found]) -> str:
    worst = open_[0]
    quoted = shorten(content[worst.start : worst.end])
    nowhere = _nowhere(worst.lacking, sources)
    words = ", ".join(f"“{word}”" for word in (nowhere or worst.lacking)[:NAMED])
    without = f": no source has {words}" if nowhere else f", which has {words} elsewhere" if words else ""
    more = f" (and {len(open_) - 1} more)" if len(open_) > 1 else ""
    if worst.why == UNSPOKEN:
        without = ""
    why = "" if words and worst.why not in {NOT_OWN, OF_PERSON, UNSPOKEN} else TURNED.get(worst.why, "")
    return f"“{quoted}” is not covered by what the claim cites{without}{more}.{why}"


def _nowhere(words: Sequence[str], sources: Sequence[Found]) -> list[str]:
    """Of the words that no place has beside the rest of a statement, those that no source has anywhere, as far as its
    excerpt tells: that is chosen for the words of the claim."""
    if not words:
        return []
    said = {word.key for source in sources for word in words_of(f"{source.title}\n{source.excerpt}")}
    return [word for word in words if any(each.key not in said for each in words_of(word))]


def _finding(verdict: Verdict, code: str, message: str, named: Iterable[Coverage]) -> Finding:
    spans = tuple(Span(start=each.start, end=each.end) for each in named)
    lacking = tuple(dict.fromkeys(word for each in named for word in each.lacking))
    facts = {"lacking": list(lacking)} if lacking else {}
    return Finding(check=CHECK, verdict=verdict, code=code, message=message, spans=spans, facts=facts)


CHECKS = (
    Check(
        name=CHECK,
        title="What its sources cover",
        codes={
            "stated": Verdict.PASS,
            "spoken_of": Verdict.PASS,
            "pointer": Verdict.PASS,
            "uncovered": Verdict.DOUBT,
            "unlisted": Verdict.DOUBT,
        },
        order=55,
        judge_findings=_judge,
    ),
)
