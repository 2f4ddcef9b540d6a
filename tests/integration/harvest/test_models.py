"""A model at an endpoint words a proof, or reads claims out of texts: what it may do, and what becomes of the rest."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.engines import JSON
from tests.hostile import local
from tests.web import Answer, Asked, WebServer, web_server
from vouchgate.harvest.budget import Purse
from vouchgate.harvest.paths import Look
from vouchgate.harvest.research import Recording, Research, answer, gather
from vouchgate.harvest.search import World
from vouchgate.harvest.wording import worded
from vouchgate.ingest.corroboration.decision import conclude
from vouchgate.ingest.corroboration.history import AgentResult, SearchHistory, SearchTask
from vouchgate.ingest.corroboration.hits import Reading, hits_of
from vouchgate.ingest.corroboration.proof import quotations
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.policy import SearchBudget
from vouchgate.ingest.sources.answers import utc_now
from vouchgate.ingest.sources.model import ModelClient

POLICY = load_policy()
PATH = "/v1/chat/completions"
CLAIM = "The archive in Lund holds 40 million pages."
QUESTION = "How many pages does the archive in Lund hold?"
STATED = "Since its last extension the archive in Lund holds 40 million pages."


def completion(content: Any) -> Answer:
    text = content if isinstance(content, str) else json.dumps(content)
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return Answer(json.dumps({"object": "chat.completion", "choices": [choice]}), headers=JSON)


@pytest.fixture
def site() -> Iterator[WebServer]:
    with web_server() as server:
        yield server


def model(site: WebServer) -> ModelClient:
    return ModelClient(local(), url=f"{site.url}/v1", model="m-1", token="k", seconds=5)


def result_of(*texts: str) -> AgentResult:
    readings = [
        Reading(text=text, url=f"https://a{n}.example/", verified=True) for n, text in enumerate(texts)
    ]
    history = SearchHistory(hits=hits_of(CLAIM, readings, POLICY))
    return conclude(SearchTask(claim=CLAIM), history, POLICY)


def test_a_proof_in_the_words_of_a_model(site: WebServer) -> None:
    plain = result_of(STATED)
    (quoted,) = quotations(plain.proof)
    site.routes[PATH] = completion({"text": f'One <b>page</b> says:\n\n"{quoted}"'})
    result = asyncio.run(worded(plain, model(site)))
    assert result.debug["proof"] == "worded by m-1"
    assert f'One \\<b\\>page\\</b\\> says:\n\n"{quoted}"' in result.proof
    assert result.proof.startswith(plain.proof.partition("\n## ")[0])
    assert "https://a0.example/" in result.proof and "## Voice 1" in result.proof
    assert (result.label, result.evidence, result.sources) == (plain.label, plain.evidence, plain.sources)
    sent = json.loads(site.asked[0].body)
    assert sent["messages"][1]["content"].splitlines()[0].endswith(" PROOF")


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (completion({"text": "It is true."}), "left a quotation out"),
        (completion({"text": f'"{STATED}" “And more.”'}), "what no source says"),
        (completion("It is true."), "in the form it was asked for"),
        (completion({"text": ""}), "in the form it was asked for"),
        (Answer("{}", 500), "HTTP status 500"),
        (Answer("<html>", 200), "in the form it was asked for"),
    ],
)
def test_a_wording_that_does_not_count_leaves_the_template(site: WebServer, reply: Answer, why: str) -> None:
    plain = result_of(STATED)
    site.routes[PATH] = reply
    result = asyncio.run(worded(plain, model(site)))
    assert result.proof == plain.proof
    assert str(result.debug["proof"]).startswith("template: the model ") and why in str(result.debug["proof"])


def test_a_proof_without_quotations_is_not_worded(site: WebServer) -> None:
    result = asyncio.run(worded(result_of("Bread is baked in ovens."), model(site)))
    assert (result.debug["proof"], site.asked) == ("template: there is nothing to quote", [])


class Shelf:
    """A path with this text for any query."""

    def __init__(self, name: str, *readings: Reading) -> None:
        self.name = name
        self.readings = readings
        self.asked = 0

    async def look(self, query: str, seconds: float) -> Look:
        self.asked += 1
        return Look(self.readings)


def gathered(site: WebServer, *paths: Shelf, looks: int = 8) -> tuple[Recording, Research]:
    async def read(address: str) -> Any:
        raise AssertionError(address)

    world = World({path.name: path for path in paths}, read, utc_now)
    purse = Purse(SearchBudget(looks=looks, pages=9, seconds=30), "question")
    recording = asyncio.run(gather(QUESTION, world, purse, POLICY, model(site)))
    return recording, answer(recording, POLICY)


def extracting(asked: Asked) -> Answer:
    """Writes down the claim of the text it is shown, with its last words."""
    text = json.loads(asked.body)["messages"][1]["content"]
    assert "QUESTION\nHow many pages" in text
    return completion({"claims": [{"claim": CLAIM, "quote": "archive in Lund holds 40 million"}]})


OFFICIAL = Reading(text=STATED, url="https://archive.example/", official=True, verified=True)
IDLE = Reading(text="Bread is baked in ovens.", url="https://bread.example/", verified=True)


def test_a_question_is_looked_for_until_something_is_a_fact(site: WebServer) -> None:
    site.routes[PATH] = extracting
    first, second, third = Shelf("a", IDLE), Shelf("b", OFFICIAL), Shelf("c", OFFICIAL)
    recording, research = gathered(site, first, second, third)
    assert [one.claim for one in research.facts] == [CLAIM]
    assert (first.asked, second.asked, third.asked) == (1, 1, 0)
    assert len(site.asked) == len(recording.replies) == 2  # once for each text
    assert [gap.why for gap in research.gaps] == [
        "1 of 1 claims were dropped: their quotations do not stand in the text"
    ]


def test_a_model_that_does_not_answer_is_a_gap_and_never_an_empty_success(site: WebServer) -> None:
    site.routes[PATH] = completion("I found nothing of the kind.")
    _, research = gathered(site, Shelf("b", OFFICIAL), looks=1)
    assert (research.facts, research.inferences) == ((), ())
    whys = [gap.why for gap in research.gaps]
    assert "the model did not answer in the form it was asked for" in whys
    assert "the budget of the question is spent (1 looks)" in whys
