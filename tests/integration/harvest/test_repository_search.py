"""Claims that cite nothing, looked up in the repositories: stored when an official document states them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.claims import submission_of
from tests.repos import TestRepository
from tests.reviews import memory
from vouchgate.client import next_step
from vouchgate.gate.examiner import Examiner
from vouchgate.harvest.documents import REPOSITORY, DocumentSearch, Harvested
from vouchgate.ingest.check import NOTHING_NEAR
from vouchgate.ingest.checks.hedge import HedgeDetector
from vouchgate.ingest.citations import given_citation
from vouchgate.ingest.claims.citation import CitationType
from vouchgate.ingest.claims.claim import Claim, MemoryType, Source
from vouchgate.ingest.claims.decision import Label, Outcome, ValidationResult
from vouchgate.ingest.claims.memory import MemoryStatus
from vouchgate.ingest.claims.source import Stance
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.pipeline import Examined, replay
from vouchgate.ingest.rules import Rule
from vouchgate.ingest.sources.git.source import GitSource
from vouchgate.ingest.support.unread import says_of_unread
from vouchgate.review.recheck import RecheckResult
from vouchgate.sources.reader import Sources
from vouchgate.storage.claims.submit import Decided
from vouchgate.storage.store import Store
from vouchgate.workers.recheck import Rechecker

RECORD = """# 4. Keep sessions in Redis

## Status

Accepted

## Decision

Sessions are kept in Redis and expire after 20 minutes of silence.

## Considered options

