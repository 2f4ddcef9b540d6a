"""Queues full of all sorts, for tests of the pages that clear them: sent through the real API, a batch at a time."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.acceptance.site import Site, claim, open_site
from tests.repos import TestRepository
from vouchgate.ingest.claims.decision import ValidationResult
from vouchgate.ingest.rules import Rule

CONFLICT, HEDGED, REFUTED, UNCHECKED, UNGROUNDED = RULES = (
    Rule.CONFLICT,
    Rule.TECHNICAL_HEDGE,
    Rule.REFUTED,
    Rule.CITATION_UNKNOWN,
    Rule.UNGROUNDED,
)

# The first is stored for its source; the second has another value and waits as a conflict.
_KEPT = (
    "The nightly {} export starts at 02:00 UTC, writes one compressed {} file per customer to the {} archive"
    " bucket, and must finish before the {} billing run begins at 05:30."
)
_WAITS = {
    CONFLICT: _KEPT.replace("05:30", "06:30"),
    HEDGED: "The {} importer may time out on {} files of the {} archive, and {} is then left as it was.",
    REFUTED: "Entries of the {} ledger are kept with {} in {} for {} years, as ADR-{number} says.",
    UNCHECKED: "The {} interface allows {} calls a minute to {}, see https://{}.example.org/limits.",
    UNGROUNDED: "The {} service keeps its {} records in the {} store, beside those of {}.",
}


_ADR = """# 1. Keep orders in PostgreSQL

## Status

Accepted

## Decision

Orders are rows in PostgreSQL, because money needs transactions.
"""


@contextmanager
def open_desk(url: str, folder: Path, services: Iterable[str] = ()) -> Iterator[Site]:
    """A site for `fill`: with a repository that has one ADR, which names these services, and nothing else that may
    be asked. What comes at once is looked up in time on a slow machine, too."""
    policy = folder / "policy.toml"
    policy.write_text("deadline_seconds = 60\n", encoding="utf-8")
    repository = TestRepository(folder / "repository")
    named = "".join(
        f"\n- Orders of {name} are rows in PostgreSQL.\n- Refunds of {name} wait for a manager."
        for name in services
    )
    repository.commit("Write down where orders are kept", {"docs/adrs/0001-orders.md": f"{_ADR}{named}\n"})
    with open_site(url, repos=[repository.path], policy=policy) as site:
        yield site


@dataclass(frozen=True, slots=True)
class Waiting:
    """One claim that waits: the item, the rule that queued it, its text, and the memory that it
    conflicts with."""

    id: str
    rule: str
    content: str
    conflicts_with: str | None


def names(seed: int) -> Iterator[str]:
    """Made-up names, none twice: so that no two claims are alike unless they are meant to be."""
    chance, given = random.Random(seed), set[str]()  # noqa: S311  (names, not secrets)
    while True:
        name = "".join(chance.choice("bdfgklmnprstv") + chance.choice("aeiou") for _ in range(4))
        if name not in given:
            given.add(name)
            yield name


def send(agent: httpx.Client, claims: Sequence[dict[str, Any]]) -> list[ValidationResult]:
    """Sends claims in one call; every one must be decided."""
    answer = agent.post("/v1/claims/batch", json={"claims": claims})
    assert answer.status_code == 200, answer.text
    rows = answer.json()["results"]
    assert len(rows) == len(claims), answer.text
    return [ValidationResult.model_validate(row) for row in rows]


def fill(
    site: Site, owner: str, count: int, *, rules: Sequence[Rule] = RULES, agents: int = 2, seed: int = 1
) -> list[Waiting]:
    """Makes `count` claims wait for an owner at an `open_desk`, by each of the `rules` in turn, sent by so many agents
    in turn."""
    callers = [site.agent(owner) for _ in range(agents)]
    name, wanted = names(seed), [rules[number % len(rules)] for number in range(count)]
    words = [[next(name) for _ in range(4)] for _ in wanted]
    texts = [
        _WAITS[rule].format(*four, number=901 + index)
        for index, (rule, four) in enumerate(zip(wanted, words, strict=True))
    ]
    kept = [_KEPT.format(*four) for rule, four in zip(wanted, words, strict=True) if rule == CONFLICT]
    if kept:
        stored = send(callers[0], [claim(text) for text in kept])
        assert [answer.rule for answer in stored] == ["trusted_source"] * len(kept)
    found: dict[str, Waiting] = {}
    for turn, caller in enumerate(callers):
        mine = texts[turn::agents]
        if not mine:
            continue
        for text, answer in zip(mine, send(caller, [claim(t, "ai_synthesis") for t in mine]), strict=True):
            assert answer.queue_id is not None, (answer.reason, text)
            found[text] = Waiting(answer.queue_id, answer.rule, text, answer.conflicting_memory_id)
    waiting = [found[text] for text in texts]
    assert [one.rule for one in waiting] == wanted
    return waiting
