"""Claims that cite nothing, looked up in corpora before the repositories: stored when an official document states
them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.claims import submission_of
from tests.repos import TestRepository
from tests.reviews import memory, queue_of, reviewer
from vouchgate.gate.examiner import Examiner
from vouchgate.harvest.documents import DocumentSearch, open_harvest
from vouchgate.ingest.check import NOTHING_NEAR
from vouchgate.ingest.checks.hedge import HedgeDetector
from vouchgate.ingest.claims.claim import Claim, MemoryType, Source
from vouchgate.ingest.claims.decision import Label, Outcome, ValidationResult
from vouchgate.ingest.claims.source import Stance
from vouchgate.ingest.corroboration.hits import hits_of
from vouchgate.ingest.corroboration.independence import independent
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.pipeline import replay
from vouchgate.ingest.rules import Rule
from vouchgate.ingest.sources.corpus import source as sources
from vouchgate.review.answers import Rejected, Undone
from vouchgate.review.recheck import RecheckResult
from vouchgate.settings import Settings
from vouchgate.sources.reader import Sources
from vouchgate.sources.repositories import open_repositories
from vouchgate.sources.setup import open_sources
from vouchgate.storage.claims.submit import Decided
from vouchgate.storage.store import Store
from vouchgate.workers.changes import SOON, ChangeWatch
from vouchgate.workers.recheck import Rechecker

LEAVE = "Employees have 27 days of leave per year."
CANTEEN = "The canteen serves lunch until 14:15."
DOME = "The observatory closes its dome at 12 degrees below zero."
RECORD = f"# 4. Dome\n\n## Status\n\nAccepted\n\n## Decision\n\n{DOME}\n"


@dataclass
class Desk:
    """A gate's parts with an official corpus `handbook`, another one `notes`, and a repository."""

    folder: Path
    sources: Sources
    searches: tuple[DocumentSearch, ...]
    examiner: Examiner

    def answer(self, content: str) -> ValidationResult:
        """What becomes of a claim when nothing like it is stored."""
        examined = asyncio.run(self.examiner.examine(_claim(content))).knowing(dedup=NOTHING_NEAR)
        return examined.answer(examined.decide(), decision_id=None, memory_id=None, queue_id=None, took_ms=0)


