"""A claim that cites what a user said, beside the same claim that cites another thing at hand: a document of a corpus,
and a file of the repository. All are submitted to one gate in turn, for an owner each."""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import tempfile
import time
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path

from bench.http_load import unlimited
from vouchgate.ingest.claims.decision import ValidationResult
from vouchgate.ingest.claims.people import Role
from vouchgate.ingest.policy import RecordsPolicy
from vouchgate.service import Service, open_service
from vouchgate.settings import Settings
from vouchgate.storage.claims import records
from vouchgate.storage.claims.submit import Decided
from vouchgate.storage.identity import tokens
from vouchgate.wire import ClaimIn

CLAIMS = 60  # of each
_WORDS = (
    "amber",
    "birch",
    "cedar",
    "dune",
    "ember",
    "fjord",
    "grove",
    "heath",
    "isle",
    "jade",
    "knoll",
    "lagoon",
)
RECORD = "record"


def run() -> None:
    """Prints the medians, and the ratios of the first to the others."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        things = [f"{_WORDS[n % 12]} {_WORDS[n // 12 % 12]} panels number {n}" for n in range(CLAIMS)]
        for place in ("corpus", "repository/docs"):
            (folder / place).mkdir(parents=True)
            for n, thing in enumerate(things):
                (folder / place / f"{n}.md").write_text(f"The user prefers {thing}.")
        for git in (
            ("init", "-q"),
            ("add", "."),
            ("-c", "user.name=b", "-c", "user.email=b@b", "commit", "-qm", "b"),
        ):
            subprocess.run(("git", *git), cwd=folder / "repository", check=True)
        settings = Settings(
            database_url=f"sqlite:///{folder}/gate.db",
            policy=unlimited(made),
            repo=(str(folder / "repository"),),
            corpora={"bench": folder / "corpus"},
            official_corpora=("bench",),
            offline=True,
        )
        with open_service(settings) as service:
            took = asyncio.run(_submit_all(service, things))
    medians = {name: statistics.median(times) for name, times in took.items()}
    for name, median in medians.items():
        print(f"records: a claim that cites a {name}: {median * 1000:.2f} ms")
    for name in medians.keys() - {RECORD}:
        print(f"  record / {name}: {medians[RECORD] / medians[name]:.2f}")


async def _submit_all(service: Service, things: list[str]) -> dict[str, list[float]]:
    took = defaultdict[str, list[float]](list)
    now = datetime.now(UTC)
    agent, _ = tokens.create(
        service.store, role=Role.AGENT, name="bench", any_owner=True, new_owners=True, actor="bench", now=now
    )
    for n, thing in enumerate(things):
        cited = {
            "document of a corpus": f"corpus:bench/{n}.md",
            "file of the repository": f"docs/{n}.md",
            RECORD: "",  # of each owner its own
        }
        for name in (*cited, *reversed(cited)) if n % 2 else (*reversed(cited), *cited):
            owner = f"{name}-{len(took[name])}"
            if name == RECORD:
                cited[name] = _put_down(service, f"I prefer {thing}.", owner)
            claim = ClaimIn(content=f"The user prefers {thing}.", citations=[cited[name]], user_id=owner)
            began = time.process_time()
            answer = await service.gate.submit(agent, claim, None)
            took[name].append(time.process_time() - began)
            _look(answer, name)
    return took


def _look(answer: object, name: str) -> None:
    """What is measured must be what is meant."""
    if not isinstance(answer, Decided) or not isinstance(answer.answer, ValidationResult):
        raise TypeError(f"not decided: {answer}")
    if not answer.answer.approved:
        raise ValueError(f"a claim that cites a {name} was not stored: {answer.answer.reason}")


def _put_down(service: Service, text: str, owner: str) -> str:
    none = dict.fromkeys(("conversation", "said_at", "idempotency_key"))
    sent = {
        "owner_id": owner,
        "submitted_by": "host",
        "kind": "turn",
        "who": "ann",
        "text": text,
        "masked": False,
    }
    now = datetime.now(UTC)
    work = service.store.writer.run([owner], lambda c: records.add(c, sent | none, RecordsPolicy(), now))
    kept = work.result()
    if isinstance(kept, str):
        raise TypeError(kept)
    return f"record:{kept[0]['id']}"
