"""A question answered by what sources state: a model reads claims out of texts, and rules do everything else.

PLAN makes queries of the question, HARVEST reads texts, NORMALIZE has a model write down what each says (a claim
without words of its text is dropped), CORROBORATE holds each claim against all of them, SCORE labels, RENDER writes.
Only NORMALIZE asks a model. What was read and what the model wrote can be kept: from there on everything is pure.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from vouchgate.harvest.budget import Purse
from vouchgate.harvest.search import Pages, Searched, World, added, harvest
from vouchgate.ingest.claims.decision import Label
from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.ingest.claims.source import Stance
from vouchgate.ingest.corroboration.decision import conclude
from vouchgate.ingest.corroboration.history import (
    AgentResult,
    Attempt,
    Failure,
    Hit,
    Outcome,
    SearchHistory,
    SearchTask,
)
from vouchgate.ingest.corroboration.hits import Reading, groups_of, hits_of
from vouchgate.ingest.corroboration.proof import plain
from vouchgate.ingest.corroboration.queries import plan
from vouchgate.ingest.dedup.relation import Relation, relation
from vouchgate.ingest.language.align import find
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.sources.model import MARKED, Form, ModelClient, NoReply, parse_object
from vouchgate.ingest.support.passages import passages

MODEL_SECONDS = 120.0  # for one text: a dozen sentences take a small model on a processor that long
MODEL_AT_ONCE = 2  # texts; a small endpoint answers one after the other anyway
MOST_ASKED = 24  # texts that a model reads for a question
MOST_CLAIMS = 24  # that are held against all texts
_LETTERS = 8  # letters and digits that a quotation has at least; shorter ones are somewhere in any text
_WHOLE = "the question"  # in place of a query, in gaps that are of no look

_FORM = Form(
    name="claims",
    schema={
        "type": "object",
        "properties": {
            "claims": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"claim": {"type": "string"}, "quote": {"type": "string"}},
                    "required": ["claim", "quote"],
                    "additionalProperties": False,
                },
            }
        },
        "required": ["claims"],
        "additionalProperties": False,
    },
    tokens=2_000,
    characters=12_000,
)
_INSTRUCTIONS = f"""\
You write down what a text says that answers a question. What you know from elsewhere does not count.

Question and text stand between the marks "{{marker}} QUESTION", "{{marker}} TITLE", "{{marker}} TEXT" and \
"{{marker}} END". {MARKED}

Answer with one JSON object and nothing before or after it:
{{{{"claims": [{{{{"claim": "...", "quote": "..."}}}}]}}}}

