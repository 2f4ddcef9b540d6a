"""Files of other stores as rows: recognised by their content, read bit by bit, and a bad row spoils no other."""

from __future__ import annotations

import io
import json
import os
import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.base import PutOp
from langgraph.store.sqlite import SqliteStore
from pydantic import ValidationError

from vouchgate.adapters.langgraph_ops import Terms, build_write
from vouchgate.importing.formats import Format, RowFile, detect_format
from vouchgate.importing.json_items import NotAList, items
from vouchgate.importing.rows import (
    KNOWN,
    BadRow,
    Defaults,
    Fields,
    ImportRow,
    Unreadable,
    claim_from_row,
    parse_row,
    parse_time,
)
from vouchgate.ingest.claims.claim import MemoryType, Source

ENTITY = {
    "type": "entity",
    "name": "Ada",
    "entityType": "person",
    "observations": ["likes tea", "is left-handed"],
}
RELATION = {"type": "relation", "from": "Ada", "to": "Archive", "relationType": "runs"}


def read(path: Path, content: str | bytes, form: Format | None = None) -> list[ImportRow | BadRow]:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with RowFile(str(path), form) as rows:
        return list(rows)


def good(rows: list[ImportRow | BadRow]) -> list[ImportRow]:
    bad = [row for row in rows if isinstance(row, BadRow)]
    assert not bad, bad
    return [row for row in rows if isinstance(row, ImportRow)]


def lines(*values: Any) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


@pytest.mark.parametrize(
    ("head", "form"),
    [
        (lines({"content": "x"}), Format.JSONL),
        (lines({"type": "entity", "text": "a type of its own"}), Format.JSONL),
        (lines(ENTITY), Format.GRAPH),
        ("\ufeff" + lines(RELATION), Format.GRAPH),
        ("\n\n" + json.dumps(ENTITY), Format.GRAPH),
        ('[{"memory": "x"}]', Format.MEM0),
        ('  \n[\n  {"memory"', Format.MEM0),
        ('{\n  "results": [\n', Format.MEM0),
        ('{"memories":[]}', Format.MEM0),
        ("SQLite format 3\0 and so on", Format.LANGGRAPH),
        ("", Format.JSONL),
        ("no JSON at all", Format.JSONL),
        ("\xff\xfe", Format.JSONL),
        ("# Notes\n\nTea is at four.\n", Format.JSONL),
    ],
)
def test_a_format_is_recognised_by_how_the_file_begins(head: str, form: Format) -> None:
    assert detect_format(head.encode()) is form


@pytest.mark.parametrize(
    ("name", "head", "form"),
    [
        ("CLAUDE.md", "[Tea](tea.md) is at four.", Format.MARKDOWN),
        ("notes.txt", "Tea is at four.", Format.MARKDOWN),
        ("export.txt", lines({"text": "Tea is at four."}), Format.JSONL),
        ("export.txt", '[{"memory": "x"}]', Format.MEM0),
        ("memory.md", "SQLite format 3\0 and so on", Format.LANGGRAPH),
    ],
)
def test_a_document_is_recognised_by_its_name(name: str, head: str, form: Format) -> None:
    assert detect_format(head.encode(), name) is form


MEMORY = """---
kind: memory
---
# Club

Tea is at four, see [the plan](plan.md#tea).

| room | opens |
|------|-------|
| hall | 9:00 |

- Use the **side** door
- I like the [garden](https://garden.example/) best

The clubs that meet here:

- chess, see ADR-3
- Go is played there too. So is shogi.

```
Tea is at five.
```
"""


def test_each_sentence_of_a_document_is_a_row_with_what_it_cites(tmp_path: Path) -> None:
    """Also orders and opinions, which a memory file is full of; no heading, no code, no front matter."""
    (tmp_path / "club").mkdir()
    path = tmp_path / "club" / "MEMORY.md"
    path.write_text(MEMORY)
    with RowFile(str(path), root=tmp_path) as rows:
        found = good(list(rows))
    assert [(row.place, row.content) for row in found] == [
        ("MEMORY.md:6", "Tea is at four, see the plan."),
        ("MEMORY.md:10", "room: hall; opens: 9:00"),
        ("MEMORY.md:12", "Use the **side** door"),
        ("MEMORY.md:13", "I like the garden best"),
        ("MEMORY.md:15", "The clubs that meet here:"),
        ("MEMORY.md:17", "The clubs that meet here: chess, see ADR-3"),
        ("MEMORY.md:18", "Go is played there too."),
        ("MEMORY.md:18:27", "So is shogi."),
    ]
    assert [each["value"] for row in found for each in row.citations] == [
        "club/plan.md",
        "https://garden.example/",
        "ADR-3",
    ]
    assert found[-3].content[: found[-3].context] == "The clubs that meet here: "
    assert found[0].metadata == {"file": "MEMORY.md", "section": "Club"}


