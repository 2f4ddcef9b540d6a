"""Fifteen seconds of `make soak` on both databases, and that each of its invariants can be broken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import text

from bench.soak.run import Options, Soak, run
from tests.conftest import Postgresql
from tests.running.invariants import look
from tests.running.service import THRESHOLD
from tests.running.told import untrue, unvouched
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.decision import Outcome
from vouchgate.storage.store import Store


@pytest.mark.timeout(600)
def test_everything_holds_while_all_of_it_is_killed_and_nothing_passes_for_it_that_does_not(
    postgresql: Postgresql, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    name = "soaking"
    postgresql.run(f"CREATE DATABASE {name} TEMPLATE migrated")
    request.addfinalizer(lambda: postgresql.run(f"DROP DATABASE {name} WITH (FORCE)"))
    databases = [
        ("sqlite", f"sqlite:///{tmp_path}/vouchgate.db", None),
        ("postgresql", postgresql.url(name), postgresql),
    ]
    for soak in run(Options(seconds=15, rate=1.5, anew=False), databases, tmp_path):
        assert soak.broken == {}, "\n".join(soak.report())
        assert {how for _, how in soak.gauges.marks} >= set(soak.ways)
        assert soak.gauges.loaded()
        for how, breaks in BREAKS.items():
            assert breaks(soak), f"{how} was not seen on {soak.kind}"


def without_a_memory(soak: Soak) -> list[str]:
    kept = soak.kept
    told = {
        reply.json["memory_id"]
        for sent, reply in soak.ledger.answered
        if reply.status == 201 and not sent.batch
    }
    gone = next(iter(told - kept.gone))
    fewer = {name: row for name, row in kept.memories.items() if name != gone}
    return [one for one in untrue(soak.ledger, replace(kept, memories=fewer)) if gone in one]


def with_an_answer_twice(soak: Soak) -> list[str]:
    sent, reply = next(pair for pair in soak.ledger.answered if pair[1].status == 201 and not pair[0].batch)
    other = reply.body.replace(reply.json["decision_id"], "dec_of_nobody")
    twice = replace(soak.ledger, answered=[*soak.ledger.answered, (sent, replace(reply, body=other))])
    return [one for one in untrue(twice, soak.kept) if "for two decisions" in one]


def stored_by_nothing(soak: Soak) -> list[str]:
    answers = dict(soak.kept.answers)
    name, answer = next(pair for pair in answers.items() if pair[1].outcome is Outcome.STORED)
    claim = answer.evidence.claim.model_copy(update={"source": Source.AI_SYNTHESIS})
    evidence = answer.evidence.model_copy(update={"claim": claim, "sources": (), "source_id": None})
    answers[name] = answer.model_copy(update={"evidence": evidence})
    return list(unvouched(replace(soak.kept, answers=answers)))


def altered_in_the_database(soak: Soak) -> list[str]:
    """Last, as it stays so."""
    store = Store.open(soak.url, threshold=THRESHOLD)
    try:
        store.writer.run(
            ["ann"],
            lambda connection: connection.execute(
                text("UPDATE memory SET content = 'It is not so' WHERE owner_id = 'ann'")
            ),
        ).result()
    finally:
        store.close()
    return look(soak.url)[1]


BREAKS: dict[str, Callable[[Soak], list[str]]] = {
    "a memory that was lost": without_a_memory,
    "a memory of two decisions": with_an_answer_twice,
    "a memory that nothing vouches for": stored_by_nothing,
    "texts that were altered": altered_in_the_database,
}
