"""Two pages that a claim cites make a FACT when they are two texts, looked at whole."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from vouchgate.ingest.check import NOTHING_NEAR
from vouchgate.ingest.checks.hedge import HedgeDetector
from vouchgate.ingest.citations import given_citation
from vouchgate.ingest.claims.claim import Claim, MemoryType, Source
from vouchgate.ingest.claims.decision import Label
from vouchgate.ingest.claims.source import Found, Standing
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.pipeline import examine, inspect, replay
from vouchgate.ingest.scoring.sites import site_of

SAID = "The bridge at Elbow Creek carries 40 trains each day."
FILLER = [
    f"Paragraph {n} of this page tells of the valley, its mills and stage {n * n} of the works.\n\n"
    for n in range(60)
]
QUOTED = "As the railway's press office wrote to every paper in the county on that wet morning in May."


def _page(url: str, opening: str, rest: str) -> Found:
    citation = given_citation("url", url)
    text = f"{opening} {SAID}\n\n{rest}"
    return Found(
        citation=citation,
        source_id=url,
        standing=Standing.IN_FORCE,
        detail="There.",
        text=text,
        excerpt=text[:2000],
        digest=str(hash(url)),
        site=site_of(url),
    )


@pytest.mark.parametrize(
    ("one", "other", "label"),
    [
        ("".join(FILLER[:20]), "".join(FILLER[30:50]), Label.FACT),
        ("".join(FILLER[:20]) + QUOTED, "".join(FILLER[30:50]) + QUOTED, Label.INFERENCE),
    ],
    ids=["two texts", "one press release, far below"],
)
def test_independence_is_asked_of_the_whole_texts(one: str, other: str, label: Label) -> None:
    policy = load_policy()
    pages = [
        _page("https://www.bbc.com/a", "A report from the north.", one),
        _page("https://www.nature.com/b", "Measured last spring by the survey:", other),
    ]
    claim = Claim(
        content=SAID,
        memory_type=MemoryType.FACT,
        asserted_source=Source.AI_SYNTHESIS,
        source=Source.AI_SYNTHESIS,
        owner_id="ann",
        citations=tuple(page.citation for page in pages),
    )
    detector = HedgeDetector(policy.lexicon)
    examined = examine(inspect(claim, detector), pages, policy, datetime(2026, 1, 1, tzinfo=UTC))
    examined = examined.knowing(dedup=NOTHING_NEAR)
    decision = examined.decide()
    assert (decision.rule, decision.label) == ("stated", label)
    answer = examined.answer(decision, decision_id=None, memory_id=None, queue_id=None, took_ms=0)
    assert replay(answer, policy, detector) == ()