Open = Callable[..., Desk]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Opens the parts under a policy with these changes."""
    monkeypatch.setattr(sources, "FRESH_SECONDS", 0.0)
    monkeypatch.setattr(sources, "_SHARE", 1e9)
    for name, text in (("handbook", LEAVE), ("notes", CANTEEN)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "page.md").write_text(f"# Page\n\n{text}\n")
    repository = TestRepository(tmp_path / "project")
    repository.commit("Start", {"docs/adr/0004-dome.md": RECORD})
    corpora = {"handbook": tmp_path / "handbook", "notes": tmp_path / "notes"}
    settings = Settings(
        repo=(repository.path,), corpora=corpora, official_corpora=("handbook",), offline=True
    )
    with ExitStack() as opened:

        def open_(**changes: Any) -> Desk:
            policy, git = load_policy().model_copy(update=changes), open_repositories(settings)
            reader = opened.enter_context(open_sources(settings, policy, git))
            searches = opened.enter_context(open_harvest(policy, reader.corpora, git))
            examiner = Examiner(policy, reader, harvest=searches)
            opened.callback(examiner.close)
            return Desk(tmp_path, reader, searches, examiner)

        yield open_


def _claim(content: str) -> Claim:
    return Claim(
        content=content,
        memory_type=MemoryType.FACT,
        owner_id="ann",
        asserted_source=Source.AI_SYNTHESIS,
        source=Source.AI_SYNTHESIS,
    )


def test_what_an_official_corpus_states_is_stored_as_a_fact_with_its_document(desk: Open) -> None:
    result = desk().answer(LEAVE)
    assert (result.outcome, result.rule) == (Outcome.STORED, Rule.CORROBORATED)
    assert result.evidence.label is Label.FACT
    (source,) = result.evidence.sources
    assert (source.citation.value, source.citation.harvested) == ("corpus:handbook/page.md", True)
    assert replay(result, load_policy(), HedgeDetector(load_policy().lexicon)) == ()


def test_any_other_corpus_is_shown_and_never_stores_also_when_it_is_cited(desk: Open) -> None:
    opened = desk()
    result = opened.answer(CANTEEN)
    assert result.outcome is Outcome.QUEUED and result.evidence.sources == ()
    assert [(each.citation, each.stance) for each in result.suggested] == [
        ("corpus:notes/page.md", Stance.STATES)
    ]
    cited = opened.answer(f"{CANTEEN} See corpus:notes/page.md.")
    assert (cited.outcome, cited.evidence.label) == (Outcome.QUEUED, Label.INFERENCE)
    assert "not marked official" in cited.reason
    assert opened.answer(f"{LEAVE} See corpus:handbook/page.md.").rule is Rule.STATED


def test_many_hints_do_not_hide_an_official_document(desk: Open) -> None:
    opened = desk()
    for number in range(40):
        (opened.folder / f"notes/{number}.md").write_text(f"# Leave\n\n{LEAVE} {LEAVE}\n")
    result = opened.answer(LEAVE)
    assert [each.citation.value for each in result.evidence.sources] == ["corpus:handbook/page.md"]


@pytest.mark.parametrize(
    ("harvest", "stored"), [("local", [LEAVE, DOME]), ("repositories", [DOME]), ("off", [])]
)
def test_the_policy_says_where_is_looked(desk: Open, harvest: str, stored: list[str]) -> None:
    opened = desk(harvest=harvest)
    found = [each for each in (LEAVE, CANTEEN, DOME) if opened.answer(each).outcome is Outcome.STORED]
    assert found == stored
    names = {"local": ["corpus", "repository"], "repositories": ["repository"], "off": []}
    assert [search.name for search in opened.searches] == names[harvest]


def test_a_corpus_that_is_gone_costs_no_other_place_its_answer(
    desk: Open, caplog: pytest.LogCaptureFixture
) -> None:
    opened = desk()
    (opened.folder / "handbook").rename(opened.folder / "away")
    assert opened.answer(LEAVE).outcome is Outcome.QUEUED
    assert opened.answer(DOME).rule is Rule.CORROBORATED
    assert "the corpus could not be searched: The folder handbook cannot be read" in caplog.text


@pytest.mark.on("sqlite")
def test_a_memory_is_stale_when_its_document_changes_or_goes(desk: Open, store: Store) -> None:
    opened, later = desk(), datetime(2030, 1, 1, tzinfo=UTC)
    store.save_policy(opened.examiner.policy, datetime.now(UTC))
    (opened.folder / "handbook/dome.md").write_text(f"# Dome\n\n{DOME}\n")
    kept = []
    for content in (LEAVE, DOME):
        examined = asyncio.run(opened.examiner.examine(_claim(content)))
        answer = store.writer.submit(submission_of(examined)).result()
        assert isinstance(answer, Decided) and answer.answer.rule is Rule.CORROBORATED
        kept.append(answer.answer.memory_id or "")
    (opened.folder / "handbook/page.md").write_text(f"# Page\n\n{LEAVE.replace('27', '28')}\n")
    (opened.folder / "handbook/dome.md").unlink()
    examine, read = opened.examiner.examine, opened.sources.read
    rechecker = Rechecker(store, opened.examiner.policy, examine, read, clock=lambda: later)
    asyncio.run(rechecker.job.run_once(later))
    assert all(memory(store, each, later).stale_since is not None for each in kept)


def test_what_waits_is_looked_up_again_soon_after_documents_change(desk: Open, store: Store) -> None:
    opened, now = desk(), datetime.now(UTC)
    policy = opened.examiner.policy
    store.save_policy(policy, now)
    claim = "The workshop grinds 14 lenses per week."
    examined = asyncio.run(opened.examiner.examine(_claim(claim)))
    answer = store.writer.submit(submission_of(examined)).result()
    assert isinstance(answer, Decided) and answer.answer.rule is Rule.UNGROUNDED
    rechecker = Rechecker(store, policy, opened.examiner.examine, opened.sources.read)
    watch = ChangeWatch(store, opened.searches, clock=lambda: now)

    def recheck() -> dict[RecheckResult, int]:
        asyncio.run(watch.look())
        return dict(asyncio.run(rechecker.job.run_once(now + 2 * SOON)))

    assert recheck() == {}
    (opened.folder / "notes/other.md").write_text("Something else.\n")
    assert recheck() == {RecheckResult.AGAIN: 1}
    assert recheck() == {}
    queue, item = queue_of(store), str(answer.answer.queue_id)
    assert isinstance(queue.reject(reviewer(), item, version=1, reason="Why?", now=now), Rejected)
    assert isinstance(
        queue.undo(reviewer(), item, version=2, now=now), Undone
    )  # waits, and is looked up, as before
    (opened.folder / "handbook/lenses.md").write_text(f"# Lenses\n\n{claim}\n")
    (opened.folder / "notes").rename(opened.folder / "away")
    assert recheck() == {}  # it is not known what changed
    (opened.folder / "away").rename(opened.folder / "notes")
    watch = ChangeWatch(store, opened.searches, clock=lambda: now)  # of another process
    assert recheck() == {RecheckResult.PROMOTED: 1}


def test_a_look_along_a_path_gives_whole_documents(desk: Open) -> None:
    opened = desk()
    (opened.folder / "notes/other.md").write_text(f"# Other\n\nLunch.\n\n{CANTEEN}\n\nNo dogs.\n")
    corpus, repository = opened.searches
    look = asyncio.run(corpus.look("canteen serves lunch", 30))
    assert look.failures == () and {each.url for each in look.readings} == {
        "corpus:notes/page.md",
        "corpus:notes/other.md",
    }
    assert all(each.verified and not each.official and each.published for each in look.readings)
    assert "No dogs." in " ".join(each.text for each in look.readings)
    hits = hits_of(CANTEEN, look.readings, load_policy())
    assert {hit.stance for hit in hits} == {Stance.STATES}
    assert len(independent(hits)) == 1  # whoever writes one of them writes the other
    (record,) = asyncio.run(repository.look("observatory dome", 30)).readings
    assert (record.official, record.form) == (True, "record") and DOME in record.text
    (page,) = asyncio.run(corpus.look("days of leave", 30)).readings
    assert page.official and page.read_at is not None
    (opened.folder / "handbook").rename(opened.folder / "away")
    failed = asyncio.run(corpus.look("canteen", 30))
    assert len(failed.readings) == 2 and "handbook cannot be read" in failed.failures[0]
