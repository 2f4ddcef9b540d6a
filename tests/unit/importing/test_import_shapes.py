"""Rows of other stores, whatever shape they have: known ones, those that a mapping tells of, and hostile ones."""

from __future__ import annotations

import io
import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from vouchgate.importing.bulk.parts import divide, read_part
from vouchgate.importing.formats import Format, RowFile
from vouchgate.importing.json_items import BadItem, items
from vouchgate.importing.mapping import UnknownShape, read_mapping
from vouchgate.importing.rows import KNOWN, BadRow, Defaults, Fields, ImportRow, Unreadable, claim_from_row

ENTITY = {"name": "Ada", "entityType": "person"}
COPILOT = {
    "subject": "package manager",
    "fact": "Use pnpm.",
    "citations": "package.json:5 - engines, docs/dev.md:10 and ADR-3",
    "reason": "npm breaks the lock file.",
}
EDGE = {"uuid": "u1", "name": "LIKES", "fact": "Ada likes tea.", "source_node_uuid": "n1", "valid_at": None}
# As letta/schemas/agent_file.py of Letta makes it; the older form has the blocks of its one agent at the top.
BLOCK = {"label": "human", "value": "\nLikes sailing, see ADR-3.\n\n- Lives in Porto\n", "limit": 20000}
AGENT = {
    "name": "Sam",
    "id": "agent-0",
    "messages": [{"role": "user", "content": [{"text": "Hi", "data": [1]}]}],
}


def read(path: Path, content: str | bytes, fields: Fields = KNOWN) -> list[ImportRow | BadRow]:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with RowFile(str(path), fields=fields) as rows:
        rows.look_ahead()
        return list(rows)


def told(rows: list[ImportRow | BadRow]) -> list[tuple[str, str]]:
    return [(row.place, row.content if isinstance(row, ImportRow) else f"! {row.message}") for row in rows]


def test_the_shapes_of_other_stores(tmp_path: Path) -> None:
    observed = [
        {"text": "likes tea", "timestamp": "2026-03-01T08:00:00Z", "citations": ["ADR-3"]},
        "is left-handed",
        {"weight": 3},
        7,
        "",
    ]
    no_text = "! has no text: none of content, text, memory, fact, observation is a string"
    graph = [
        ("observation 1 (line 1)", "Ada (person): likes tea"),
        ("observation 2 (line 1)", "Ada (person): is left-handed"),
        ("observation 3 (line 1)", no_text),
        ("observation 4 (line 1)", "! is neither a text nor an object"),
        ("observation 5 (line 1)", ""),  # which is refused, as an empty text of any other row is
    ]
    entity = {**ENTITY, "observations": observed}
    read_graph = {
        "entities": [entity],
        "relations": [{"from": "Ada", "to": "Archive", "relationType": "runs"}],
    }
    in_item = [(place.replace("line", "item"), text) for place, text in graph]
    human = [
        ("block human:2", "Likes sailing, see ADR-3."),
        ("block human:4", "Lives in Porto"),
    ]
    empty = {**BLOCK, "label": "persona", "value": " "}
    cases: list[tuple[str, Any, list[tuple[str, str]]]] = [
        ("memory.jsonl", {"type": "entity", **entity}, graph),
        ("graph.json", read_graph, [*in_item, ("relation 1 (item 2)", "Ada runs Archive")]),
        ("repository.jsonl", COPILOT, [("line 1", "package manager: Use pnpm.")]),
        ("edges.json", [EDGE], [("item 1", "Ada likes tea.")]),
        ("search.json", {"edges": [EDGE], "nodes": [{"name": "Ada"}]}, [("item 1", "Ada likes tea.")]),
        ("nodes.json", {"nodes": [{"name": "Ada"}], "edges": [EDGE]}, [("item 1", "Ada likes tea.")]),
        ("sam.af", {"agents": [AGENT], "groups": [], "blocks": [BLOCK, empty], "files": []}, human),
        ("old.af", {"agent_type": "memgpt", "core_memory": [BLOCK], "messages": ["x"]}, human),
        (
            "mem0.json",
            {"results": [{"memory": "Likes tea"}], "relations": [{"source": "a"}]},
            [("item 1", "Likes tea")],
        ),
    ]
    for name, value, expected in cases:
        for indent in (None, 2) if name.endswith((".json", ".af")) else (None,):
            assert told(read(tmp_path / name, json.dumps(value, indent=indent))) == expected, (name, indent)


