"""The files that memories come in: which format a file has, and its rows, read as they are needed."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections import Counter
from collections.abc import Container, Iterator
from contextlib import closing
from dataclasses import replace
from enum import StrEnum
from io import BufferedReader, FileIO
from pathlib import Path
from typing import Any, BinaryIO, Self

from vouchgate.adapters.rendering import Unrenderable, render
from vouchgate.documents.files import ENDINGS, documents_in
from vouchgate.importing.documents import document_rows, folder_rows
from vouchgate.importing.json_items import WRAPPED, NotAList, items
from vouchgate.importing.lines import BadLine, read_lines
from vouchgate.importing.parquet import MAGIC, parquet_rows
from vouchgate.importing.rows import BadRow, ImportRow, Unreadable, parse_row, parse_time
from vouchgate.ingest.documents import LARGEST

_HEAD = 1 << 16  # bytes by which a format is recognised
_SQLITE = b"SQLite format 3\x00"
_BOM = b"\xef\xbb\xbf"
_NAME_WORDS = 8  # of an entity's name and type together; more are a sentence
_VERBS = re.compile(
    r"\b(is|are|was|were|be|will|has|have|had|does|do|did|can|could|must|may|might|should|would|not|never|no)\b",
    re.IGNORECASE,
)


class Format(StrEnum):
    """What a file of memories is."""

    JSONL = "jsonl"  # one JSON object a line
    GRAPH = "graph"  # memory.jsonl of the knowledge-graph memory server: entities and relations
    MEM0 = "mem0"  # a JSON list of memories, bare or under "results"
    LANGGRAPH = "langgraph"  # the database of a LangGraph SqliteStore
    PARQUET = "parquet"  # a table of them, its columns the fields of a JSON object
    MARKDOWN = "markdown"  # a document, such as CLAUDE.md, or a folder of them


class RowFile:
    """The rows of a file or folder, in its order, to be gone through once; a context manager that closes it."""

    def __init__(self, path: str, form: Format | None = None, root: Path | None = None) -> None:
        """Opens the file, `-` being standard input, and recognises its format unless it is said. A document's links to
        files are files of the repository whose top is `root`. Raises Unreadable."""
        self._path = path
        self._root = root
        self.size: int | None = None  # bytes in all, where that is known
        self._folder = path != "-" and Path(path).is_dir()
        try:
            raw = FileIO(0, closefd=False) if path == "-" else FileIO(os.devnull if self._folder else path)
            self._stream = BufferedReader(raw, _HEAD)
            head = self._stream.peek(_HEAD)
        except OSError as error:
            raise Unreadable(f"{path}: cannot be read: {error.strerror}") from error
        self.format = form or (Format.MARKDOWN if self._folder else detect_format(head, path))
        refused = self._refused()
        if refused is not None:
            self._stream.close()
            raise Unreadable(refused)
        if self.format not in (Format.LANGGRAPH, Format.PARQUET, Format.MARKDOWN) and path != "-":
            self.size = Path(path).stat().st_size

    def _refused(self) -> str | None:
        """Why the file cannot be read as what it was taken for, if that is known from the start."""
        if self.format in (Format.LANGGRAPH, Format.PARQUET) and self._path == "-":
            what = "a database" if self.format is Format.LANGGRAPH else "Parquet"
            return f"{what} cannot be read from standard input; give its file"
        if self._folder and self.format is not Format.MARKDOWN:
            return f"{self._path}: cannot be read: it is a folder, and only documents are read from one"
        if self._folder and not documents_in(Path(self._path)):
            return f"{self._path}: cannot be read: there is no document in this folder"
        return None

    @property
    def position(self) -> int:
        """Bytes read so far."""
        return 0 if self.size is None else self._stream.tell()

    def __iter__(self) -> Iterator[ImportRow | BadRow]:
        """Each row as soon as it is read. Raises Unreadable when the rest cannot be."""
        match self.format:
            case Format.JSONL:
                yield from jsonl_rows(self._stream)
            case Format.GRAPH:
                yield from _graph(self._stream)
            case Format.MEM0:
                yield from _mem0(self._stream)
            case Format.LANGGRAPH:
                yield from _langgraph(self._path)
            case Format.PARQUET:
                yield from parquet_rows(self._path)
            case Format.MARKDOWN:
                if self._folder:
                    yield from folder_rows(Path(self._path), self._root)
                else:
                    content = self._stream.read(LARGEST + 1)
                    yield from document_rows(self._path, Path(self._path).name, content, self._root)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._stream.close()


def detect_format(head: bytes, path: str = "-") -> Format:
    """The format of a file that begins so; JSON lines when it is like none of the others. Any text may be a document,
    so of one only the name tells."""
    if head.startswith((_SQLITE, MAGIC)):
        return Format.LANGGRAPH if head.startswith(_SQLITE) else Format.PARQUET
    text = head.removeprefix(_BOM).lstrip()
    ending = Path(path).suffix.lower()
    if ending in ENDINGS and not (ending == ".txt" and text.startswith((b"{", b"["))):
        return Format.MARKDOWN
    if text.startswith(b"[") or WRAPPED.match(text.decode(errors="replace")) is not None:
        return Format.MEM0
    try:
        first = json.loads(text.split(b"\n", 1)[0])
    except ValueError:  # UnicodeDecodeError is one
        return Format.JSONL
    if isinstance(first, dict) and (
        (first.get("type") == "entity" and "name" in first and "observations" in first)
        or (first.get("type") == "relation" and "from" in first and "relationType" in first)
    ):
        return Format.GRAPH
    return Format.JSONL


def jsonl_rows(
    stream: BinaryIO, until: int | None = None, before: int = 0, only: Container[int] | None = None
) -> Iterator[ImportRow | BadRow]:
    """The rows of JSON lines, of all or a part as of `read_lines`."""
    for line in read_lines(stream, until, before, only):
        place = f"line {line.number}"
        yield BadRow(place, line.message) if isinstance(line, BadLine) else parse_row(place, line.fields)


def _graph(stream: BinaryIO) -> Iterator[ImportRow | BadRow]:
    """Each observation and each relation is a claim; an entity nobody says anything of is none."""
    seen: Counter[str] = Counter()
    for line in read_lines(stream):
        place = f"line {line.number}"
        if isinstance(line, BadLine):
            yield BadRow(place, line.message)
            continue
        found = _of_graph(line.fields)
        if found is None:
            yield BadRow(place, "is neither an entity with observations nor a relation of a knowledge graph")
            continue
        for row in found:
            seen[row.place] += 1
            yield replace(row, place=f"{row.place} {seen[row.place]} ({place})")


def _of_graph(fields: dict[str, Any]) -> list[ImportRow] | None:
    """The claims of a line; their place is what they are."""
    kind, name = fields.get("type"), fields.get("name")
    if kind == "entity":
        observations, of = fields.get("observations"), fields.get("entityType")
        if not isinstance(name, str) or not isinstance(observations, list):
            return None
        subject = f"{name} ({of}): " if isinstance(of, str) and of else f"{name}: "
        context = len(subject) if _only_names(subject) else 0
        texts = [text for text in observations if isinstance(text, str)]
        if len(texts) < len(observations):
            return None
        return [
            ImportRow(
                "observation", subject + text, metadata={"entity": name}, origin=name[:80], context=context
            )
            for text in texts
        ]
    ends = (fields.get("from"), fields.get("relationType"), fields.get("to"))
    if kind == "relation" and all(isinstance(end, str) for end in ends):
        return [
            ImportRow(
                "relation", " ".join(map(str, ends)), metadata={"relation": True}, origin=str(ends[0])[:80]
            )
        ]
    return None


def _only_names(subject: str) -> bool:
    """Whether a name and a type say nothing: an entity may be called by a whole sentence, which a source has to say."""
    return len(subject.split()) <= _NAME_WORDS and _VERBS.search(subject) is None


def _mem0(stream: BinaryIO) -> Iterator[ImportRow | BadRow]:
    try:
        for number, item in enumerate(items(stream), start=1):
            place = f"item {number}"
            if isinstance(item, str):
                yield ImportRow(place, item)
            elif isinstance(item, dict):
                yield parse_row(place, item)
            else:
                yield BadRow(place, "is neither an object nor a text")
    except NotAList as error:
        raise Unreadable(f"the file cannot be read to its end: {error}") from error


def _langgraph(path: str) -> Iterator[ImportRow | BadRow]:
    """The values of the table `store`, in the order in which they were written."""
    try:
        with closing(_read_only(path)) as database:
            columns = "prefix, key, value, created_at"
            for number, (prefix, key, value, at) in enumerate(
                database.execute(f"SELECT {columns} FROM store ORDER BY rowid"),  # noqa: S608  (a constant)
                start=1,
            ):
                yield _of_store(f"row {number}", str(prefix), str(key), value, at)
    except sqlite3.Error as error:
        raise Unreadable(
            f"{path}: is no database of a LangGraph SqliteStore that can be read: {error}"
        ) from error


def _read_only(path: str) -> sqlite3.Connection:
    """A connection that cannot write. A store that is in use keeps its latest rows in files beside it, which are
    read too; where none can be made, the file is read as it stands."""
    uri = Path(path).absolute().as_uri()
    database = sqlite3.connect(f"{uri}?mode=ro", uri=True)
    try:
        database.execute("SELECT 1 FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:
        database.close()
        database = sqlite3.connect(f"{uri}?mode=ro&immutable=1", uri=True)
    return database


def _of_store(place: str, prefix: str, key: str, value: Any, at: Any) -> ImportRow | BadRow:
    try:
        decoded = json.loads(value)
    except (ValueError, TypeError, RecursionError):
        return BadRow(place, "its value is no JSON")
    if not isinstance(decoded, dict):
        return BadRow(place, "its value is no JSON object")
    try:
        # The text that the gated store would send (`vouchgate.adapters.langgraph`), so that both are one claim.
        content = render([label for label in (*prefix.split("."), key) if label], decoded).text
    except Unrenderable:
        return BadRow(place, "its value cannot be told as the text of a claim, or has too much of it")
    metadata = {"namespace": prefix, "key": key}
    saved_at = parse_time(at)  # in UTC, as SQLite makes it
    return ImportRow(place, content, metadata=metadata, saved_at=saved_at, origin=f"{prefix}/{key}"[:80])
