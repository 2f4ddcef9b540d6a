"""The sources of documents: all at once, a host at its pace, again when they were down, and what dies on the way."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from tests.repos import TestRepository
from tests.unit.documents.checks import NOW, POLICY
from tests.unit.documents.desk import read
from vouchgate.documents import recording
from vouchgate.documents.checking import AT_ONCE, check_document, read_sources
from vouchgate.ingest.citations import given_citation
from vouchgate.ingest.claims.citation import Citation, CitationType
from vouchgate.ingest.claims.source import Found, Missing, SourceReading, Standing, Unreachable
from vouchgate.ingest.documents.gate import gate
from vouchgate.ingest.documents.verdict import ClaimVerdict, everything_cited
from vouchgate.ingest.sources.git.adr_status import file_number
from vouchgate.ingest.sources.git.source import GitSource


class Shelf:
    """Sources whose hosts behave by their names: `dies…`, `down…` (the first time), `gone…` (every time) and others."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, bool]] = []
        self.open: Counter[str] = Counter()
        self.most: Counter[str] = Counter()

    async def read(self, citation: Citation, *, fresh: bool = False) -> SourceReading:
        host = citation.value.split("/")[2]
        self.asked.append((host, fresh))
        for name in (host, "all"):
            self.open[name] += 1
            self.most[name] = max(self.most[name], self.open[name])
        await asyncio.sleep(0.001)
        for name in (host, "all"):
            self.open[name] -= 1
        if host.startswith("dies"):
            raise RuntimeError("the disk is full")
        if host.startswith("gone") or (host.startswith("down") and not fresh):
            return Unreachable(citation=citation, code="connection", detail=f"{host} is down.")
        text = f"The bowl of {host} is red."
        return Found(
            citation=citation, source_id=citation.value, standing=Standing.IN_FORCE, detail="", text=text
        )


def document_of(hosts: Sequence[str]) -> str:
    return "\n\n".join(
        f"The bowl of {host} is red ([page](https://{host}/{at}))." for at, host in enumerate(hosts)
    )


def run(
    hosts: Sequence[str], shelf: Shelf, *, again_after: float = 0.0, per_host: int = 2
) -> list[ClaimVerdict]:
    document = read(document_of(hosts))
    readings = asyncio.run(
        read_sources(shelf, everything_cited([document]), per_host=per_host, again_after=again_after)
    )
    return [one.verdict for one in check_document(document, readings, POLICY, NOW, baseline={}).claims]


def test_f6_f7_a_provider_that_dies_in_the_middle_leaves_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What raised could not be found out; what was read is shown."""
    hosts = ["a.example", "dies.example", "b.example"]
    document = read(document_of(hosts))
    readings = asyncio.run(read_sources(Shelf(), everything_cited([document]), per_host=2))
    checked = check_document(document, readings, POLICY, NOW, baseline={})
    answer = gate([checked], POLICY)
    assert [one.verdict for one in checked.claims] == [
        ClaimVerdict.VERIFIED,
        ClaimVerdict.UNKNOWN,
        ClaimVerdict.VERIFIED,
    ]
    assert answer.status == 3
    assert "the disk is full" in caplog.text


def test_a_source_that_was_down_is_asked_once_more() -> None:
    shelf = Shelf()
    verdicts = run(["down.example", "gone.example", "a.example"], shelf)
    assert verdicts == [ClaimVerdict.VERIFIED, ClaimVerdict.UNKNOWN, ClaimVerdict.VERIFIED]
    assert Counter(shelf.asked) == {
        ("down.example", False): 1,
        ("down.example", True): 1,
        ("gone.example", False): 1,
        ("gone.example", True): 1,
        ("a.example", False): 1,
    }


def test_a_host_is_asked_at_its_pace_and_holds_no_other_up() -> None:
    hosts = ["slow.example"] * 100 + [f"host{at}.example" for at in range(100)]
    shelf = Shelf()
    assert set(run(hosts, shelf)) == {ClaimVerdict.VERIFIED}
    assert shelf.most["slow.example"] == 2
    assert AT_ONCE >= shelf.most["all"] > AT_ONCE // 2


def test_a_source_is_read_once_however_often_it_is_cited() -> None:
    shelf = Shelf()
    document = read("\n\n".join(["The bowl of a.example is red ([page](https://a.example/1))."] * 50))
    asyncio.run(read_sources(shelf, everything_cited([document]), per_host=2))
    assert shelf.asked == [("a.example", False)]


class Repositories:
    """What lies in a git repository."""

    def __init__(self, path: Path) -> None:
        self._git = GitSource([path])

    async def read(self, citation: Citation, *, fresh: bool = False) -> SourceReading:
        return self._git.read(citation)


def test_files_of_a_repository_are_never_answered_from_a_cache(tmp_path: Path) -> None:
    """By its path a file is another one after a commit, and in another repository."""
    one, other = TestRepository(tmp_path / "one"), TestRepository(tmp_path / "other")
    one.commit("Red", {"bowls.md": "The bowls are red.\n"})
    other.commit("Nothing", {"ovens.md": "The oven is hot.\n"})
    cited = given_citation(CitationType.PATH, "bowls.md")

    def read(where: TestRepository) -> SourceReading:
        cache = recording.Cached(tmp_path / "kept", Repositories(where.path), timedelta(hours=1), NOW)
        return asyncio.run(cache.read(cited))

    assert isinstance(first := read(one), Found)
    one.commit("Green", {"bowls.md": "The bowls are green.\n"})
    assert isinstance(second := read(one), Found)
    assert (first.text, second.text) == ("The bowls are red.\n", "The bowls are green.\n")
    assert isinstance(read(other), Missing)


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("docs/guide/03-sessions.md", ClaimVerdict.VERIFIED),
        ("docs/adrs/0003-bowls.md", ClaimVerdict.BROKEN_CITATION),
        ("docs/adrs/adr-0004-ovens.md", ClaimVerdict.BROKEN_CITATION),
        ("docs/adrs/0005-pots.md", ClaimVerdict.UNKNOWN),
    ],
)
def test_a_document_is_the_record_that_lies_where_it_does(
    tmp_path: Path, name: str, verdict: ClaimVerdict
) -> None:
    """A numbered page is no record, whatever its number; and what could not be read is not called the document."""
    text = "# {}. Bowls\n\n## Status\n\nAccepted\n\n## Decision\n\nThe bowl of Ada is red.\n"
    files = {"docs/adrs/0003-bowls.md": text.format(3), "docs/adrs/adr-0004-ovens.md": text.format(4)}
    TestRepository(tmp_path).commit("Bowls", files)
    number = file_number(name)
    document = read(f"The bowl of Ada is red (ADR-{number}).", name)
    cited = everything_cited([document])
    readings = asyncio.run(read_sources(Repositories(tmp_path), cited, per_host=2))
    if number == 5:
        readings = {each.key: Unreachable(citation=each, code="timeout", detail="Late.") for each in cited}
    recording.write(tmp_path / "kept", readings, {}, NOW)
    again = asyncio.run(
        read_sources(recording.Replayed(tmp_path / "kept"), cited, per_host=2, again_after=0.0)
    )
    for read_then in (readings, again):
        done = check_document(document, read_then, POLICY, NOW, baseline={}, own=name)
        assert [one.verdict for one in done.claims] == [verdict]
