"""The optional judge: whom it is asked about, when, how often a day, and whether it is well.

It comes after the rules, and only where they let a claim pass: what it says can then take the claim to its owner, or
be one more reason, and never more. A claim it was to be asked about and was not waits, whatever the cause.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from urllib.parse import urlsplit

from sqlalchemy import Connection

from vouchgate.ingest.claims.likeness import DedupFacts, ItemKind, Neighbours
from vouchgate.ingest.claims.source import Found, Judgement, NotJudged, SourceReading
from vouchgate.ingest.data.policy_file import PolicyError
from vouchgate.ingest.net.client import Outbound
from vouchgate.ingest.pipeline import Examined, Inspected, examine
from vouchgate.ingest.policy import JudgePolicy, Policy
from vouchgate.ingest.rules import BY_CITATION
from vouchgate.ingest.sources.judge import JudgeClient
from vouchgate.storage import judge_budget
from vouchgate.storage.errors import StorageError
from vouchgate.storage.store import Store

log = logging.getLogger(__name__)

# Findings of `ingest.checks.support`: whatever a source does for a claim that is to be stored, the judge may doubt.
ASKED_ABOUT = frozenset({"support_states", "support_on_topic", "support_unclear"})
WORRYING = 3  # questions in a row without an answer that counts: one or two may be bad luck

NOT_NEW = NotJudged(
    model="", code="not_asked", detail="The judge was not asked, for the claim is not known to be new."
)
NO_JUDGE = NotJudged(model="", code="offline", detail="The policy asks for a judge, and none is asked here.")


class JudgeError(PolicyError):
    """The judge that the policy enables cannot be set up; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Question:
    """A source to ask about. `rules_disagree`: they do so about it, so that the second model is asked."""

    found: Found
    rules_disagree: bool