def test_what_is_kept_of_them(tmp_path: Path) -> None:
    """A fact's subject is context; what is named in a text beside it is cited; what its store has ended is over."""
    (row,) = read(tmp_path / "a.jsonl", json.dumps(COPILOT))
    assert isinstance(row, ImportRow)
    assert row.content[: row.context] == "package manager: "
    assert [each["value"] for each in row.citations] == ["docs/dev.md:10", "ADR-3"]
    assert row.metadata == {name: COPILOT[name] for name in ("subject", "citations", "reason")}
    sentence = {
        **COPILOT,
        "subject": "Eve is the admin",
        "citations": ["src/a.py:12 - the retry", "ADR-3", "ADR-4"],
    }
    (row,) = read(tmp_path / "b.jsonl", json.dumps(sentence))
    assert isinstance(row, ImportRow)
    assert (row.content, row.context) == ("Eve is the admin: Use pnpm.", 0)
    assert row.citations == [{"type": "path", "value": "src/a.py:12"}, "ADR-3", "ADR-4"]
    over = {**EDGE, "created_at": "2026-01-01T00:00:00Z", "expired_at": "2026-02-01T00:00:00Z"}
    (row,) = read(tmp_path / "c.json", json.dumps([over]))
    assert isinstance(row, ImportRow)
    claim = claim_from_row(row, Defaults("ada"))
    assert (row.saved_at, claim.validity_horizon) == (
        datetime(2026, 1, 1, tzinfo=UTC),
        datetime(2026, 2, 1, tzinfo=UTC),
    )
    (row,) = read(tmp_path / "d.json", json.dumps({"edges": [EDGE]}))
    assert isinstance(row, ImportRow)
    assert row.validity_horizon is None


CSV = '''text;user_id;created_at;citations
"Tea is; at ""four""";ada;2026-03-01;ADR-3
half;a row
=HYPERLINK("x");ada;;
"two
lines";;;

caf\xe9;;;
"un"closed;;;
nul\0;;;
-5 degrees;;;
"open;;;
'''


def test_csv_is_read_row_by_row_and_a_bad_row_spoils_no_other(tmp_path: Path) -> None:
    rows = read(tmp_path / "a.csv", b"\xef\xbb\xbf" + CSV.encode("latin-1"))
    assert told(rows) == [
        ("line 2", 'Tea is; at "four"'),
        ("line 3", "! has 2 cells, and the first line names 4 columns"),
        ("line 4", "! has a formula of a spreadsheet in place of a text; export the values"),
        ("line 5", "two\nlines"),
        ("line 8", "! is not UTF-8"),
        ("line 9", """! is no row of CSV: ';' expected after '"'"""),
        ("line 10", "nul\0"),  # which the gate refuses
        ("line 11", "-5 degrees"),
        ("line 12", "! is no row of CSV: unexpected end of data"),
    ]
    first = rows[0]
    assert isinstance(first, ImportRow)
    assert (first.owner, first.saved_at) == ("ada", datetime(2026, 3, 1, tzinfo=UTC))
    assert first.citations == [{"type": "adr", "value": "ADR-3"}]
    huge = "text\n" + "x" * 200_000 + "\n" + "y" * (17 << 20) + "\nfine\n"
    assert [place for place, text in told(read(tmp_path / "b.csv", huge)) if text.startswith("!")] == [
        "line 2",
        "line 3",
    ]
    assert told(read(tmp_path / "b.csv", huge))[-1] == ("line 4", "fine")
    assert told(read(tmp_path / "c.tsv", "text\ttag\nTea, at four\tx\n")) == [("line 2", "Tea, at four")]
    assert read(tmp_path / "d.csv", "") == []