claim: one sentence that is true or false by itself: it names what it is about, and keeps the names, numbers, dates \
and words of the text. At most eight of them; an empty list if the text does not answer the question.
quote: the words of the text that say so, copied exactly, at most 300 characters."""


class _Claim(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    claim: str = Field(min_length=1, max_length=1_000)
    quote: str = Field(max_length=1_000)


class _Claims(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    claims: list[_Claim] = Field(max_length=20)


class Reply(Frozen):
    """What a model wrote of a text, unread. `failed` says why there is nothing."""

    content: str = ""
    failed: str = ""


class Recording(Frozen):
    """What a question found in the world: all that is not pure. `replies` go with the first of `readings`."""

    question: str = Field(min_length=1)
    readings: tuple[Reading, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    failures: tuple[Failure, ...] = ()
    replies: tuple[Reply, ...] = ()


class Normalized(NamedTuple):
    """What a text says, as a model wrote it down. `failures` say, a sentence each, what of it does not count."""

    claims: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()


class Finding(Frozen):
    """A claim that answers the question, and what the sources say of it."""

    claim: str
    result: AgentResult


class Research(Frozen):
    """The answer: what is a FACT, what sources state without being enough for one, and what could not be found out."""

    question: str
    facts: tuple[Finding, ...]
    inferences: tuple[Finding, ...]
    gaps: tuple[Failure, ...]


async def gather(question: str, world: World, purse: Purse, policy: Policy, model: ModelClient) -> Recording:
    """PLAN and HARVEST, with a model asked about each text, until something is a FACT, or nothing is left to try or to
    spend."""
    searched, pages = Searched(SearchHistory(), ()), Pages()
    replies: tuple[Reply, ...] = ()
    turns = asyncio.Semaphore(MODEL_AT_ONCE)
    spent: tuple[Failure, ...] = ()
    for path, query in plan(question, tuple(world.paths)):
        look = await harvest(path, query, world, purse, pages)
        if look is None:
            spent = (Failure(path=path, query=query, why=purse.empty()),)
            break
        searched = added(searched, path, query, look)
        new = searched.readings[len(replies) : MOST_ASKED]
        replies += tuple(await asyncio.gather(*(ask(question, reading, model, turns) for reading in new)))
        if new and answer(_recording(question, searched, replies), policy).facts:
            break
    recording = _recording(question, searched, replies)
    return recording.model_copy(update={"failures": recording.failures + spent})


async def ask(question: str, reading: Reading, model: ModelClient, turns: asyncio.Semaphore) -> Reply:
    """What a model writes down of the passages of a text that bear on a question. Its time begins with its turn."""
    texts = {
        "QUESTION": question,
        "TITLE": reading.title,
        "TEXT": passages(question, (), reading.title, reading.text).text,
    }
    async with turns:
        reply = await model.ask(_INSTRUCTIONS, texts, _FORM)
    return Reply(failed=f"the model {reply.why}") if isinstance(reply, NoReply) else Reply(content=reply)


def normalize(reading: Reading, reply: Reply) -> Normalized:
    """NORMALIZE: the claims of a reply whose quotations stand in the text. Pure; never raises."""
    if reply.failed:
        return Normalized(failures=(reply.failed,))
    try:
        claims = _Claims.model_validate(parse_object(reply.content)).claims
    except (ValidationError, ValueError, RecursionError):
        return Normalized(failures=("the model did not answer in the form it was asked for",))
    kept = [
        " ".join(one.claim.split())
        for one in claims
        if sum(map(str.isalnum, one.quote)) >= _LETTERS and find(one.quote, reading.text) is not None
    ]
    dropped = len(claims) - len(kept)
    why = f"{dropped} of {len(claims)} claims were dropped: their quotations do not stand in the text"
    return Normalized(tuple(filter(None, kept)), (why,) if dropped else ())


def corroborate(
    claims: Sequence[str], readings: Sequence[Reading], policy: Policy
) -> tuple[tuple[str, tuple[Hit, ...]], ...]:
    """CORROBORATE: each claim held against every text. Pure."""
    groups = groups_of(readings, policy)
    return tuple((claim, hits_of(claim, readings, policy, groups)) for claim in claims)


def distinct(claims: Sequence[str], policy: Policy) -> tuple[str, ...]:
    """The claims without those that repeat one of the first MOST_CLAIMS. Pure; linear in the claims."""
    kept: list[str] = []
    for claim in claims:
        same = (relation(one, claim, policy.threshold, policy.values).relation for one in kept[:MOST_CLAIMS])
        if Relation.REPEAT not in same:
            kept.append(claim)
    return tuple(kept)


def score(held: Sequence[tuple[str, tuple[Hit, ...]]], policy: Policy) -> tuple[Finding, ...]:
    """SCORE: what the texts say of each claim. Pure."""
    return tuple(
        Finding(claim=claim, result=conclude(SearchTask(claim=claim), SearchHistory(hits=hits), policy))
        for claim, hits in held
    )


def answer(recording: Recording, policy: Policy) -> Research:
    """Everything after the world was asked. Pure: the same recording and policy give the same answer."""
    read = list(zip(recording.readings, recording.replies, strict=False))
    gaps = [*recording.failures]
    gaps += (
        Failure(path=one.path, query=one.query, why="nothing was found")
        for one in recording.attempts
        if not one.found
    )
    claims: list[str] = []
    for reading, reply in read:
        said = normalize(reading, reply)
        claims += said.claims
        place = reading.url or reading.title
        gaps += (Failure(path="claims", query=place, why=why) for why in said.failures)
    if len(recording.readings) > len(read):
        why = f"texts that were found and no model was asked about: {len(recording.readings) - len(read)}"
        gaps.append(Failure(path="claims", query=_WHOLE, why=why))
    if not claims:
        why = "no text that was read answers it" if read else "nothing was read"
        gaps.append(Failure(path="claims", query=_WHOLE, why=why))
    different = distinct(claims, policy)
    gaps += (
        Failure(path="claims", query=claim, why=f"{MOST_CLAIMS} claims are looked at, and this is one more")
        for claim in different[MOST_CLAIMS:]
    )
    held = corroborate(different[:MOST_CLAIMS], recording.readings, policy)
    found = score(held, policy)
    facts = tuple(one for one in found if one.result.label is Label.FACT)
    inferences = tuple(one for one in found if one not in facts and _is_stated(one.result))
    gaps += (
        Failure(path="claims", query=one.claim, why=_why_none(hits))
        for one, (_, hits) in zip(found, held, strict=True)
        if one not in facts and one not in inferences
    )
    return Research(
        question=recording.question, facts=facts, inferences=inferences, gaps=tuple(dict.fromkeys(gaps))
    )


def render(research: Research) -> str:
    """RENDER: the answer as Markdown. Text of others is escaped."""
    return "\n".join(_lines(research)) + "\n"


def _recording(question: str, searched: Searched, replies: tuple[Reply, ...]) -> Recording:
    return Recording(
        question=question,
        readings=searched.readings,
        attempts=searched.history.attempts,
        failures=searched.history.failures,
        replies=replies,
    )


def _is_stated(result: AgentResult) -> bool:
    voices = result.debug["supporting_voices"], result.debug["refuting_voices"]
    return result.outcome is not Outcome.FALSE and voices[0] != 0 and voices[1] == 0


def _why_none(hits: Sequence[Hit]) -> str:
    stances = {hit.stance for hit in hits}
    if Stance.REFUTES in stances:
        return f"texts that were read say otherwise{', and others state it' * (Stance.STATES in stances)}"
    if Stance.STATES in stances:
        return "what states it is banned, and counts for nothing"
    return "no text that was read states it in words that the rules can follow"


def _lines(research: Research) -> Iterator[str]:
    yield from (f"# {plain(research.question)}", "")
    for title, findings in (("Facts", research.facts), ("Inferences", research.inferences)):
        yield from (f"## {title}", "")
        for one in findings:
            yield f"- {plain(one.claim)}"
            for source in one.result.sources:
                dated = f", {source.pub_date.date().isoformat()}" if source.pub_date else ""
                yield f"  - {plain(source.url)}{dated}: “{plain(source.excerpt)}”"
        yield from (() if findings else ("None.",))
        yield ""
    yield from ("## Gaps", "")
    for gap in research.gaps:
        yield f"- {plain(gap.path)}, “{plain(gap.query)}”: {plain(gap.why)}"
    yield from (() if research.gaps else ("None.",))
