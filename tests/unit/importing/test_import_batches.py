"""The rows of a file become claims in order, each with its key, and each thing that is cited is asked once."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy

from tests.acceptance.cli_program import lines
from tests.conftest import THRESHOLD
from vouchgate.cli.check import LOCAL
from vouchgate.gate.examiner import Examiner
from vouchgate.importing.batches import BATCH, Batch, Batches, Keys, claim_of
from vouchgate.importing.feed import ReadOnceSources
from vouchgate.importing.formats import Format, RowFile
from vouchgate.importing.rows import Defaults, ImportRow
from vouchgate.ingest.citations import parse_citation
from vouchgate.ingest.claims.citation import Citation
from vouchgate.ingest.claims.claim import Claim
from vouchgate.ingest.claims.people import Principal, Role
from vouchgate.ingest.claims.source import Found, SourceReading, Standing, Unreachable
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.storage.store import Store

POLICY = load_policy()


class Counting:
    """Sources that answer after a turn of the loop, and note what they were asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.open = asyncio.Event()

    async def read(self, citation: Citation, *, fresh: bool = False) -> SourceReading:
        self.asked.append(citation.key)
        await self.open.wait()
        if "99" in citation.key:
            return Unreachable(citation=citation, code="timeout", detail="Nobody answered.")
        return Found(citation=citation, source_id="ADR-1", standing=Standing.IN_FORCE, detail="In force.")


EXAMINER = Examiner(POLICY, Counting())


def read(
    path: Path,
    principal: Principal = LOCAL,
    defaults: Defaults = Defaults("ada"),  # noqa: B008  (frozen)
    **more: Any,
) -> list[Batch]:
    """All that is made of a file."""

    async def take(batches: Batches) -> list[Batch]:
        return [batch async for batch in batches]

    with RowFile(str(path)) as rows:
        return asyncio.run(take(Batches(rows, EXAMINER, principal, defaults, **more)))


def test_rows_are_read_in_order_a_batch_at_a_time(tmp_path: Path) -> None:
    texts = [f"The tap in room {number} drips, I think." for number in range(BATCH + 9)]
    texts[3:5] = ["Tea is at four.", "We use a queue, see ADR-3."]
    path = tmp_path / "f.jsonl"
    path.write_text(lines([{"text": text, "id": number} for number, text in enumerate(texts)]))
    batches = read(path)
    assert [batch.rows for batch in batches] == [BATCH, 9]
    assert batches[-1].position == path.stat().st_size
    found = [row for batch in batches for row in batch.ready]
    assert [row.claim.content for row in found] == texts
    for number in (0, 3, BATCH + 8):
        row = ImportRow(f"line {number + 1}", texts[number], metadata={"id": number})
        claim = claim_of(EXAMINER, LOCAL, row, Defaults("ada"))
        assert (found[number].claim, found[number].place) == (claim, row.place)
    assert [row.place for row in read(path, limit=2)[0].ready] == ["line 1", "line 2"]
    path.write_text(lines([{"text": text} for text in texts[:BATCH]]))
    assert [batch.rows for batch in read(path)] == [BATCH]
    path.write_text("")
    assert read(path) == []


def test_what_goes_wrong_is_told_and_ends_the_reading(tmp_path: Path, migrated_file: Path) -> None:
    path = tmp_path / "f.jsonl"
    path.write_text('{"text": "one"}\nno JSON\n{"text": "I see it"}')
    several = Principal(id="a", name="a", role=Role.AGENT, owners=frozenset({"ada", "bob"}))
    (batch,) = read(path, several, Defaults())
    assert batch.error is not None and "give --owner" in batch.error and "line 1" in batch.error
    (batch,) = read(path)
    assert ([row.place for row in batch.ready], [row.place for row in batch.bad]) == (
        ["line 1", "line 3"],
        ["line 2"],
    )
    path.write_text('[{"memory": "one"}, {"mem')
    (batch,) = read(path)
    assert len(batch.ready) == 1
    assert batch.error is not None and "cannot be read to its end" in batch.error
    path.write_text('{"text": "one"}')
    shutil.copyfile(migrated_file, tmp_path / "gate.db")
    store = Store.open(f"sqlite:///{tmp_path / 'gate.db'}", threshold=THRESHOLD)
    assert [row.place for row in read(path, store=store)[0].ready] == ["line 1"]
    store.writer.run((), lambda c: c.execute(sqlalchemy.text("DROP TABLE idempotency"))).result()
    (batch,) = read(path, store=store)
    store.close()
    assert (batch.ready, batch.bad) == ([], [])
    assert batch.error is not None and "the database cannot be read" in batch.error