def test_an_open_quotation_takes_its_own_row_alone(tmp_path: Path) -> None:
    """Each line is a row or told, and none is read more than some times."""
    lines = [f"Tea of day {number} is at four,x" for number in range(2, 50)]
    lines[8] = lines[8].replace("Tea", '"Tea')
    lines[20] = '"Tea is\nat ""four""",x'
    lines[30] = lines[30].replace(",x", ',"x')
    rows = told(read(tmp_path / "a.csv", "text,tag\n" + "\n".join(lines) + "\n"))
    assert len(rows) == len(lines)
    bad = [(place, text) for place, text in rows if text.startswith("!")]
    assert [place for place, _ in bad] == ["line 10", "line 33"]
    assert ("line 22", 'Tea is\nat "four"') in rows
    assert rows[-1] == ("line 50", "Tea of day 49 is at four")
    # Each of these lines is open at its end, whether it began so or not: all of them could be one row.
    started = time.perf_counter()
    rows = told(read(tmp_path / "b.csv", "text,tag\n" + 'a","\n' * 20_000))
    assert [place for place, _ in rows] == [f"line {number}" for number in range(2, 20_002)]
    assert all(text.startswith("! is no row of CSV") for _, text in rows)
    assert time.perf_counter() - started < 10  # some 0.5 s; each line with all behind it took hours


def test_a_value_of_parquet_that_python_has_not_spoils_its_own_row_at_most(tmp_path: Path) -> None:
    """In columns, in what lies in them, and in the parts of a bulk audit; bytes that are text are that text."""
    nano, far = pyarrow.timestamp("ns"), pyarrow.timestamp("us")
    columns: dict[str, tuple[list[Any], Any]] = {
        "content": ([b"Tea is at four.", b"\xff\xfe", "The hall is caf\u00e9.".encode()], pyarrow.binary()),
        "created_at": ([1_735_689_600_123_456_789, None, 0], nano),
        "seen": ([2**60, 1_735_689_600_123_456, None], far),
        "day": ([1, 2**30, 1], pyarrow.date32()),
        "took": ([2**60 + 1, 1, 1], pyarrow.duration("ns")),
        "log": (
            [[{"at": 1_735_689_600_123_456_789}], [], None],
            pyarrow.list_(pyarrow.struct([("at", nano)])),
        ),
        "key": ([b"\xff", b"k", b""], pyarrow.binary()),
    }
    arrays = {name: pyarrow.array(values, kind) for name, (values, kind) in columns.items()}
    arrays["note"] = pyarrow.array([b"\xff", b"n", b""], pyarrow.binary()).view(pyarrow.string())
    parquet.write_table(pyarrow.table(arrays), tmp_path / "a.parquet")
    rows = read(tmp_path / "a.parquet", (tmp_path / "a.parquet").read_bytes())
    assert told(rows) == [
        ("row 1", "Tea is at four."),
        ("row 2", "! has no text: none of content, text, memory, fact, observation is a string"),
        ("row 3", "The hall is caf\u00e9."),
    ]
    first = rows[0]
    assert isinstance(first, ImportRow)
    assert first.saved_at == datetime(2025, 1, 1, 0, 0, 0, 123_456, tzinfo=UTC)
    assert first.metadata == {
        "created_at": "2025-01-01 00:00:00.123456789",
        "seen": f"<value out of range: {2**60}>",
        "day": "1970-01-02",
        "took": str(2**60 + 1),
        "log": [{"at": "2025-01-01 00:00:00.123456789"}],
        "key": {"hex": "ff"},
        "note": {"hex": "ff"},
    }
    (part,) = divide(str(tmp_path / "a.parquet"), Format.PARQUET)
    assert list(read_part(part)) == rows


