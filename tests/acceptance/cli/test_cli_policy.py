"""What decided when, how two policies differ, and what another one would have done: as an operator asks it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.reviews import reviewer
from vouchgate.cli import app
from vouchgate.cli.output import FAILED
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.people import Role
from vouchgate.ingest.claims.trust import Trust
from vouchgate.review.trust import publishers
from vouchgate.service import Service, note_in_force, open_service
from vouchgate.settings import load_settings
from vouchgate.storage.claims.submit import Decided
from vouchgate.storage.identity import tokens
from vouchgate.wire import ClaimIn

STRICT = 'preset = "strict"\ntrusted_sources = ["documentation"]\n[queue]\nper_owner = 7\n'
SPECULATES = "I think the lathe is maybe of iron."


@pytest.fixture(scope="module")
def here(
    module_database_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Service, Path]]:
    """A service that began under the built-in policy, and a file of another."""
    file = tmp_path_factory.mktemp("policies") / "strict.toml"
    file.write_text(STRICT)
    with open_service(load_settings({}, database_url=module_database_url, offline=True)) as service:
        note_in_force(service)
        asyncio.run(send(service))
        yield service, file


async def send(service: Service) -> None:
    """What an agent of two owners says."""
    grants: dict[str, Any] = {"any_owner": True, "new_owners": True, "sources": frozenset({Source.USER})}
    agent, _ = tokens.create(
        service.store, role=Role.AGENT, name="a", actor="test", now=datetime.now(UTC), **grants
    )
    for owner in ("ann", "bob"):
        said = {f"The desk of {owner} is of oak.": "user", f"{owner} made it by hand.": "ai_synthesis"}
        for content, source in {**said, SPECULATES: "ai_synthesis"}.items():
            sent = {"content": content, "memory_type": "fact", "source": source, "user_id": owner}
            assert isinstance(await service.gate.submit(agent, ClaimIn.model_validate(sent)), Decided)


def told(capfd: pytest.CaptureFixture[str], service: Service, *words: str, status: int = 0) -> str:
    """What a command says."""
    capfd.readouterr()
    assert app.run(["policy", *words, "--database-url", service.settings.database_url]) == status
    out, err = capfd.readouterr()
    return out if status == 0 else err


def test_every_decision_is_made_again_under_another_policy(
    here: tuple[Service, Path], capfd: pytest.CaptureFixture[str]
) -> None:
    service, file = here
    result: dict[str, Any] = json.loads(told(capfd, service, "test", str(file), "--json"))
    assert (result["decisions"], result["same"], result["unknown"]) == (6, 4, {})
    (move,) = result["moves"]
    names = ("from_tier", "from_rule", "to_tier", "to_rule", "decisions")
    assert [move[name] for name in names] == ["tier_1", "trusted_source", "tier_2", "ungrounded", 2]
    assert {one["owner_id"] for one in move["examples"]} == {"ann", "bob"}
    one = json.loads(told(capfd, service, "test", str(file), "--owner", "bob", "--json"))
    assert (one["decisions"], one["moves"][0]["examples"][0]["words"]) == (3, "The desk of bob is of oak.")
    shown = told(capfd, service, "test", str(file))
    assert "of 6 decisions 2 would go elsewhere" in shown
    assert "The desk of bob is of oak." in shown
    later = (datetime.now(UTC) + timedelta(days=1)).strftime("%Y-%m-%d")
    assert "of 0 decisions" in told(capfd, service, "test", str(file), "--since", later)
    # What nobody looked for is not guessed.
    file.with_name("far.toml").write_text('harvest = "local"\nduplicate_threshold = 0.8\n')
    far = json.loads(told(capfd, service, "test", str(file.with_name("far.toml")), "--json"))
    assert far["unknown"] == {"earlier claims were compared at another threshold": 4}
    assert (far["same"], far["moves"]) == (2, [])
    assert "there is no owner" in told(capfd, service, "test", str(file), "--owner", "nobody", status=FAILED)


def test_what_was_in_force_at_a_time_is_known(
    here: tuple[Service, Path], capfd: pytest.CaptureFixture[str]
) -> None:
    service, file = here
    now, text = datetime.now(UTC), "%Y-%m-%dT%H:%M:%S"
    publishers.decide(
        service.store,
        reviewer(),
        "ann",
        "good.example",
        Trust.TRUSTED,
        days=30,
        policy=service.policy,
        now=now,
    )
    publishers.clear(service.store, reviewer(), "ann", "good.example", now + timedelta(minutes=5))
    settings = service.settings.model_copy(update={"policy": file})
    with open_service(settings) as other:
        before = other.store.put_in_force(other.policy, "* 2\n", now + timedelta(minutes=10))
        assert before == service.policy.digest
        assert other.store.put_in_force(other.policy, "* 2\n", now + timedelta(minutes=11)) is None
        strict = other.policy.digest

    def at(minutes: int) -> dict[str, Any]:
        when = (now + timedelta(minutes=minutes)).strftime(text)
        found: dict[str, Any] = json.loads(told(capfd, service, "show", "--at", when, "--owner", "ann"))
        return found

    first, then, last = at(2), at(7), at(20)
    assert (first["policy_digest"], first["certain"], first["owner_rules"]) == (
        service.policy.digest,
        True,
        None,
    )
    assert [one["trusted"] for one in first["owners"]] == [["good.example"]]
    assert then["owners"] == []
    assert (last["policy_digest"], last["owner_rules"]) == (strict, "* 2\n")
    assert last["policy"]["queue"]["per_owner"] == 7
    unknown = at(-60 * 24 * 365)
    assert (unknown["policy_digest"], unknown["certain"], unknown["policy"]) == (None, False, None)
    kept = json.loads(told(capfd, service, "show", strict[:10]))
    assert kept["digest"] == strict
    assert "was ever in force" in told(capfd, service, "show", "ffffffff", status=FAILED)
    lines = told(capfd, service, "diff", strict[:12]).splitlines()
    assert "queue.per_owner: 7 before, now 1000" in lines
    assert next(one for one in lines if one.startswith("trusted_sources")).startswith(
        "trusted_sources: now with"
    )
    assert told(capfd, service, "diff", str(file), strict[:12]).endswith("no differences.\n")
