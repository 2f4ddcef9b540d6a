"""Documents of corpora, read from real folders: good ones, changed ones, and folders written to do harm."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from vouchgate.ingest.citations import given_citation
from vouchgate.ingest.claims.source import Found, Missing, SourceReading, Standing, Unreachable
from vouchgate.ingest.sources.answers import NoAnswer
from vouchgate.ingest.sources.corpus import folder as folders
from vouchgate.ingest.sources.corpus import source as sources
from vouchgate.ingest.sources.corpus.source import Corpus, CorpusSource
from vouchgate.ingest.sources.web.extractor import Extractor

LEAVE = "# Leave\n\nEmployees have 27 days of leave per year.\n"
SECRET = "The vault of the bank opens with 4711 at night."

Open = Callable[..., CorpusSource]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "handbook"
    (made / "policies").mkdir(parents=True)
    (made / "policies/leave.md").write_text(LEAVE)
    return made


@pytest.fixture
def opened() -> Iterator[Open]:
    """Opens corpora whose folders are listed anew for every search."""
    made: list[CorpusSource] = []
    extractor = Extractor(workers=1)

    def open_(*corpora: Corpus) -> CorpusSource:
        made.append(CorpusSource(corpora, extractor, timeout_seconds=30))
        return made[-1]

    with closing(extractor):
        yield open_
        for each in made:
            each.close()


@pytest.fixture(autouse=True)
def _always_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "FRESH_SECONDS", 0.0)
    monkeypatch.setattr(sources, "_SHARE", 1e9)


def read(source: CorpusSource, path: str) -> SourceReading:
    return source.read(given_citation("corpus", f"handbook/{path}"))


def documents(source: CorpusSource, words: str) -> list[str]:
    return [one.passage.document for one in source.search(words, 12, 30).found]


def test_a_document_of_an_official_corpus_is_read_whole_with_its_date(folder: Path, opened: Open) -> None:
    os.utime(folder / "policies/leave.md", (1_700_000_000, 1_700_000_000))
    source = opened(Corpus("handbook", folder, official=True))
    found = read(source, "policies/leave.md")
    assert isinstance(found, Found)
    assert (found.standing, found.official, found.form) == (Standing.IN_FORCE, True, "file")
    assert (found.title, found.text) == ("Leave", LEAVE.strip())
    assert found.dated is not None and found.dated.isoformat() == "2023-11-14T22:13:20+00:00"
    (folder / "policies/leave.md").write_text(LEAVE.replace("27", "28"))
    again = read(source, "policies/leave.md")
    assert isinstance(again, Found) and again.digest != found.digest
    (folder / "policies/leave.md").unlink()
    assert isinstance(read(source, "policies/leave.md"), Missing)


def test_html_is_read_as_a_page(folder: Path, opened: Open) -> None:
    text = "Visitors receive a badge with a blue stripe at the reception desk on the ground floor."
    (folder / "badge.html").write_text(
        f"<html><title>Badges</title><body><script>x()</script><main><h1>Badges</h1><p>{text}</p></main></body></html>"
    )
    source = opened(Corpus("handbook", folder, official=True))
    found = read(source, "badge.html")
    assert isinstance(found, Found) and text in found.text and "x()" not in found.text
    assert documents(source, "badge blue stripe") == ["corpus:handbook/badge.html"]


def test_other_corpora_and_memory_files_are_hints_and_no_evidence(folder: Path, opened: Open) -> None:
    (folder / "memory-bank").mkdir()
    (folder / "memory-bank/notes.md").write_text(LEAVE)
    (folder / "CLAUDE.md").write_text(LEAVE)
    plain, official = opened(Corpus("handbook", folder)), opened(Corpus("handbook", folder, official=True))
    found = read(plain, "policies/leave.md")
    assert isinstance(found, Found) and (found.standing, found.official) == (Standing.HINT, False)
    for path in ("CLAUDE.md", "memory-bank/notes.md"):
        found = read(official, path)
        assert isinstance(found, Found) and (found.standing, found.official) == (Standing.MEMORY, False)
    assert documents(official, "employees leave") == ["corpus:handbook/policies/leave.md"]


def test_a_search_follows_what_changes(folder: Path, opened: Open) -> None:
    source = opened(Corpus("handbook", folder))
    before = source.digest(30)
    assert documents(source, "days of leave") == ["corpus:handbook/policies/leave.md"]
    (folder / "policies/leave.md").write_text("# Parking\n\nBicycles are parked in the yard.\n")
    (folder / "yard.txt").write_text("The yard is closed at 22:00.\n")
    assert documents(source, "days of leave") == []
    assert sorted(documents(source, "yard")) == [
        "corpus:handbook/policies/leave.md",
        "corpus:handbook/yard.txt",
    ]
    assert source.digest(30) != before
    (folder / "yard.txt").unlink()
    assert documents(source, "yard closed") == ["corpus:handbook/policies/leave.md"]


def test_nothing_outside_is_read(folder: Path, opened: Open, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text(SECRET)
    (folder / "link.md").symlink_to(outside / "secret.md")
    (folder / "linked").symlink_to(outside)
    (folder / "up.md").symlink_to("../outside/secret.md")
    (folder / "policies/self").symlink_to(folder)
    source = opened(Corpus("handbook", folder, official=True))
    assert documents(source, "vault bank 4711") == []
    for path in ("link.md", "up.md", "linked/secret.md", "policies/self/policies/leave.md"):
        reading = read(source, path)
        assert isinstance(reading, Unreachable) and reading.code == "not_supported", path


def test_a_folder_that_becomes_a_link_while_it_is_read_leads_nowhere(
    folder: Path, opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/leave.md").write_text(SECRET)
    source = opened(Corpus("handbook", folder, official=True))
    listed = folders.list_folder

    def swap_after(where: Path, deadline: float) -> folders.Listing:
        found = listed(where, deadline)
        (folder / "policies").rename(folder / "before")
        (folder / "policies").symlink_to(tmp_path / "outside")
        return found

    monkeypatch.setattr(sources, "list_folder", swap_after)
    assert documents(source, "vault bank 4711") == []
    assert isinstance(read(source, "policies/leave.md"), Unreachable)


def test_what_is_no_document_hangs_and_breaks_nothing(
    folder: Path, opened: Open, caplog: pytest.LogCaptureFixture
) -> None:
    os.mkfifo(folder / "pipe.md")
    with closing(socket.socket(socket.AF_UNIX)) as listening:
        listening.bind(str(folder / "socket.md"))
    with (folder / "huge.md").open("wb") as huge:
        huge.truncate(1 << 30)
    (folder / "binary.md").write_bytes(b"\x7fELF\x00\x01" * 1000)
    (folder / "latin.txt").write_bytes("Die Kantine öffnet um 11:45 für Gäste.".encode("latin-1"))
    (folder / "line\nbreak.md").write_text(LEAVE)
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff\xfe.md")).write_text(LEAVE)
    (folder / "directory.md").mkdir()
    (folder / "broken.html").write_text("<html><body><p>" + "<b>" * 5_000)
    source = opened(Corpus("handbook", folder, official=True))
    assert documents(source, "employees leave") == ["corpus:handbook/policies/leave.md"]
    assert documents(source, "Kantine") == ["corpus:handbook/latin.txt"]
    for path in ("pipe.md", "socket.md", "huge.md", "binary.md", "directory.md"):
        reading = read(source, path)
        assert isinstance(reading, Unreachable) and reading.code == "not_supported", path
    for said in (
        "2, a link, or no regular file",
        "1, larger than",
        "2, its name cannot be cited",
        "binary.md is not text",
    ):
        assert said in caplog.text


NOBODY = 65534


@contextmanager
def as_somebody_else(folder: Path) -> Iterator[None]:
    """Nothing is forbidden to the superuser, so that one reads as nobody here."""
    if os.geteuid() != 0:
        yield
        return
    for each in (folder, *folder.parents[:-1]):
        each.chmod(each.stat().st_mode | 0o055)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def test_what_may_not_be_read_could_not_be_found_out(
    folder: Path, opened: Open, caplog: pytest.LogCaptureFixture
) -> None:
    (folder / "closed.md").write_text(SECRET)
    (folder / "closed.md").chmod(0)
    source = opened(Corpus("handbook", folder, official=True))
    with as_somebody_else(folder):
        assert documents(source, "employees leave") == ["corpus:handbook/policies/leave.md"]
        assert "such as closed.md cannot be read" in caplog.text
        assert isinstance(read(source, "closed.md"), Unreachable)
    (folder / "closed.md").chmod(0o644)
    assert documents(source, "vault bank") == ["corpus:handbook/closed.md"]


def test_a_folder_that_is_gone_says_nothing_of_what_was_in_it(folder: Path, opened: Open) -> None:
    source = opened(Corpus("handbook", folder, official=True))
    folder.rename(folder.with_name("away"))
    assert isinstance(read(source, "policies/leave.md"), Unreachable)
    assert source.search("leave", 12, 30) == (
        (),
        ("The folder handbook cannot be read: No such file or directory.",),
    )
    folder.with_name("away").rename(folder)
    assert documents(source, "employees leave") == ["corpus:handbook/policies/leave.md"]


def test_more_than_is_read_is_said(
    folder: Path, opened: Open, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(folders, "MOST_DOCUMENTS", 3)
    for number in range(5):
        (folder / f"{number}.md").write_text(f"Document number {number} speaks of pears.")
    source = opened(Corpus("handbook", folder))
    assert len(documents(source, "pears speaks document")) in (2, 3)
    assert "what comes after the first 3 documents" in caplog.text


def test_a_search_out_of_time_ends_and_the_next_one_gets_further(
    folder: Path, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(200):
        (folder / f"{number}.md").write_text(f"Document number {number} speaks of pears.")
    source = opened(Corpus("handbook", folder))
    assert "too long" in source.search("pears", 12, 0.0).failures[0]
    read_whole: list[str] = []

    def read_100(where: Path, path: str) -> folders.FileRead | None:
        if len(read_whole) == 100:
            read_whole.append("the time is up")
            raise NoAnswer("timeout", "Reading took too long.")
        read_whole.append(path)
        return folders.read_document(where, path)

    monkeypatch.setattr(sources, "read_document", read_100)
    assert "too long" in source.search("pears", 12, 30).failures[0]
    assert len(documents(source, "pears")) == 12
    assert len(read_whole) == 202 and len(set(read_whole)) == 202


def test_a_folder_within_folders_without_end_ends(
    folder: Path, opened: Open, caplog: pytest.LogCaptureFixture
) -> None:
    at = folder
    for _ in range(200):
        at /= "d"
        at.mkdir()
    (at / "deep.md").write_text(SECRET)
    source = opened(Corpus("handbook", folder))
    assert documents(source, "vault bank 4711") == []
    assert documents(source, "employees leave") == ["corpus:handbook/policies/leave.md"]
    assert "1, a folder too deep in others" in caplog.text