def test_a_file_that_cannot_be_one_is_told(tmp_path: Path) -> None:
    wide = pyarrow.table({f"c{number}": ["x"] for number in range(1001)})
    parquet.write_table(wide, tmp_path / "wide.parquet")
    twice = pyarrow.table([["The hall is cold."], ["The hall is warm."]], names=["content", "content"])
    parquet.write_table(twice, tmp_path / "twice.parquet")
    text = '{"text": "Tea is at four."}'
    cases: list[tuple[str, bytes, str]] = [
        ("a.csv", ",".join(f"c{number}" for number in range(10_000)).encode(), "10,000 columns"),
        ("b.csv", b"text,tag,tag\n", "two columns are called tag"),
        ("c.csv", b'"text\n', "first line names no columns"),
        ("d.jsonl", text.encode("utf-16"), "save it as UTF-8"),
        ("e.json", f"[{text}]".encode("utf-16-le"), "save it as UTF-8"),
        ("f.csv", "text\nTea".encode("utf-16-be"), "save it as UTF-8"),
        ("g.parquet", (tmp_path / "wide.parquet").read_bytes(), "more than 1,000 columns"),
        ("f.parquet", (tmp_path / "twice.parquet").read_bytes(), "two columns are called content"),
        ("h.parquet", (tmp_path / "wide.parquet").read_bytes()[:-9], "cannot be read as Parquet"),
        (
            "i.json",
            json.dumps({"v": 1, "notes": [{"text": "x"}]}, indent=1).encode(),
            'its lists are notes .say list = "NAME"',
        ),
    ]
    for name, content, says in cases:
        with pytest.raises(Unreadable, match=says):
            read(tmp_path / name, content)


def test_rows_of_no_known_shape_are_described_and_read_by_a_mapping(tmp_path: Path) -> None:
    """In every format alike, and in the parts of a bulk audit."""
    row = {
        "body": "Tea is at four.",
        "who": {"id": "ada", "k": 1},
        "refs": "see ADR-3",
        "when": "2026-03-01",
        "n": 1,
    }
    row |= {"type": "decision"}
    with pytest.raises(UnknownShape) as unknown:
        read(tmp_path / "a.jsonl", "\n".join([json.dumps(row)] * 3))
    assert "body (text), who.id (text), who.k (number), refs (text)" in str(unknown.value)
    assert "Tea" not in str(unknown.value) + unknown.value.template
    mapping = tmp_path / "map.toml"
    mapping.write_text(unknown.value.template)
    with pytest.raises(Unreadable, match="text must be"):
        read_mapping(mapping)
    said = {"text": "body", "kind": "type", "citations": "refs", "owner": "who.id", "time": "when"}
    filled = unknown.value.template
    for name, value in said.items():
        filled = filled.replace(f'# {name} = ""', f'{name} = ""').replace(
            f'{name} = ""', f"{name} = {json.dumps(value)}"
        )
    mapping.write_text(filled)
    fields = read_mapping(mapping)
    assert fields.source == KNOWN.source
    parquet.write_table(pyarrow.Table.from_pylist([row]), tmp_path / "f.parquet")
    flat = ",".join(["body", "who.id", "refs", "when", "n", "type"])
    expected = (
        "Tea is at four.",
        "ada",
        "decision",
        [{"type": "adr", "value": "ADR-3"}],
        datetime(2026, 3, 1, tzinfo=UTC),
    )
    for name, content in (
        ("b.jsonl", json.dumps(row)),
        ("c.json", json.dumps([row])),
        ("d.csv", f"{flat}\nTea is at four.,ada,see ADR-3,2026-03-01,1,decision\n"),
        ("f.parquet", (tmp_path / "f.parquet").read_bytes()),
    ):
        (found,) = read(tmp_path / name, content, fields)
        assert isinstance(found, ImportRow)
        assert (found.content, found.owner, found.memory_type, found.citations, found.saved_at) == expected, (
            name
        )
        assert found.metadata.get("who") in ({"k": 1}, None)
        assert "body" not in found.metadata
    for form, name in ((Format.JSONL, "b.jsonl"), (Format.PARQUET, "f.parquet")):
        (part,) = divide(str(tmp_path / name), form, fields=fields)
        assert [each.content for each in read_part(part) if isinstance(each, ImportRow)] == [
            "Tea is at four."
        ]
    mapping.write_text('list = "notes"\ntext = ["title", "body"]\n')
    listed = json.dumps({"notes": [row], "data": [{"text": "another list"}]})
    assert told(read(tmp_path / "g.json", listed, read_mapping(mapping))) == [("item 1", "Tea is at four.")]
    for bad in ('txt = "a"', "text = 3", 'text = ""', "text = []", 'list = ["a", "b"]', "= 1", "\xff"):
        mapping.write_bytes(bad.encode("latin-1"))
        with pytest.raises(Unreadable, match="--map"):
            read_mapping(mapping)
    with pytest.raises(Unreadable, match="cannot be read"):
        read_mapping(tmp_path / "none.toml")


