"""Passages of documents, found by their words: SQLite's full-text search over a temporary database of its own, which is
gone with the process. What it finds is a place to look, never evidence."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator
from threading import Lock
from typing import NamedTuple

LONGEST = 1_200  # characters of a passage, but for a paragraph that is longer
_HEADING = re.compile(r"(#{1,6}|={1,5})[ \t]+(\S.*?)[ \t#=]*")
_UNDERLINE = re.compile(r"(?:={3,}|-{3,}|~{3,}|\^{3,})")


class Passage(NamedTuple):
    """A stretch of a document, with the headings it stands under, one a line."""

    document: str
    heading: str
    text: str


class PassageIndex:
    """Documents by name. Safe to call from several threads; `close` it when done."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._database = sqlite3.connect("", check_same_thread=False, isolation_level=None)
        self._database.execute(
            "CREATE VIRTUAL TABLE passage USING fts5"
            "(document UNINDEXED, heading, body, tokenize = 'porter unicode61')"
        )

    def close(self) -> None:
        """Frees what it holds."""
        with self._lock:
            self._database.close()

    def put(self, document: str, text: str) -> None:
        """Puts a document in, in place of what was there under its name."""
        rows = [tuple(passage) for passage in passages_of(document, text)]
        with self._lock:
            self._database.execute("BEGIN")
            self._database.execute("DELETE FROM passage WHERE document = ?", (document,))
            self._database.executemany("INSERT INTO passage VALUES (?, ?, ?)", rows)
            self._database.execute("COMMIT")

    def remove(self, documents: Iterable[str]) -> None:
        """Takes documents out; one that is not in is no error."""
        with self._lock:
            self._database.executemany(
                "DELETE FROM passage WHERE document = ?", [(each,) for each in documents]
            )

    def search(self, words: str, most: int) -> list[Passage]:
        """The passages that have most of these words, and the rarest, best first."""
        quoted = ['"' + word.replace('"', '""') + '"' for word in words.split()]
        if not quoted:
            return []
        with self._lock:
            rows = self._database.execute(
                "SELECT document, heading, body FROM passage WHERE passage MATCH ? ORDER BY rank, rowid LIMIT ?",
                (" OR ".join(quoted), most),
            ).fetchall()
        return [Passage(*row) for row in rows]


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