class Judge:
    """A first model, a second one for what the rules disagree about, and a budget. Its coroutines belong to one
    event loop; `problems` may be called from any thread."""

    def __init__(
        self,
        policy: JudgePolicy,
        store: Store,
        first: JudgeClient,
        second: JudgeClient | None = None,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._policy = policy
        self._store = store
        self._first = first
        self._second = second or first
        self._clock = clock
        self._spent: date | None = None  # the last day whose questions were used up
        # By model: how many questions in a row had no answer that counts, and the last one's detail.
        self._failures: dict[str, tuple[int, str]] = {}

    async def ask(self, claim: str, questions: Sequence[Question], seconds: float) -> dict[str, Judgement]:
        """An answer to each question by the key of its citation, within so many seconds in all. Never raises."""
        end = time.monotonic() + seconds
        refused = await self._take(len(questions), seconds)
        if refused is not None:
            return {question.found.citation.key: refused for question in questions}
        left = min(self._policy.seconds, end - time.monotonic())
        answers = await asyncio.gather(*(self._ask(claim, question, left) for question in questions))
        return {q.found.citation.key: answer for q, answer in zip(questions, answers, strict=True)}

    def problems(self) -> tuple[str, ...]:
        """What is not well with it, a sentence each; none once a question was answered, or a new day began."""
        found = [
            f"judge: the last {count} questions to {model} have no answer that counts; the last one: {detail}"
            for model, (count, detail) in self._failures.copy().items()
            if count >= WORRYING
        ]
        if self._spent == self._today():
            found.append(
                f"judge: too few of the {self._policy.questions_per_day} questions of {self._spent} (UTC) are left"
            )
        return tuple(found)

    async def _take(self, wanted: int, seconds: float) -> NotJudged | None:
        """Takes the questions from the day's budget; why not, when they are not to be had."""
        model = self._first.model
        if seconds <= 0:
            return _timed_out(model)
        today, limit = self._today(), self._policy.questions_per_day

        def work(connection: Connection) -> bool:
            return judge_budget.take_questions(connection, today, wanted, limit)

        try:
            written = asyncio.wrap_future(self._store.writer.run((), work))
            taken = await asyncio.wait_for(written, seconds)
        except TimeoutError:
            return _timed_out(model)
        except StorageError:
            log.exception("the judge's budget could not be asked")
            return NotJudged(model=model, code="error", detail="The judge's budget could not be asked.")
        if taken:
            self._spent = None
            return None
        self._spent = today
        return NotJudged(model=model, code="budget", detail="The judge's questions of this day are used up.")

    async def _ask(self, claim: str, question: Question, seconds: float) -> Judgement:
        client = self._second if question.rules_disagree else self._first
        try:
            async with asyncio.timeout(seconds):
                answer = await client.ask(claim, question.found)
        except TimeoutError:
            answer = _timed_out(client.model)
        if isinstance(answer, NotJudged):
            failures, _ = self._failures.get(client.model, (0, ""))
            self._failures[client.model] = failures + 1, answer.detail
        else:
            self._failures.pop(client.model, None)
        return answer

    def _today(self) -> date:
        return self._clock().astimezone(UTC).date()


def open_judge(
    policy: Policy,
    outbound: Outbound,
    store: Store,
    *,
    url: str | None,
    model: str | None,
    second_model: str | None = None,
    token: str | None = None,
) -> Judge | None:
    """The judge that the policy enables; None when it enables none. Nothing is asked yet, so an endpoint that
    does not answer shows in `problems` only.

    Raises JudgeError, with a sentence for who starts the service, when it is not said where the judge is.
    """
    if not policy.judge.enabled:
        return None
    if not url or not model:
        raise JudgeError(
            "the policy enables the judge, so VOUCHGATE_JUDGE_URL and VOUCHGATE_JUDGE_MODEL must say where it is"
        )
    check_url(url)

    def client(name: str) -> JudgeClient:
        return JudgeClient(outbound, url=url, model=name, token=token, seconds=policy.judge.seconds)

    return Judge(policy.judge, store, client(model), client(second_model) if second_model else None)


async def weigh(
    judge: Judge | None,
    inspected: Inspected,
    examined: Examined,
    *,
    seconds: float,
    neighbours: Callable[[Examined], Awaitable[DedupFacts]] | None = None,
) -> Examined:
    """The claim with what the judge says of its sources; as it is where the judge has nothing to be asked.

    Only a claim that the rules would store on account of its citations is asked about. `neighbours` finds the
    earlier claims like it: one that repeats a stored one costs no question. `seconds` is what is left of the
    claim's time. Where the policy enables a judge, and there is none here, its sources are NotJudged.
    """
    questions = _questions(examined)
    if not questions:
        return examined
    known = Neighbours() if neighbours is None else _stored_only(await neighbours(examined))
    if examined.knowing(dedup=known).decide().rule not in BY_CITATION:
        # Decided again under the owner's lock, where that claim may be gone: unasked, it must not pass then.
        said: Mapping[str, Judgement] = {question.found.citation.key: NOT_NEW for question in questions}
    elif judge is None:
        said = {question.found.citation.key: NO_JUDGE for question in questions}
    else:
        said = await judge.ask(examined.claim.content, questions, seconds)
    readings = [_with_judgements(reading, said) for reading in examined.readings]
    again = examine(inspected, readings, examined.policy, examined.capture_time)
    return replace(examined, readings=again.readings, findings=again.findings)


def _questions(examined: Examined) -> list[Question]:
    if not examined.policy.judge.enabled:
        return []
    if examined.knowing(dedup=Neighbours()).decide().rule not in BY_CITATION:
        return []
    sources = {reading.citation.key: reading for reading in examined.readings if isinstance(reading, Found)}
    questions = []
    for finding in examined.findings.cited:
        if finding.code not in ASKED_ABOUT:
            continue
        if finding.citation is None:  # passed over, its source would go unasked
            raise ValueError(f"the finding {finding.code} names no citation")
        disagree = finding.facts.get("disagree") is True
        questions.append(Question(sources[finding.citation.key], rules_disagree=disagree))
    return questions


def _stored_only(facts: DedupFacts) -> DedupFacts:
    """Without those that wait: one of them may be this very claim, which is looked at again because the judge gave
    no answer before."""
    if not isinstance(facts, Neighbours):
        return facts
    return facts.model_copy(
        update={"items": tuple(item for item in facts.items if item.kind is ItemKind.MEMORY)}
    )


def _with_judgements(reading: SourceReading, said: Mapping[str, Judgement]) -> SourceReading:
    judgement = said.get(reading.citation.key)
    return reading if judgement is None else reading.model_copy(update={"judgement": judgement})


def _timed_out(model: str) -> NotJudged:
    return NotJudged(model=model, code="timeout", detail="The judge gave no answer in time.")


def check_url(url: str) -> None:
    """Raises JudgeError unless it is the plain base of an endpoint."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        good = False
    if not good or "@" in parts.netloc or parts.query or parts.fragment:
        raise JudgeError(
            "VOUCHGATE_JUDGE_URL must be the base of an OpenAI-compatible endpoint, such as http://host:8080/v1, "
            "without a password, a query or a fragment"
        )