def test_rows_are_not_described_when_one_of_the_first_is_a_memory(tmp_path: Path) -> None:
    rows = read(tmp_path / "a.jsonl", '{"id": 1}\n{"text": "Tea is at four."}\n{"id": 2}\n')
    assert [isinstance(row, BadRow) for row in rows] == [True, False, True]


ROWS = [{"id": number, "text": f"row {number}", "tags": [{"id": 7}, {"id": 8}]} for number in range(6)]
BREAKS = [
    ('"row 3"', '"row 3'),  # a quotation mark is missing
    ('"row 3"', 'row 3"'),
    ('"row 3"', "NaN"),
    ('"text": "row 3"', '"text" "row 3"'),
    ('"row 3"', '"row \\x3"'),
    ('"row 3"', "[" * 2_000),
    ('"row 3"', "9" * 5_000),
    ('"row 3"', '"row \udcff"'),  # a byte that is no UTF-8
]


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("indent", [None, 1, 4])
def test_a_broken_item_is_its_own_fault_and_the_reading_goes_on(indent: int | None, wrapped: bool) -> None:
    whole = json.dumps({"results": ROWS, "next": None} if wrapped else ROWS, indent=indent)
    for old, new in BREAKS:
        for before in (0, 4):  # the first and a later one
            broken = whole.replace(old.replace("3", str(before)), new.replace("3", str(before)))
            found = list(items(io.BytesIO(broken.encode("utf-8", "surrogateescape"))))
            good = [row for row in found if isinstance(row, dict) and "text" in row]
            assert good == [row for row in ROWS if row["id"] != before], (new[:9], before)
            assert 1 <= sum(isinstance(row, BadItem) for row in found) <= 2, (new[:9], before)
            assert isinstance(found[before], BadItem)
    lines = "[" + ",\n".join(json.dumps(row) for row in ROWS) + "]"
    found = list(items(io.BytesIO(lines.replace('{"id": 2,', '"id": 2,').encode())))
    assert [row["id"] for row in found if isinstance(row, dict) and "text" in row] == [0, 1, 3, 4, 5]


@given(st.integers(0, 5), st.integers(1, 60), st.text(max_size=3))
def test_whatever_is_put_into_an_item_of_an_indented_list_the_others_are_read(
    at: int, cut: int, put: str
) -> None:
    texts = [json.dumps(row) for row in ROWS]
    texts[at] = texts[at][:cut] + put.replace("\n", " ").replace("\r", " ") + texts[at][cut + 1 :]
    text = "[\n  " + ",\n  ".join(texts) + "\n]"
    found = list(items(io.BytesIO(text.encode("utf-8", "surrogatepass"))))
    good = [row for row in found if isinstance(row, dict) and row in ROWS]
    assert [row for row in good if row["id"] != at] == [row for row in ROWS if row["id"] != at]


class Flowing(io.RawIOBase):
    """A list that is made while it is read, and how much of it was asked for at once."""

    def __init__(self, parts: Any) -> None:
        self._parts, self.largest = iter(parts), 0

    def read(self, size: int = -1) -> bytes:
        self.largest = max(self.largest, size)
        return next(self._parts, b"")


def test_a_large_list_with_broken_items_is_not_held_whole() -> None:
    def parts() -> Any:
        yield b'[{"id": 0, "text": "a"}'
        for number in range(1, 2_000):
            broken = b'nothing"' if number % 2 else b'"' + b"x" * 500 + b'"'
            yield b', {"id": %d, "text": %s}' % (number, broken)
        yield b"]"

    stream: Any = Flowing(parts())
    found = list(items(stream))
    assert sum(isinstance(row, BadItem) for row in found) == 1_000
    assert sum(isinstance(row, dict) for row in found) == 1_000
    assert stream.largest <= 1 << 17

    def endless() -> Any:
        yield b'[{"id": 0, "text": "a"}, {"id": 1, "text": "'
        yield from [b"x" * (1 << 20)] * 40
        yield b'"}, {"id": 2, "text": "b"}]'

    stream = Flowing(endless())
    found = list(items(stream))
    assert [row["id"] if isinstance(row, dict) else "bad" for row in found] == [0, "bad", 2]
    assert stream.largest <= 1 << 25