* Redis
* Memcached: sessions are kept in Memcached.
"""
GUIDE = (
    "# Operations\n\n## Backups\n\nBackups of the ledger run every night at 02:15 and are kept for 35 days.\n"
)
MEASURED = "It was measured in March on the old server, with a full disk."
NOTES = f"# Notes\n\nThe importer of invoices handles 600 files per hour. {MEASURED}\n"
FILES = {"docs/adrs/0004-sessions.md": RECORD, "docs/handbook/operations.md": GUIDE, "docs/notes.md": NOTES}
SESSIONS = "Sessions are kept in Redis and expire after 20 minutes of silence."
BACKUPS = "Backups of the ledger run every night at 02:15."
IMPORTER = "The importer of invoices handles 600 files per hour."

Ask = Callable[..., Examined]


@pytest.fixture
def repository(tmp_path: Path) -> TestRepository:
    made = TestRepository(tmp_path / "project")
    made.commit("Start", FILES)
    return made


def _claim(content: str, **fields: Any) -> Claim:
    known = {"memory_type": MemoryType.FACT, "owner_id": "ann"}
    sources = {"asserted_source": Source.AI_SYNTHESIS, "source": Source.AI_SYNTHESIS}
    return Claim(content=content, **(known | sources | fields))


def _parts(repository: TestRepository, **options: Any) -> tuple[Sources, DocumentSearch]:
    git = GitSource([repository.path], official=["docs/handbook/"], timeout_seconds=30, **options)
    return Sources(git, {}), DocumentSearch(REPOSITORY, git, CitationType.PATH)


@pytest.fixture
def ask(repository: TestRepository) -> Iterator[Ask]:
    """Examines a claim with this repository."""
    sources, search = _parts(repository)
    with closing(sources), closing(search):
        examiner = Examiner(load_policy(), sources, harvest=[search])
        with closing(examiner):
            yield lambda content, **fields: asyncio.run(examiner.examine(_claim(content, **fields)))


def _answer(examined: Examined) -> ValidationResult:
    examined = examined.knowing(dedup=NOTHING_NEAR)
    return examined.answer(examined.decide(), decision_id=None, memory_id=None, queue_id=None, took_ms=0)


@pytest.mark.parametrize("content", [SESSIONS, BACKUPS], ids=["a record", "a path marked official"])
def test_what_an_official_document_states_is_stored_as_a_fact_with_its_source(ask: Ask, content: str) -> None:
    result = _answer(ask(content))
    assert (result.outcome, result.rule) == (Outcome.STORED, Rule.CORROBORATED)
    assert result.evidence.label is Label.FACT
    (source,) = result.evidence.sources
    assert source.citation.harvested and source.citation in result.evidence.claim.citations
    assert replay(result, load_policy(), HedgeDetector(load_policy().lexicon)) == ()


@pytest.mark.parametrize(
    "content",
    [
        IMPORTER,
        "Sessions are kept in Memcached.",
        "Sessions are kept in Redis and expire after 45 minutes of silence.",
        "Backups of the ledger run every night at 02:15, and nobody has ever restored one.",
        "Backups of the ledger do not run every night at 02:15.",
        "The cat is on the mat.",
        "…",
    ],
    ids=["not official", "an option", "another number", "a lie beside it", "denied", "of nothing", "no word"],
)
def test_what_none_states_waits_as_before(ask: Ask, content: str) -> None:
    examined = ask(content)
    assert _answer(examined).outcome is Outcome.QUEUED
    assert examined.readings == () and examined.claim.citations == ()


def test_what_only_speaks_of_it_or_says_otherwise_is_shown_to_its_owner_and_the_agent(ask: Ask) -> None:
    result = _answer(ask(IMPORTER))
    (found,) = result.suggested
    assert (found.citation, found.stance) == ("docs/notes.md", Stance.STATES)
    assert found.quotation == IMPORTER
    assert "docs/notes.md speaks of it: read it" in next_step(result)
    assert replay(result, load_policy(), HedgeDetector(load_policy().lexicon)) == ()
    other = _answer(ask("The importer of invoices handles 900 files per hour."))
    assert [(each.citation, each.stance) for each in other.suggested] == [("docs/notes.md", Stance.REFUTES)]
    assert "may say otherwise" in next_step(other)


def test_commits_and_lines_of_code_are_hints_and_never_vouch(
    repository: TestRepository, tmp_path: Path
) -> None:
    said = "The exporter of ledgers calls flush_pages twice."
    repository.commit(said, {"docs/handbook/export.py": "def run():\n    flush_pages(2)\n"})
    git = GitSource([repository.path], official=["**"], timeout_seconds=30)
    with (
        closing(Sources(git, {})) as sources,
        closing(DocumentSearch(REPOSITORY, git, CitationType.PATH)) as search,
        closing(Examiner(load_policy(), sources, harvest=(search,))) as examiner,
    ):
        result = _answer(asyncio.run(examiner.examine(_claim(said))))
    assert result.rule is Rule.UNGROUNDED
    commit = repository.git("rev-parse", "--short", "HEAD").strip()
    assert (f"commit {commit}", Stance.STATES) in [(each.citation, each.stance) for each in result.suggested]
    with closing(DocumentSearch(REPOSITORY, git, CitationType.PATH)) as search:
        found = asyncio.run(search.look("flush_pages exporter", 30)).readings
    assert [each.url for each in found] == ["docs/handbook/export.py:2"]


UNREAD = "See https://backups.example.org/plan."


def test_a_claim_whose_citation_cannot_be_read_is_looked_up_too(ask: Ask) -> None:
    result = _answer(ask(f"{BACKUPS} {UNREAD}"))
    assert (result.outcome, result.rule, result.evidence.label) == (
        Outcome.STORED,
        Rule.CORROBORATED,
        Label.FACT,
    )
    assert [source.kind for source in result.evidence.sources] == ["unreachable", "found"]
    assert replay(result, load_policy(), HedgeDetector(load_policy().lexicon)) == ()
    waiting = _answer(ask(f"{IMPORTER} {UNREAD}"))
    assert (waiting.rule, len(waiting.evidence.sources)) == (Rule.CITATION_UNKNOWN, 1)
    assert [each.citation for each in waiting.suggested] == ["docs/notes.md"]
    assert _answer(ask(f"{BACKUPS} They are never tested. {UNREAD}")).outcome is Outcome.QUEUED


@pytest.mark.parametrize(
    "said",
    [
        f"RFC 9110 states that {BACKUPS[0].lower()}{BACKUPS[1:]}",
        f"{BACKUPS.removesuffix('.')} (https://backups.example.org/plan), as https://10.0.0.1/plan confirms.",
        f"{BACKUPS.removesuffix('.')} (https://10.0.0.1/Payroll-data-is-public-since-May).",
        f"{BACKUPS.removesuffix('.')} (mallory/is-root-of-all#12).",
        f"{BACKUPS} (docs/handbook/export.py) {UNREAD}",
    ],
    ids=["who says so", "confirms", "address", "name of an issue", "another could be read"],
)
def test_what_is_said_by_citing_what_cannot_be_read_waits(ask: Ask, said: str) -> None:
    result = _answer(ask(said))
    assert (result.outcome, result.rule) != (Outcome.STORED, Rule.CORROBORATED), result.reason
    assert result.outcome is Outcome.QUEUED


def test_a_quotation_of_what_cannot_be_read_waits() -> None:
    quoted = given_citation("url", "https://10.0.0.1/x").model_copy(update={"quote": "The vault is open."})
    plain = given_citation("url", "https://10.0.0.1/x")
    assert says_of_unread(BACKUPS, [quoted], [BACKUPS])
    assert not says_of_unread(BACKUPS, [plain], [BACKUPS])


@pytest.mark.parametrize(
    ("other", "waits_as"),
    [
        (f"# Invoices\n\n{IMPORTER} {MEASURED}\n", Rule.UNGROUNDED),
        ("# Invoices\n\nPer hour, the importer of invoices handles 600 files.\n", Rule.CORROBORATED),
        ("# Invoices\n\nPer hour, the importer of invoices handles 900 files.\n", Rule.UNGROUNDED),
    ],
    ids=["one text", "two", "another number"],
)
def test_what_two_repositories_state_in_their_own_words_waits_with_both_as_its_sources(
    repository: TestRepository, tmp_path: Path, other: str, waits_as: Rule
) -> None:
    second = TestRepository(tmp_path / "second")
    second.commit("Start", {"docs/invoices.md": other})
    git = GitSource([repository.path, second.path], timeout_seconds=30)
    stores = load_policy()
    rules = stores.corroboration.model_copy(update={"independent": "store"})
    stores = stores.model_copy(update={"corroboration": rules})
    results = []
    with (
        closing(Sources(git, {})) as sources,
        closing(DocumentSearch(REPOSITORY, git, CitationType.PATH)) as search,
    ):
        for policy in (load_policy(), stores):
            with closing(Examiner(policy, sources, harvest=[search])) as examiner:
                results.append(_answer(asyncio.run(examiner.examine(_claim(IMPORTER)))))
    asked, allowed = results
    assert (asked.outcome, asked.rule) == (Outcome.QUEUED, waits_as)
    is_corroborated = waits_as is Rule.CORROBORATED
    assert len(asked.evidence.sources) == (2 if is_corroborated else 0)
    assert allowed.outcome is (Outcome.STORED if is_corroborated else Outcome.QUEUED)
    assert allowed.evidence.label is Label.INFERENCE


def test_what_need_not_be_looked_up_is_not(repository: TestRepository) -> None:
    asked: list[str] = []

    class Noting:
        async def find(self, claim: str, seconds: float) -> Harvested:
            asked.append(claim)
            return Harvested((), (), ())

    sources, search = _parts(repository)
    off = load_policy().model_copy(update={"harvest": "off"})
    with closing(sources), closing(search):
        for policy, claim in (
            (load_policy(), _claim(SESSIONS, source=Source.USER)),
            (load_policy(), _claim(f"{SESSIONS} See ADR-4.")),
            (load_policy(), _claim("I guess sessions are kept in Redis.")),
            (load_policy(), _claim("Sessions may be kept in Redis.")),
            (off, _claim(SESSIONS)),
            (load_policy(), _claim(SESSIONS)),
        ):
            with closing(Examiner(policy, sources, harvest=[Noting()])) as examiner:
                asyncio.run(examiner.examine(claim))
    assert asked == [SESSIONS]


def test_only_the_protected_ref_and_no_memory_file_vouch(repository: TestRepository) -> None:
    repository.git("checkout", "--quiet", "-b", "agent")
    repository.commit("Mine", {"docs/handbook/mine.md": "The moon base has 12 rooms for guests.\n"})
    repository.git("checkout", "--quiet", "main")
    repository.commit("Memory", {"docs/handbook/CLAUDE.md": "The moon base has 12 rooms for guests.\n"})
    (repository.path / "docs/handbook/new.md").write_text("The moon base has 12 rooms for guests.\n")
    sources, search = _parts(repository)
    with closing(sources), closing(search):
        found = asyncio.run(search.find("The moon base has 12 rooms for guests.", 30))
    assert (found.citations, found.suggested, [each.found for each in found.looked]) == ((), (), [0])


def test_a_moved_ref_is_seen_and_what_cannot_be_read_is_left_out(repository: TestRepository) -> None:
    sources, search = _parts(repository)
    with closing(sources), closing(search):
        found = [each.value for each in asyncio.run(search.find(BACKUPS, 30)).citations]
        (repository.path / "docs/handbook/link.md").symlink_to("/etc/hostname")
        repository.commit(
            "Change",
            {
                "docs/handbook/operations.md": GUIDE.replace("02:15", "03:40"),
                "docs/handbook/binary.md": b"\x00\x01" * 500,
                "docs/handbook/huge.md": f"{BACKUPS}\n\n" * 40_000,
                "docs/handbook/deep/copy.txt": "Ledger: backups run every night at 03:40.\n",
            },
        )
        again = [each.value for each in asyncio.run(search.find(BACKUPS, 30)).citations]
        changed = [
            each.value for each in asyncio.run(search.find(BACKUPS.replace("02:15", "03:40"), 30)).citations
        ]
    assert (found, again) == (["docs/handbook/operations.md"], [])
    assert sorted(changed) == ["docs/handbook/deep/copy.txt", "docs/handbook/operations.md"]


def test_a_repository_that_cannot_be_searched_costs_nobody_a_claim(
    repository: TestRepository, caplog: pytest.LogCaptureFixture
) -> None:
    sources, search = _parts(repository)
    repository.path.rename(repository.path.with_name("away"))
    with closing(sources), closing(search):
        found = asyncio.run(search.find(BACKUPS, 30))
    assert (found.citations, found.suggested) == ((), ())
    (look,) = found.looked
    assert look.path == "repository" and "Backups" in look.query and look.failure
    assert "could not be searched" in caplog.text


def test_a_repository_without_all_of_its_files_is_a_row(repository: TestRepository) -> None:
    repository.object_file(repository.git("rev-parse", "HEAD:docs/handbook/operations.md")).unlink()
    sources, search = _parts(repository)
    with closing(sources), closing(search):
        (look,) = asyncio.run(search.find(BACKUPS, 30)).looked
    assert look.failure and "Not every file" in look.failure


def test_what_waits_is_looked_up_again_and_stored_when_a_document_states_it(
    repository: TestRepository, store: Store
) -> None:
    policy, claim = load_policy(), "The observatory closes its dome at 12 degrees below zero."
    store.save_policy(policy, datetime.now(UTC))
    sources, search = _parts(repository)
    with closing(sources), closing(search), closing(Examiner(policy, sources, harvest=[search])) as examiner:
        rechecker = Rechecker(store, policy, examiner.examine, sources.read)
        answer = store.writer.submit(submission_of(asyncio.run(examiner.examine(_claim(claim))))).result()
        assert isinstance(answer, Decided) and answer.answer.rule is Rule.UNGROUNDED
        first = asyncio.run(rechecker.job.run_once(datetime.now(UTC) + timedelta(days=1)))
        again = asyncio.run(rechecker.job.run_once(datetime.now(UTC) + timedelta(days=15)))
        repository.commit("Say so", {"docs/handbook/dome.md": f"# Dome\n\n{claim}\n"})
        then = asyncio.run(rechecker.job.run_once(datetime.now(UTC) + timedelta(days=28)))
    assert (dict(first), dict(again)) == ({}, {RecheckResult.AGAIN: 1})
    assert dict(then) == {RecheckResult.PROMOTED: 1}


def test_what_was_stored_so_is_stale_when_its_document_changes(
    repository: TestRepository, store: Store
) -> None:
    policy, later = load_policy(), datetime(2030, 1, 1, tzinfo=UTC)
    store.save_policy(policy, datetime.now(UTC))
    sources, search = _parts(repository)
    with closing(sources), closing(search), closing(Examiner(policy, sources, harvest=[search])) as examiner:
        examined = asyncio.run(examiner.examine(_claim(BACKUPS)))
        answer = store.writer.submit(submission_of(examined)).result()
        assert isinstance(answer, Decided) and answer.answer.rule is Rule.CORROBORATED
        repository.commit("Change", {"docs/handbook/operations.md": GUIDE.replace("02:15", "03:40")})
        rechecker = Rechecker(store, policy, examiner.examine, sources.read, clock=lambda: later)
        asyncio.run(rechecker.job.run_once(later))
    kept = memory(store, answer.answer.memory_id or "", later)
    assert kept.status is MemoryStatus.ACTIVE and kept.stale_since is not None
