"""The files that memories come in: which format a file has, and its rows, read as they are needed."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Callable, Container, Iterator
from contextlib import closing
from enum import StrEnum
from io import BufferedReader, FileIO
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Self

from vouchgate.adapters.rendering import Unrenderable, render, without_kind
from vouchgate.documents.files import ENDINGS
from vouchgate.importing.csv_rows import csv_rows
from vouchgate.importing.documents import document_rows, folder_rows, is_report, name_in, split_reports
from vouchgate.importing.json_items import WRAPPED, items
from vouchgate.importing.lines import BadLine, read_lines
from vouchgate.importing.mapping import UnknownShape, describe_shape
from vouchgate.importing.parquet import MAGIC, parquet_rows
from vouchgate.importing.rows import KNOWN, BadRow, Fields, ImportRow, Unreadable, parse_row, parse_time
from vouchgate.importing.shapes import graph_rows, item_rows
from vouchgate.ingest.documents import LARGEST

_HEAD = 1 << 16  # bytes by which a format is recognised
_SQLITE = b"SQLite format 3\x00"
_BOM = b"\xef\xbb\xbf"
_LIST = re.compile(rb"\[|\{[ \t\r]*\n")  # or an object over several lines, as a line of JSON lines is not
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_LISTS, _TOLD = 9, 60  # lists that were passed over, and characters of a name, that are told
_TRIED = 20  # rows at the beginning of which one has to be a memory


class Format(StrEnum):
    """What a file of memories is."""

    JSONL = "jsonl"  # one JSON object a line
    GRAPH = "graph"  # memory.jsonl of the knowledge-graph memory server: entities and relations
    MEM0 = "mem0"  # a JSON list of memories, bare or in an object: of mem0, Letta, Zep and others
    CSV = "csv"  # a table as text, its first row the names of its columns
    LANGGRAPH = "langgraph"  # the database of a LangGraph SqliteStore
    PARQUET = "parquet"  # a table of them, its columns the fields of a JSON object
    MARKDOWN = "markdown"  # a document, such as CLAUDE.md, or a folder of them


class RowFile:
    """The rows of a file or folder, in its order, to be gone through once; a context manager that closes it."""

    def __init__(
        self,
        path: str,
        form: Format | None = None,
        root: Path | None = None,
        fields: Fields = KNOWN,
        *,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Opens the file, `-` being standard input, and recognises its format unless it is said. A document's links to
        files are files of the repository whose top is `root`; `fields` says under which names its rows have what.
        `tell` is called at the end with what of it was passed over. Raises Unreadable."""
        self._path = path
        self._fields = fields
        self._tell = tell
        self._begun: Iterator[ImportRow | BadRow] | None = None
        self._root = root
        self.size: int | None = None  # bytes in all, where that is known
        self._folder = path != "-" and Path(path).is_dir()
        self._files, reports = split_reports(Path(path)) if self._folder else ([], [])
        self.reports = [name_in(Path(path), each) for each in reports]  # of audits: left out
        try:
            raw = FileIO(0, closefd=False) if path == "-" else FileIO(os.devnull if self._folder else path)
            self._stream = BufferedReader(raw, _HEAD)
            head = self._stream.peek(_HEAD)
        except OSError as error:
            raise Unreadable(f"{path}: cannot be read: {error.strerror}") from error
        self.format = form or (Format.MARKDOWN if self._folder else detect_format(head, path))
        if fields.list is not None and self.format is Format.JSONL:
            self.format = Format.MEM0
        refused = self._refused(head)
        if refused is not None:
            self._stream.close()
            raise Unreadable(refused)
        if self.format not in (Format.LANGGRAPH, Format.PARQUET, Format.MARKDOWN) and path != "-":
            self.size = Path(path).stat().st_size

    def _refused(self, head: bytes) -> str | None:
        """Why the file cannot be read as what it was taken for, if that is known from the start."""
        if self.format in (Format.LANGGRAPH, Format.PARQUET) and self._path == "-":
            what = "a database" if self.format is Format.LANGGRAPH else "Parquet"
            return f"{what} cannot be read from standard input; give its file"
        text = self.format not in (Format.LANGGRAPH, Format.PARQUET, Format.MARKDOWN)
        if text and (head.startswith(_UTF16) or b"\0" in head[:2]):
            return f"{self._path}: cannot be read: it is UTF-16, or no text at all; save it as UTF-8"
        if self._folder and self.format is not Format.MARKDOWN:
            return f"{self._path}: cannot be read: it is a folder, and only documents are read from one"
        if self._folder and not self._files:
            no = (
                "no document in this folder but reports of audits"
                if self.reports
                else "no document in this folder"
            )
            return f"{self._path}: cannot be read: there is {no}"
        if self.format is Format.MARKDOWN and is_report(head):
            return f"{self._path}: cannot be read: it is a report of an audit, and no memory"
        return None

    @property
    def position(self) -> int:
        """Bytes read so far."""
        return 0 if self.size is None else self._stream.tell()

    def look_ahead(self) -> None:
        """Reads up to the first memory. Raises UnknownShape where none of the first rows has a text and nobody has said
        which field it is, and Unreadable."""
        first, rows = list[ImportRow | BadRow](), self._rows()
        for row in rows:
            first.append(row)
            if isinstance(row, ImportRow) or len(first) == _TRIED:
                break
        shapes = [row.shape for row in first if isinstance(row, BadRow) and row.shape]
        if self._fields is KNOWN and shapes and len(shapes) == len(first):
            raise UnknownShape(*describe_shape(self._path, shapes))
        self._begun = chain(first, rows)

    def __iter__(self) -> Iterator[ImportRow | BadRow]:
        """Each row as soon as it is read. Raises Unreadable when the rest cannot be."""
        return self._rows() if self._begun is None else self._begun

    def _rows(self) -> Iterator[ImportRow | BadRow]:
        match self.format:
            case Format.JSONL:
                yield from jsonl_rows(self._stream, fields=self._fields)
            case Format.GRAPH:
                yield from graph_rows(read_lines(self._stream))
            case Format.MEM0:
                left = list[str]()
                found = items(self._stream, self._fields.list, left)
                yield from item_rows(found, self._root, self._fields)
                if left:
                    names = ", ".join(" ".join(each.split())[:_TOLD] for each in left[:_LISTS])
                    self._tell(
                        f"Passed over, as no memories are known under these names: the lists {names}. "
                        'list = "NAME" in a file for --map has one of them read'
                    )
            case Format.CSV:
                yield from csv_rows(self._stream, self._fields)
            case Format.LANGGRAPH:
                yield from _langgraph(self._path)
            case Format.PARQUET:
                yield from parquet_rows(self._path, fields=self._fields)
            case Format.MARKDOWN:
                if self._folder:
                    yield from folder_rows(Path(self._path), self._files, self._root)
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
    if ending in (".csv", ".tsv", ".af"):
        return Format.MEM0 if ending == ".af" else Format.CSV
    if _LIST.match(text) or WRAPPED.match(text.decode(errors="replace")):
        return Format.MEM0
    try:
        first = json.loads(text.split(b"\n", 1)[0])
    except (ValueError, RecursionError):  # UnicodeDecodeError is one
        return Format.JSONL
    graph = isinstance(first, dict) and (
        (first.get("type") == "entity" and "name" in first and "observations" in first)
        or (first.get("type") == "relation" and "from" in first and "relationType" in first)
    )
    return Format.GRAPH if graph else Format.JSONL