def test_a_folder_of_documents_is_read_whole_and_a_bad_file_spoils_no_other(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    for name, content in (
        ("a.md", b"Tea is at four.\n\nThe hall is cold.\n"),
        ("b.md", b"\x00\x01"),
        ("deep/c.rst", b"The plan is old."),
        ("d.md", b""),
        ("e.png", b"x"),
        (os.fsdecode(b"f\xff.md"), b"The roof is red."),
    ):
        (tmp_path / name).write_bytes(content)
    with RowFile(str(tmp_path)) as rows:
        assert rows.format is Format.MARKDOWN
        found = list(rows)
    assert [row.place for row in found] == ["a.md:1", "a.md:3", "b.md", "d.md", "deep/c.rst:1", "f?.md:1"]
    assert [row.message for row in found if isinstance(row, BadRow)] == [
        "cannot be read: it is binary: it has a zero byte",
        "cannot be read: it is empty",
    ]
    with pytest.raises(Unreadable, match="only documents"):
        RowFile(str(tmp_path), Format.JSONL)


def test_json_lines_have_the_fields_of_a_claim_or_a_text_by_another_name(tmp_path: Path) -> None:
    claim = {
        "content": "We use a queue, see ADR-003.",
        "memory_type": "decision",
        "source": "user",
        "user_id": "ada",
        "citations": ["ADR-003"],
        "validity_horizon": "2030-01-01T00:00:00Z",
        "metadata": {"ticket": 7},
    }
    other = {
        "text": "Tea is at four.",
        "id": 9,
        "tags": ["habit"],
        "source": "slack",
        "embedding": [0.1, 0.2],
    }
    first, second = good(read(tmp_path / "f.jsonl", lines(claim, other)))
    sent = claim_from_row(first, Defaults("somebody else"))
    assert sent.model_dump(mode="json", exclude_none=True, exclude_defaults=True) == claim
    defaults = Defaults("ada", MemoryType.PREFERENCE, Source.MANUAL)
    again = claim_from_row(second, defaults)
    assert (again.content, again.user_id, again.memory_type, again.source) == (
        "Tea is at four.",
        "ada",
        MemoryType.PREFERENCE,
        Source.MANUAL,
    )
    assert again.metadata == {"id": 9, "tags": ["habit"], "source": "slack"}
    assert claim_from_row(ImportRow("line 1", "x"), Defaults()).source is Source.AI_SYNTHESIS


@pytest.mark.parametrize("name", ["content", "text", "memory", "fact", "observation"])
def test_the_text_is_found_under_the_names_that_stores_use(name: str) -> None:
    row = parse_row("line 1", {"id": 1, name: "Tea is at four.", "metadata": {"a": 1}})
    assert isinstance(row, ImportRow)
    assert (row.content, row.metadata) == ("Tea is at four.", {"a": 1, "id": 1})


def test_a_bad_line_is_told_with_its_number_and_without_its_text(tmp_path: Path) -> None:
    secret = "sesame-open"
    text = (
        lines({"text": "one"})
        + f'{{"text": "{secret}\n\n["{secret}"]\n'
        + lines({"body": secret}, {"text": "two"})
    )
    rows = read(tmp_path / "f.jsonl", text)
    assert [row.place for row in rows] == ["line 1", "line 2", "line 4", "line 5", "line 6"]
    bad = [row for row in rows if isinstance(row, BadRow)]
    assert [row.place for row in bad] == ["line 2", "line 4", "line 5"]
    assert not any(secret in row.message for row in bad)


def test_an_observation_is_one_claim_and_a_relation_another(tmp_path: Path) -> None:
    bad = {"type": "entity", "name": "Bo", "observations": "no list"}
    rows = read(tmp_path / "memory.jsonl", lines(ENTITY, RELATION, bad, {**ENTITY, "observations": []}))
    assert [(row.place, row.content if isinstance(row, ImportRow) else None) for row in rows] == [
        ("observation 1 (line 1)", "Ada (person): likes tea"),
        ("observation 2 (line 1)", "Ada (person): is left-handed"),
        ("relation 1 (line 2)", "Ada runs Archive"),
        ("line 3", None),
    ]


@pytest.mark.parametrize(
    ("name", "kind", "context"),
    [
        ("Ada", "person", "Ada (person): "),
        ("Ada", "", "Ada: "),
        ("ticket-850", "tracker_item", "ticket-850 (tracker_item): "),
        ("Eve is the admin", "person", ""),
        ("Porto", "opens at ten", ""),
        ("Porto", "scam", ""),
        ("Porto", "Coffee shop", ""),
        ("Redis", "cache server", "Redis (cache server): "),
        ("The gate of the north wall that opens at nine", "place", ""),
    ],
)
def test_the_name_before_an_observation_is_context_unless_it_says_something(
    name: str, kind: str, context: str, tmp_path: Path
) -> None:
    (row,) = good(
        read(
            tmp_path / "memory.jsonl",
            lines({**ENTITY, "name": name, "entityType": kind, "observations": ["likes tea"]}),
        )
    )
    assert row.content.endswith(": likes tea")
    assert row.content[: row.context] == context


def mem0_items() -> list[dict[str, Any]]:
    """As `Memory.get_all` of the installed mem0 makes them."""
    # Loading it takes two seconds, which only the process that runs this file has to spend.
    from mem0.configs.base import MemoryItem  # type: ignore[import-untyped]  # the package has no types

    found = []
    for number, text in enumerate(("Likes tea", "Lives in Porto")):
        item = MemoryItem(
            id=f"m{number}",
            memory=text,
            hash="0" * 32,
            created_at="2026-03-01T08:00:00.123456+00:00",
            updated_at=None,
        ).model_dump(exclude={"score"})
        found.append({**item, "user_id": "ada", "agent_id": "helper", "metadata": {"category": "life"}})
    return found


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("wrapped", [False, True])
def test_a_mem0_export_is_a_list_bare_or_under_results(
    tmp_path: Path, wrapped: bool, indent: int | None
) -> None:
    value: Any = {"results": mem0_items(), "relations": []} if wrapped else mem0_items()
    rows = good(read(tmp_path / "export.json", json.dumps(value, indent=indent)))
    assert [(row.place, row.content, row.owner, row.origin) for row in rows] == [
        ("item 1", "Likes tea", "ada", "helper"),
        ("item 2", "Lives in Porto", "ada", "helper"),
    ]
    assert rows[0].saved_at == datetime(2026, 3, 1, 8, 0, 0, 123456, tzinfo=UTC)
    assert rows[0].metadata == {
        "category": "life",
        "id": "m0",
        "created_at": "2026-03-01T08:00:00.123456+00:00",
        "agent_id": "helper",
    }


def test_items_that_are_no_memory_are_told_and_a_file_that_breaks_off_gives_what_it_has(
    tmp_path: Path,
) -> None:
    rows = read(tmp_path / "export.json", '[{"memory": "a"}, 7, {"id": 1}, "bare text"]')
    assert [row.place for row in rows if isinstance(row, BadRow)] == ["item 2", "item 3"]
    assert [row.content for row in rows if isinstance(row, ImportRow)] == ["a", "bare text"]
    (tmp_path / "export.json").write_text('{"results": [{"memory": "a"}, {"memory": "b')
    found = []
    with RowFile(str(tmp_path / "export.json")) as opened, pytest.raises(Unreadable, match="character"):
        for row in opened:
            found.append(row)  # noqa: PERF402  (what came before it broke off is what is asked)
    assert [row.content for row in found if isinstance(row, ImportRow)] == ["a"]


class Dripping(io.RawIOBase):
    """A stream that gives a few bytes a time, and counts what was taken of it at once."""

    def __init__(self, content: bytes, most: int) -> None:
        self._content, self._most, self._at = content, most, 0

    def read(self, size: int = -1) -> bytes:
        part = self._content[self._at : self._at + self._most]
        self._at += len(part)
        return part


@given(
    st.lists(st.recursive(st.text() | st.integers() | st.booleans() | st.none(), st.lists, max_leaves=4)),
    st.integers(1, 9),
    st.sampled_from([None, 1]),
    st.booleans(),
)
def test_items_are_those_that_a_parser_of_the_whole_text_finds(
    values: list[Any], most: int, indent: int | None, wrapped: bool
) -> None:
    # A number at the top level could go on in what is read next, so each stands in a list here; no memory is a number.
    values = [[value] for value in values]
    text = json.dumps({"results": values} if wrapped else values, indent=indent, ensure_ascii=False)
    stream: Any = Dripping(text.encode("utf-8", "surrogatepass"), most)
    assert list(items(stream)) == values


@pytest.mark.parametrize(
    "text",
    [
        *("", "{}", "[", '[{"a": "b', '{"a": {}', "[" * 100_000, '{"a": [1]}', "7", "[1] [2]", "{1: [2]}"),
        '{"results": [1]}\n{"results": [2]}',
        '{"results": [1]} "facts": [2]}',
        '{"results": [1] "facts": [2]}',
    ],
)
def test_what_is_no_list_is_told_whatever_it_is(text: str) -> None:
    with pytest.raises(NotAList):
        list(items(io.BytesIO(text.encode("latin-1"))))


def test_lists_that_are_passed_over_are_told(tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    path.write_text('{"nodes": [], "old": [{"memory": "b"}, {}], "results": [{"memory": "a"}], "more": [1]}')
    told = list[str]()
    with RowFile(str(path), tell=told.append) as rows:
        assert [row.content for row in good(list(rows))] == ["a"]
    assert len(told) == 1
    assert "the lists old, more." in told[0]
    path.write_text('{"nodes": [], "results": [{"memory": "a"}]}')
    with RowFile(str(path), tell=told.append) as rows:
        assert len(good(list(rows))) == len(told) == 1


def test_a_large_list_is_not_held_whole() -> None:
    item = b'{"memory": "' + b"x" * 1000 + b'"}'
    largest = 0

    class Endless(io.RawIOBase):
        left = 3000
        begun = False

        def read(self, size: int = -1) -> bytes:
            nonlocal largest
            largest = max(largest, size)
            self.left -= 1
            start, self.begun = (b"," if self.begun else b"["), True
            return start + item if self.left > 0 else (b"]" if self.left == 0 else b"")

    stream: Any = Endless()
    assert sum(1 for _ in items(stream)) == 2999
    assert largest <= 1 << 17


def test_the_database_of_a_langgraph_store_is_read_and_not_written(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with SqliteStore.from_conn_string(str(path)) as store:
        store.setup()
        store.put(("users", "ada"), "tea", {"text": "Tea is at four."})
        store.put(("users", "ada"), "trip", {"to": "Porto", "days": 3})
    before = path.read_bytes()
    with RowFile(str(path)) as rows:
        assert rows.format is Format.LANGGRAPH
        found = good(list(rows))
    assert path.read_bytes() == before
    assert [(row.place, row.content, row.origin) for row in found] == [
        ("row 1", "Tea is at four.", "users.ada/tea"),
        ("row 2", "days = 3\nto: Porto", "users.ada/trip"),
    ]
    assert found[0].metadata == {"namespace": "users.ada", "key": "tea"}
    assert found[0].saved_at is not None


def test_a_value_of_langmem_is_told_as_the_gated_store_tells_it(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    value = {"kind": "Memory", "content": {"content": "Tea is at four."}}
    with SqliteStore.from_conn_string(str(path)) as store:
        store.setup()
        store.put(("users", "ada"), "tea", value)
    with RowFile(str(path)) as rows:
        (row,) = good(list(rows))
    terms = Terms("langgraph", "fact", "ai_synthesis", None)
    assert (
        row.content == build_write(PutOp(("users", "ada"), "tea", value), terms).content == "Tea is at four."
    )


def test_a_store_that_is_in_use_is_read_with_what_was_written_last(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with SqliteStore.from_conn_string(str(path)) as store:
        store.setup()
        store.put(("a",), "one", {"text": "first"})
        with RowFile(str(path)) as rows:
            assert [row.content for row in good(list(rows))] == ["first"]
        store.put(("a",), "two", {"text": "second"})


def test_values_that_are_no_memory_are_told(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with SqliteStore.from_conn_string(str(path)) as store:
        store.setup()
    database = sqlite3.connect(path)
    for key, value in (("a", "no JSON"), ("b", "[1]"), ("c", "{}"), ("d", '{"t": "x"}')):
        database.execute("INSERT INTO store (prefix, key, value) VALUES ('p', ?, ?)", (key, value))
    database.commit()
    database.close()
    with RowFile(str(path)) as rows:
        found = list(rows)
    assert [isinstance(row, BadRow) for row in found] == [True, True, True, False]


def test_a_database_of_something_else_and_a_file_that_is_not_there_are_told(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "other.db")
    database.execute("CREATE TABLE thing (id)")
    database.commit()
    database.close()
    with RowFile(str(tmp_path / "other.db")) as rows, pytest.raises(Unreadable, match="SqliteStore"):
        list(rows)
    with pytest.raises(Unreadable, match="cannot be read"):
        RowFile(str(tmp_path / "none.jsonl"))
    with pytest.raises(Unreadable, match="cannot be read"):
        RowFile(str(tmp_path))


def test_whose_a_row_is_and_when_it_ends_is_never_passed_over(tmp_path: Path) -> None:
    """As a number too, as a table of texts has it; what cannot be read is told, whatever the defaults are."""
    mapped = Fields(owner=("author.id", "user_id"))
    for said, known, owner in (
        ({"user_id": 41}, KNOWN, "41"),
        ({"user_id": 41.0}, KNOWN, "41"),
        ({"user_id": "", "owner_id": "bob"}, KNOWN, "bob"),
        ({"user_id": None, "author": {"id": "x"}}, KNOWN, None),
        ({"author": {"id": 7}}, mapped, "7"),
        ({"author": None, "user_id": 7}, mapped, "7"),
        ({"author": "x", "user_id": "bob"}, mapped, "bob"),
    ):
        row = parse_row("line 1", {"text": "Tea is at four.", **said}, known)
        assert isinstance(row, ImportRow), said
        assert row.owner == owner
        assert "user_id" not in row.metadata
    ends = {
        "1795000000": datetime(2026, 11, 18, 11, 6, 40, tzinfo=UTC),
        1_751_123_112_345: datetime(2025, 6, 28, 15, 5, 12, 345_000, tzinfo=UTC),
        "2025-01-31 00:00:00 UTC": datetime(2025, 1, 31, tzinfo=UTC),
        "": None,
    }
    for told, end in ends.items():
        row = parse_row("line 1", {"text": "Tea is at four.", "invalid_at": None, "expiration_date": told})
        assert isinstance(row, ImportRow), told
        assert row.validity_horizon == end
    for field, value in (
        *(("user_id", value) for value in (True, 1.5, ["ada"], {"id": "ada"})),
        *(("expiration_date", value) for value in ("31.12.2025", "never", 7, True, ["2026-01-01"], " ")),
        ("citations", {"value": "ADR-3"}),
    ):
        row = parse_row("line 1", {"text": "Tea is at four.", field: value})
        assert isinstance(row, BadRow), (field, value)
        assert row.message.startswith(f"{field} must be ")
    assert parse_row("line 1", {"text": "Tea is at four.", "author": "x"}, mapped) == BadRow(
        "line 1", "author.id is not there: something else stands where it should be"
    )


@given(
    st.dictionaries(
        st.sampled_from(
            [
                "content",
                "text",
                "memory_type",
                "source",
                "user_id",
                "citations",
                "metadata",
                "created_at",
                "expired_at",
            ]
        )
        | st.text(max_size=5),
        st.recursive(
            st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=9) | st.just("user"),
            lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(max_size=3), part, max_size=3),
            max_leaves=5,
        ),
    )
)
def test_whatever_stands_in_a_row_it_is_a_claim_or_is_refused_as_over_http(fields: dict[str, Any]) -> None:
    row = parse_row("line 1", fields)
    if isinstance(row, ImportRow):
        try:
            claim_from_row(row, Defaults("ada"))
        except ValidationError:
            return


@pytest.mark.parametrize(
    ("value", "at"),
    [
        ("2026-03-01T08:00:00Z", datetime(2026, 3, 1, 8, tzinfo=UTC)),
        ("2026-03-01 08:00:00", datetime(2026, 3, 1, 8, tzinfo=UTC)),
        ("2026-03-01", datetime(2026, 3, 1, tzinfo=UTC)),
        ("2026-03-01T10:00:00.123456789+02:00", datetime(2026, 3, 1, 8, 0, 0, 123456, tzinfo=UTC)),
        (1_772_352_000, datetime(2026, 3, 1, 8, tzinfo=UTC)),
        (1_772_352_000_000, datetime(2026, 3, 1, 8, tzinfo=UTC)),
        ("1772352000", datetime(2026, 3, 1, 8, tzinfo=UTC)),
        ("1772352000000", datetime(2026, 3, 1, 8, tzinfo=UTC)),
        ("20260301", datetime(2026, 3, 1, tzinfo=UTC)),
        ("2026-03-01 08:00:00 GMT", datetime(2026, 3, 1, 8, tzinfo=UTC)),
        ("2026-03-01 utc", datetime(2026, 3, 1, tzinfo=UTC)),
        ("9" * 400, None),
        (7, None),
        (float("nan"), None),
        (float("inf"), None),
        (10**40, None),
        (True, None),
        ("yesterday", None),
        (None, None),
        ([], None),
    ],
)
def test_times_of_other_stores(value: Any, at: datetime | None) -> None:
    assert parse_time(value) == at
