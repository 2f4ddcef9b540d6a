"""The whole texts of sources are kept beside the decisions that rest on them: once, for a time, for replays."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select, update
from typer.testing import CliRunner

from tests.claims import NOW, policy
from tests.rechecking import ADR, SAYS, Bench, bench
from tests.reviews import queue_of, reviewer
from vouchgate.cli.app import app
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.decision import ValidationResult
from vouchgate.ingest.claims.source import Found, PackedText
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.support.rereading import digests_of, reread
from vouchgate.ingest.support.texts import pack, unpack
from vouchgate.review.ending.expiry import expire
from vouchgate.review.pages.spot_checks import statement_views
from vouchgate.storage.claims import decisions, source_texts
from vouchgate.storage.store import Store

CLAIM = "The gateway listens on port 8080 (src/gateway.txt)."
MORE = "The gateway logs to standard output (src/gateway.txt)."
TEXT = f"{SAYS}\n\nThe gateway logs to standard output. " + "It has plugins for many things. " * 200
DAY = timedelta(days=1)


def keeping(days: int) -> Policy:
    """A policy that keeps texts for so long, and draws everything."""
    changed = {"source_texts": {"days": days}, "spot_checks": {"rate": 1.0}}
    return Policy.model_validate(policy().model_dump() | changed)


@pytest.fixture
def here(store: Store, tmp_path: Path) -> Iterator[Bench]:
    """A repository with a file that says more than any evidence keeps of it."""
    with bench(store, tmp_path, keeping(30)) as made:
        made.repository.commit("Say it in a file", {"src/gateway.txt": TEXT})
        made.store.save_policy(made.policy, NOW)
        yield made


def rows(store: Store) -> list[Any]:
    """Everything that is kept."""
    with store.read() as connection:
        return list(connection.execute(select(source_texts.TABLE)))


def loaded(store: Store, answer: ValidationResult) -> dict[str, str]:
    """What is kept of the sources of a decision."""
    with store.read() as connection:
        return source_texts.load(connection, answer.evidence.claim.owner_id, digests_of(answer.evidence))


def kept(store: Store, answer: ValidationResult) -> ValidationResult:
    """The decision as it was written."""
    with store.read() as connection:
        text = decisions.get(connection, str(answer.decision_id), owners=None)
    assert text is not None
    return ValidationResult.model_validate_json(text)


@given(st.text(alphabet=st.characters(), max_size=300))
def test_any_text_comes_back(text: str) -> None:
    assert unpack(pack(text)) == text


@pytest.mark.parametrize(
    "body", [b"", b"no such thing", pack("another text").body, pack("x" * 5_000_000).body]
)
def test_what_is_not_the_text_is_never_taken_for_it(body: bytes) -> None:
    with pytest.raises(ValueError, match="kept source text"):
        unpack(PackedText(digest=pack("a text").digest, body=body))


def test_a_text_is_kept_once_for_an_owner_and_in_no_evidence(here: Bench) -> None:
    first = here.send(CLAIM)
    second = here.send(MORE)
    assert first.outcome == second.outcome == "stored", (first.reason, second.reason)
    (row,) = rows(here.store)
    assert unpack(PackedText(digest=row.digest, body=row.body)).split() == TEXT.split()
    assert len(row.body) < len(TEXT) / 3
    stored = kept(here.store, first)
    assert stored == first
    assert "plugins" * 5 not in stored.model_dump_json()
    assert len(stored.model_dump_json()) < len(TEXT)
    here.send(CLAIM, owner_id="bob")
    assert {row.owner_id for row in rows(here.store)} == {"ann", "bob"}


@pytest.mark.on("sqlite")
def test_nothing_is_kept_for_what_is_blocked_or_where_the_policy_keeps_none(
    here: Bench, store: Store, tmp_path: Path
) -> None:
    assert here.send(f"I guess {CLAIM}").outcome == "blocked"
    assert rows(store) == []
    assert here.send("The gateway never logs to standard output (src/gateway.txt).").outcome == "queued"
    assert len(rows(store)) == 1
    with bench(store, tmp_path / "none", keeping(0)) as none:
        none.repository.commit("Say it", {"src/gateway.txt": TEXT + "Or so."})
        assert none.send("The gateway has plugins for many things (src/gateway.txt).").memory_id is not None
    assert len(rows(store)) == 1


def test_what_is_promoted_or_edited_keeps_its_texts(here: Bench) -> None:
    here.hide()
    sent = here.send(CLAIM)
    assert sent.rule == "citation_unknown", sent.reason
    assert rows(here.store) == []
    here.show()
    assert here.work(here.schedule()[0].due_at).promoted == 1
    assert len(rows(here.store)) == 1
    here.repository.commit("Say more", {"src/gateway.txt": TEXT + "It is fast."})
    waits = here.send("The moon is made of green cheese.")
    item = here.item(waits.queue_id)
    edited = asyncio.run(here.examiner.examine(here.examiner.claim_of_edit(item, MORE, ())))
    queue = queue_of(here.store)
    queue._policy = here.policy
    done = queue.approve(reviewer(), item.id, version=item.version, edited=edited, now=NOW)
    assert type(done).__name__ == "Approved", done
    assert len(rows(here.store)) == 2


def test_a_text_goes_when_its_time_is_over_and_stays_while_decisions_rest_on_it(here: Bench) -> None:
    here.send(CLAIM)
    queue = queue_of(here.store)
    assert expire(queue, NOW + 30 * DAY).texts == 0
    with_later = {"kept_until": NOW + DAY}
    here.store.writer.run((), lambda c: c.execute(update(source_texts.TABLE).values(**with_later))).result()
    here.send(MORE)  # in the present, which is long after
    assert expire(queue, NOW + 29 * DAY).texts == 0
    assert expire(queue, NOW + 3650 * DAY).texts == 1
    assert rows(here.store) == []


@pytest.mark.on("sqlite")
def test_a_replay_holds_statements_against_the_kept_text(here: Bench, database_url: str) -> None:
    sent = here.send(CLAIM)
    texts = loaded(here.store, sent)
    assert reread(sent.evidence, texts).differences == ()
    changed = {digest: text.replace("8080", "9090") for digest, text in texts.items()}
    (difference,) = reread(sent.evidence, changed).differences
    assert "was 0-" in difference
    assert "states, is now" in difference
    assert reread(sent.evidence, {}).gone == ("src/gateway.txt",)
    command = ["replay", str(sent.decision_id), "--database-url", database_url]
    done = CliRunner().invoke(app, command)
    assert (done.exit_code, done.stdout) == (0, "1 decisions: 1 the same when made again, 0 not.\n")
    assert expire(queue_of(here.store), NOW + 3650 * DAY).texts == 1
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0
    assert "source text gone: src/gateway.txt" in done.stdout
    assert "1 decisions: 1 the same" in done.stdout


def test_a_record_is_held_again_with_what_changed_it(here: Bench) -> None:
    later = "# ADR-0002: Another port\n\nStatus: Accepted\n\nThis amends ADR-0001: the port is 9090.\n"
    here.repository.commit("Another", {"docs/adrs/0002-other-port.md": later})
    sent = here.send()
    (found,) = sent.evidence.sources
    assert isinstance(found, Found)
    assert found.later_digest
    texts = loaded(here.store, sent)
    assert set(texts) == {found.text_digest, found.later_digest}
    assert texts[found.text_digest].startswith(ADR[:10])
    assert reread(sent.evidence, texts) == reread(kept(here.store, sent).evidence, texts)
    assert reread(sent.evidence, texts).differences == ()
    without = {found.text_digest: texts[found.text_digest]}
    assert reread(sent.evidence, without).gone == ("ADR-0001",)


@pytest.mark.on("sqlite")
def test_the_page_shows_the_place_in_the_text(here: Bench) -> None:
    sent = here.send(MORE, source=Source.AI_SYNTHESIS)
    (view,) = statement_views(sent, loaded(here.store, sent))
    (marked,) = [piece.text for piece in view.place if piece.marks]
    assert "logs to standard output" in marked
    assert (view.does, "".join(piece.text for piece in view.source)) == ("stated by", "src/gateway.txt")
    (without,) = statement_views(sent, {})
    assert without.place == ()
