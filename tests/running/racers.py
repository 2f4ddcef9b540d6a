"""What the processes of the race tests do. A process that is started imports this by name."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from multiprocessing.synchronize import Barrier
from typing import Any

from tests.claims import NOW, examined, policy, submission_of
from tests.running.processes import FORKED
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.people import Principal, Role
from vouchgate.review.queue import ReviewQueue
from vouchgate.storage.claims.submit import Decided, Repeated, SubmitAnswer
from vouchgate.storage.queue.capacity import QueueFull
from vouchgate.storage.store import Store

Report = list[tuple[str, ...]]


def summary(answer: SubmitAnswer) -> tuple[str, ...]:
    """The answer in words that travel between processes: what it was, then the id it names."""
    if isinstance(answer, Decided):
        result = answer.answer
        named = result.memory_id or result.queue_id or result.conflicting_memory_id or ""
        return result.outcome.value, named
    if isinstance(answer, Repeated):
        return "repeated", answer.json
    if isinstance(answer, QueueFull):
        return "full", "all" if answer.which.in_all else "owner"
    return ("reused",)


def race(url: str, work: Callable[..., Report], arguments: Sequence[tuple[Any, ...]]) -> list[Report]:
    """Runs `work(store, *arguments)` in one process each, all starting at once; their reports in order."""
    barrier = FORKED.Barrier(len(arguments))
    pipes = [FORKED.Pipe(duplex=False) for _ in arguments]
    processes = [
        FORKED.Process(target=_run, args=(url, work, given, barrier, send))
        for given, (_, send) in zip(arguments, pipes, strict=True)
    ]
    for process in processes:
        process.start()
    for _, send in pipes:
        send.close()
    reports = [receive.recv() for receive, _ in pipes]
    for process, (receive, _) in zip(processes, pipes, strict=True):
        process.join(120)
        receive.close()
        assert process.exitcode == 0
    return reports


def _run(url: str, work: Callable[..., Report], given: tuple[Any, ...], barrier: Barrier, send: Any) -> None:
    threshold = policy().threshold
    store = Store.open(url, threshold=threshold)
    barrier.wait(120)
    report = work(store, *given)
    store.close()
    send.send(report)
    send.close()


def send_each_alone(store: Store, contents: Sequence[str], owner_id: str, source: Source) -> Report:
    """Sends the claims one after the other, each waiting for its answer."""
    submissions = [submission_of(examined(text, owner_id=owner_id, source=source)) for text in contents]
    return [summary(store.writer.submit(submission).result()) for submission in submissions]


def send_together(store: Store, contents: Sequence[str], owner_id: str, source: Source) -> Report:
    """Sends all claims, then waits for the answers."""
    submissions = [submission_of(examined(text, owner_id=owner_id, source=source)) for text in contents]
    futures = [store.writer.submit(submission) for submission in submissions]
    return [summary(future.result()) for future in futures]


def fill_queue(store: Store, owner_ids: Sequence[str], label: str, per_owner: int, total: int) -> Report:
    """Sends claims that must wait, for every owner in turn, far more than there is room for."""
    limits = policy(per_owner=per_owner, total=total)
    futures = []
    for number in range(3 * per_owner):
        for owner_id in owner_ids:
            content = f"The {label} worker keeps item {label}{number}."
            waiting = examined(content, owner_id=owner_id, source=Source.AI_SYNTHESIS, under=limits)
            futures.append(store.writer.submit(submission_of(waiting)))
    return [summary(future.result()) for future in futures]


def send_with_keys(store: Store, owner_id: str, keys: Sequence[str]) -> Report:
    """Sends one claim a key, with the key's own text for this owner."""
    futures = [
        store.writer.submit(
            submission_of(examined(f"Setting {key} of the gateway is on.", owner_id=owner_id), key=key)
        )
        for key in keys
    ]
    return [summary(future.result()) for future in futures]


def cross_owners(store: Store, owner_ids: Sequence[str], label: str, rounds: int) -> Report:
    """Sends groups of claims for many owners, in the order given, so that groups lock the same rows."""
    futures = []
    for number in range(rounds):
        for owner_id in owner_ids:
            content = f"The {label} report number {number} of {owner_id} is {label}{number}."
            futures.append(
                store.writer.submit(
                    submission_of(examined(content, owner_id=owner_id, source=Source.AI_SYNTHESIS))
                )
            )
    return [summary(future.result()) for future in futures]


def send_again_and_again(store: Store, label: str, owner_id: str, seconds: float) -> Report:
    """Sends claims, 32 at a time, for so long; for each what became of it, and for how many seconds it waited."""
    report: Report = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        # Few words in common: claims that are alike and differ in a value would wait as conflicts.
        numbers = [len(report) + n for n in range(32)]
        texts = [f"The report of {label}{n} is bag{n} in box{n} on quay{n}." for n in numbers]
        begin = time.monotonic()
        answers = send_together(store, texts, owner_id, Source.USER)
        report += [(outcome, str(time.monotonic() - begin)) for outcome, _ in answers]
    return report


def approve_each(store: Store, items: Sequence[str], owner_id: str) -> Report:
    """Approves the items one after the other as their owner; what became of each."""
    queue = ReviewQueue(store, policy())
    me = Principal(id="reviewer-1", name="me", role=Role.REVIEWER, owners=frozenset({owner_id}))
    return [(type(queue.approve(me, item, version=1, now=NOW)).__name__, item) for item in items]


def act(store: Store, what: str, given: Sequence[str], owner_id: str) -> Report:
    """Approves these items, or sends these claims, which wait unless they are duplicates."""
    if what == "approve":
        return approve_each(store, given, owner_id)
    return send_each_alone(store, given, owner_id, Source.AI_SYNTHESIS)