def jsonl_rows(
    stream: BinaryIO,
    until: int | None = None,
    before: int = 0,
    only: Container[int] | None = None,
    fields: Fields = KNOWN,
) -> Iterator[ImportRow | BadRow]:
    """The rows of JSON lines, of all or a part as of `read_lines`."""
    for line in read_lines(stream, until, before, only):
        place = f"line {line.number}"
        yield (
            BadRow(place, line.message)
            if isinstance(line, BadLine)
            else parse_row(place, line.fields, fields)
        )


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
    # Batches are read in one thread after another.
    database = sqlite3.connect(f"{uri}?mode=ro", uri=True, check_same_thread=False)
    try:
        database.execute("SELECT 1 FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:
        database.close()
        database = sqlite3.connect(f"{uri}?mode=ro&immutable=1", uri=True, check_same_thread=False)
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
        labels = [label for label in (*prefix.split("."), key) if label]
        content = render(labels, without_kind(decoded) or decoded).text
    except Unrenderable:
        return BadRow(place, "its value cannot be told as the text of a claim, or has too much of it")
    metadata = {"namespace": prefix, "key": key}
    saved_at = parse_time(at)  # in UTC, as SQLite makes it
    return ImportRow(place, content, metadata=metadata, saved_at=saved_at, origin=f"{prefix}/{key}"[:80])
