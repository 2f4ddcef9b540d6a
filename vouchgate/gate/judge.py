"""The optional judge: whom it is asked about, when, how often a day, and whether it is well; and the entailment model.

They come after the rules, and only where these let a claim pass: what they say can then take the claim to its owner, or
be one more reason, and never more. A claim they were to be asked about and were not waits, whatever the cause.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from sqlalchemy import Connection

from vouchgate.ingest.claims.likeness import DedupFacts, ItemKind, Neighbours
from vouchgate.ingest.claims.source import Found, Held, Inference, Judgement, NotJudged, Stance
from vouchgate.ingest.data.policy_file import PolicyError
from vouchgate.ingest.net.client import Outbound
from vouchgate.ingest.pipeline import Examined, Inspected, examine
from vouchgate.ingest.policy import JudgePolicy, Policy
from vouchgate.ingest.rules import BY_CITATION
from vouchgate.ingest.sources.judge import JudgeClient
from vouchgate.ingest.support.holding import by_statement
from vouchgate.storage import judge_budget
from vouchgate.storage.errors import StorageError
from vouchgate.storage.store import Store

log = logging.getLogger(__name__)

Asked = Mapping[str, tuple[Found, list[Held]]]  # statements to ask a source about, by the key of its citation
Updates = Mapping[str, Mapping[str, object]]  # what is to be kept with sources, by the same

# Findings of `ingest.checks.support`: whatever a source does for a claim that is to be stored, the judge may doubt.
ASKED_ABOUT = frozenset({"support_states", "support_on_topic", "support_unclear"})
WORRYING = 3  # questions in a row without an answer that counts: one or two may be bad luck

NOT_NEW = NotJudged(
    model="", code="not_asked", detail="The judge was not asked, for the claim is not known to be new."
)
NO_JUDGE = NotJudged(model="", code="offline", detail="The policy asks for a judge, and none is asked here.")
NO_MODEL = Inference(model="", code="offline", detail="The policy asks for a model, and none is asked here.")


class JudgeError(PolicyError):
    """The judge, or entailment model, that the policy enables cannot be set up; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Question:
    """A source to ask about. `rules_disagree`: they do so about it, so that the second model is asked."""

    found: Found
    rules_disagree: bool


class EntailmentModel(Protocol):
    """That of `vouchgate.embedding.entailment`, which needs an extra."""

    async def ask(self, claim: str, asked: Asked, seconds: float) -> Updates: ...
    def close(self) -> None: ...


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


def open_entailment(policy: Policy, path: Path) -> EntailmentModel | None:
    """The entailment model that the policy enables, loaded and tried; None when it enables none. Raises JudgeError."""
    if not policy.entailment.enabled:
        return None
    try:
        from vouchgate.embedding import entailment  # noqa: PLC0415  (of the extra)

        return entailment.CrossEncoder(path)
    except Exception as error:
        need = ". Run pip install 'vouchgate[nli]'" if isinstance(error, ImportError) else ""
        name = f"the entailment model {path} (VOUCHGATE_ENTAILMENT_MODEL)"
        raise JudgeError(f"{name} cannot be used: {str(error).partition(' [type=')[0]}{need}") from error


async def weigh(
    judge: Judge | None,
    inspected: Inspected,
    examined: Examined,
    *,
    seconds: float,
    neighbours: Callable[[Examined], Awaitable[DedupFacts]] | None = None,
    model: EntailmentModel | None = None,
) -> Examined:
    """The claim with what the entailment `model` and the judge say of its sources; as it is where nothing is asked.

    Only a claim that the rules would store on account of its citations is asked about. `neighbours` finds the
    earlier claims like it: one that repeats a stored one costs no question. `seconds` is what is left of the
    claim's time. Where the policy enables one of them that is not here, its sources have no answer that counts.
    """
    end = time.monotonic() + seconds
    if asked := _asked(examined):
        answers: Updates = {key: {"inference": NO_MODEL} for key in asked}
        if model is not None:
            answers = await model.ask(examined.claim.stated, asked, seconds)
        examined = _with_answers(inspected, examined, answers)
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
        said = await judge.ask(examined.claim.content, questions, end - time.monotonic())
    return _with_answers(inspected, examined, {key: {"judgement": each} for key, each in said.items()})


def _asked(examined: Examined) -> Asked:
    """Each statement with the sources that state it or, where none does, with those that speak of it; none of a claim
    that would not be stored for them, were all stored that the model may lift."""
    policy = examined.policy
    if policy.entailment.lifts_from:
        examined = replace(examined, policy=policy.model_copy(update={"spoken_of": "store"}))
    asked: dict[str, tuple[Found, list[Held]]] = {}
    if policy.entailment.enabled and examined.knowing(dedup=Neighbours()).decide().rule in BY_CITATION:
        for pairs in by_statement(each for each in examined.readings if isinstance(each, Found)):
            states = any(held.stance is Stance.STATES for held, _ in pairs)
            for held, source in pairs:
                if held.stance is (Stance.STATES if states else Stance.SPEAKS):
                    asked.setdefault(source.citation.key, (source, []))[1].append(held)
    return asked


def _with_answers(inspected: Inspected, examined: Examined, said: Updates) -> Examined:
    """The claim judged again with what a model said of its sources, by their citations."""
    readings = [each.model_copy(update=said.get(each.citation.key)) for each in examined.readings]
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
