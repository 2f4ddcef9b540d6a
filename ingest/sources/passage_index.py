"""Passages of documents, found by their words: SQLite's full-text search over a temporary database of its own, which is
gone with the process. What it finds is a place to look, never evidence."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import NamedTuple

from vouchgate.ingest.sources.plain_text import plain

LONGEST = 1_200  # characters of a passage, but for a paragraph that is longer
_AT_ONCE = 64  # documents put in by one transaction
_HEADING = re.compile(r"(#{1,6}|={1,5})[ \t]+(\S.*?)[ \t#=]*")
_UNDERLINE = re.compile(r"(?:={3,}|-{3,}|~{3,}|\^{3,})")


class Passage(NamedTuple):
    """A stretch of a document, with the headings it stands under, one a line."""

    document: str
    heading: str
    text: str


class FoundPassage(NamedTuple):
    """A passage that a search found. `project` is the repository it is in, by name; `may_vouch` is false where nothing
    is ever more than a hint."""

    project: str
    passage: Passage
    may_vouch: bool = True


class Search(NamedTuple):
    """What a search over several repositories or corpora found, best first in each. `failures` are sentences on those
    that could not be searched: what is not found then may be there."""

    found: tuple[FoundPassage, ...]
    failures: tuple[str, ...]


class PassageIndex:
    """Documents by name. Safe to call from several threads, but for `follow`; `close` it when done."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._database = sqlite3.connect("", check_same_thread=False, isolation_level=None)
        self._database.execute(
            "CREATE VIRTUAL TABLE passage USING fts5"
            "(document UNINDEXED, heading, body, tokenize = 'porter unicode61')"
        )
        self._rows: dict[str, range] = {}  # of each document, for there is no index by name
        self._last = 0
        self._versions: dict[str, Hashable] = {}

    def close(self) -> None:
        """Frees what it holds."""
        with self._lock:
            self._database.close()

    def follow(
        self, wanted: Mapping[str, Hashable], read: Callable[[Sequence[str]], Iterable[tuple[str, str]]]
    ) -> None:
        """Makes the documents those of `wanted`, which has the version of each: takes out what is gone, and puts in
        what is new or has another version. `read` gives names with their texts, in any order; what it raises ends this,
        and what it gave until then stays."""
        gone = [name for name, version in self._versions.items() if wanted.get(name) != version]
        self.remove(gone)
        for name in gone:
            del self._versions[name]
        missing = [name for name in wanted if name not in self._versions]
        for start in range(0, len(missing), _AT_ONCE):
            texts: dict[str, str] = {}
            try:
                texts.update(read(missing[start : start + _AT_ONCE]))  # one by one
            finally:
                self.put(texts)
                self._versions |= {name: wanted[name] for name in texts}

    def put(self, texts: Mapping[str, str]) -> None:
        """Puts documents in, in place of what was there under their names."""
        passages = {name: list(passages_of(name, text)) for name, text in texts.items()}
        with self._lock, self._transaction():
            for name, rows in passages.items():
                self._remove(name)
                first, self._last = self._last + 1, self._last + len(rows)
                self._rows[name] = range(first, self._last + 1)
                self._database.executemany(
                    "INSERT INTO passage (rowid, document, heading, body) VALUES (?, ?, ?, ?)",
                    [(row, *passage) for row, passage in zip(self._rows[name], rows, strict=True)],
                )

    def remove(self, documents: Iterable[str]) -> None:
        """Takes documents out; one that is not in is no error."""
        with self._lock, self._transaction():
            for name in documents:
                self._remove(name)

    def search(self, words: str, most: int) -> list[Passage]:
        """The passages that have most of these words, and the rarest, best first. A passage with half of the words has
        one of the rarer half, so only those are asked for: common ones would bring in every other passage."""
        quoted = ['"' + word.replace('"', '""') + '"' for word in dict.fromkeys(plain(words).split())]
        with self._lock:
            counted = sorted((self._count(word), word) for word in quoted)
            there = [word for count, word in counted if count]
            if not there:
                return []
            rows = self._database.execute(
                "SELECT document, heading, body FROM passage WHERE passage MATCH ? ORDER BY rank, rowid LIMIT ?",
                (" OR ".join(there[: len(there) // 2 + 1]), most),
            ).fetchall()
        return [Passage(*row) for row in rows]

    def _count(self, quoted: str) -> int:
        (count,) = self._database.execute(
            "SELECT count(*) FROM passage WHERE passage MATCH ?", (quoted,)
        ).fetchone()
        return int(count)

    def _remove(self, name: str) -> None:
        self._database.executemany(
            "DELETE FROM passage WHERE rowid = ?", [(row,) for row in self._rows.pop(name, ())]
        )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._database.execute("BEGIN")
        try:
            yield
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")


def passages_of(document: str, text: str) -> Iterator[Passage]:
    """A text cut at its headings and blank lines. Markdown, reStructuredText and AsciiDoc; linear."""
    headings: list[tuple[int, str]] = []
    held: list[str] = []
    size = 0
    for paragraph in re.split(r"\n[ \t]*\n", text):
        first, _, rest = paragraph.strip("\n").partition("\n")
        heading = _HEADING.fullmatch(first.strip())
        underlined = _UNDERLINE.fullmatch(rest.partition("\n")[0].strip()) if rest and first.strip() else None
        if heading or underlined or size + len(paragraph) > LONGEST:
            yield from _passage(document, headings, held)
            held, size = [], 0
        if heading or underlined:
            level = len(heading[1]) if heading else 2
            title = heading[2] if heading else first.strip()
            headings = [*(each for each in headings if each[0] < level), (level, title)]
        held.append(paragraph)
        size += len(paragraph)
    yield from _passage(document, headings, held)


def _passage(document: str, headings: list[tuple[int, str]], held: list[str]) -> Iterator[Passage]:
    text = "\n\n".join(held).strip()
    if text:
        yield Passage(document, "\n".join(title for _, title in headings), text)
