"""A project with 27 documents, and 300 claims about it that cite nothing: 100 that the documents state, 100 that are
true and stated nowhere, 100 that are false. All were written by somebody who did not see the rules."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from contextlib import closing
from pathlib import Path

from tests.repos import TestRepository
from vouchgate.gate.examiner import Examiner
from vouchgate.harvest.documents import REPOSITORY, DocumentSearch
from vouchgate.ingest.check import NOTHING_NEAR
from vouchgate.ingest.claims.citation import CitationType
from vouchgate.ingest.claims.claim import Claim, MemoryType, Source
from vouchgate.ingest.claims.decision import Tier
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.sources.git.source import GitSource
from vouchgate.sources.reader import Sources

HERE = Path(__file__).with_name("quayside")


def claim_of(text: str) -> Claim:
    """What an agent concluded, and nobody granted."""
    said = Source.AI_SYNTHESIS
    return Claim(content=text, memory_type=MemoryType.FACT, asserted_source=said, source=said, owner_id="ann")


def test_what_the_documents_state_is_stored_and_what_they_do_not_is_not(tmp_path: Path) -> None:
    repository = TestRepository(tmp_path / "quayside")
    pages = sorted((HERE / "docs").rglob("*.md"))
    repository.commit("Start", {str(page.relative_to(HERE)): page.read_text("utf-8") for page in pages})
    git = GitSource([repository.path], official=["docs/"], timeout_seconds=60)
    rows = [json.loads(line) for line in (HERE / "claims.jsonl").read_text("utf-8").splitlines()]
    policy = load_policy().model_copy(update={"deadline_seconds": 60.0})
    stored: Counter[str] = Counter()
    with (
        closing(Sources(git, {})) as sources,
        closing(DocumentSearch(REPOSITORY, git, CitationType.PATH)) as search,
        closing(Examiner(policy, sources, harvest=[search])) as examiner,
    ):

        async def examine_all() -> None:
            for row in rows:
                examined = await examiner.examine(claim_of(row["claim"]))
                stored[row["kind"]] += examined.knowing(dedup=NOTHING_NEAR).decide().tier is Tier.STORED

        asyncio.run(examine_all())
    assert Counter(row["kind"] for row in rows) == {"stated": 100, "unstated": 100, "false": 100}
    assert stored["false"] <= 2
    assert stored["unstated"] <= 3
    assert stored["stated"] >= 50