def keys(*rows: tuple[str, str], form: Format = Format.JSONL) -> list[str]:
    made = Keys(form)
    found = []
    for text, owner in rows:
        claim = claim_of(EXAMINER, LOCAL, ImportRow("line 1", text, owner=owner), Defaults())
        assert isinstance(claim, Claim)
        found.append(made.of(claim).key)
    return found


def test_keys_tell_equal_rows_apart_and_stay_when_a_file_grows() -> None:
    first = keys(("a", "ada"), ("b", "ada"), ("a", "ada"), ("a", "bob"))
    assert len(set(first)) == 4
    grown = keys(("new", "ada"), ("b", "ada"), ("a", "ada"), ("a", "bob"), ("a", "ada"), ("a", "ada"))
    assert set(first) < set(grown)
    assert len(set(grown)) == 6
    assert keys(("a", "ada"), form=Format.MEM0) != keys(("a", "ada"))
    assert all(len(key) < 100 for key in grown)


def test_context_is_kept_with_the_claim_and_changes_no_key() -> None:
    plain = ImportRow("line 1", "Ada (person): likes tea", owner="ada")
    claims = [claim_of(EXAMINER, LOCAL, replace(plain, context=each), Defaults()) for each in (0, 14)]
    assert all(isinstance(claim, Claim) for claim in claims)
    without, given = (claim for claim in claims if isinstance(claim, Claim))
    assert Keys(Format.GRAPH).of(given) == Keys(Format.GRAPH).of(without)
    assert "context" not in without.model_dump(mode="json")
    assert Claim.model_validate_json(given.model_dump_json()) == given
    assert given.stated == " " * 14 + "likes tea"
    assert (given.content, without.stated) == (plain.content, plain.content)


def test_a_key_is_no_digest_of_a_credential() -> None:
    tokens = ["ghp_" + character * 20 + "bC1dE2fG3hJ4kL5m" for character in "xy"]
    one, other = (keys((f"The deploy token is {token}.", "ada"))[0] for token in tokens)
    assert one == other


def test_each_thing_is_asked_once_whatever_came_of_it() -> None:
    async def run() -> tuple[list[str], list[SourceReading]]:
        sources = Counting()
        once = ReadOnceSources(sources)
        citations = [parse_citation(text) for text in ("ADR-1", "adr 1", "ADR-99", "ADR-99")]
        first = asyncio.create_task(once.read(citations[0]))
        late = asyncio.create_task(once.read(citations[2]))
        await asyncio.sleep(0)
        late.cancel()  # by the deadline of its claim: the reading goes on for the others
        sources.open.set()
        with pytest.raises(asyncio.CancelledError):
            await late
        readings = [await first, *(await asyncio.gather(*map(once.read, citations)))]
        await once.stop_reading()
        return sources.asked, readings

    asked, readings = asyncio.run(run())
    assert len(asked) == 2
    assert [reading.kind for reading in readings] == ["found", "found", "found", "unreachable", "unreachable"]
    assert readings[2].citation.value == "adr 1"


def test_what_is_still_being_read_at_the_end_is_ended() -> None:
    async def run() -> None:
        sources = Counting()
        once = ReadOnceSources(sources)
        waiting = asyncio.create_task(once.read(parse_citation("ADR-1")))
        await asyncio.sleep(0)
        await once.stop_reading()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(run())
