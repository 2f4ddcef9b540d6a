"""Many processes at one barrier: one claim is kept, everybody learns its id, and nobody waits without need."""

from __future__ import annotations

import uuid
from collections import Counter
from concurrent.futures import Future
from fractions import Fraction
from pathlib import Path

import psycopg
import pytest

from tests.claims import examined, submission_of
from tests.conftest import Postgresql
from tests.reviews import waiting
from tests.running import racers
from tests.running.invariants import look
from vouchgate.ingest.claims.claim import Source
from vouchgate.storage import engine as engines
from vouchgate.storage.claims.submit import SubmitAnswer, write_submissions
from vouchgate.storage.errors import StoreBusy
from vouchgate.storage.store import Store

PROCESSES = 5
THRESHOLD = Fraction(23, 25)
# Words that say nothing: a claim with one of them more is a duplicate, not a changed value.
SMALL = ("really", "quite", "simply", "basically", "actually", "essentially", "indeed", "furthermore")


def letters(number: int) -> str:
    """A number as a plain word, so that no claim differs from another in a value."""
    return "".join(chr(97 + int(digit)) for digit in str(number))


def sentence(words: int, turn: int) -> list[str]:
    """So many words of no meaning, with nothing in common between turns."""
    return [f"plain{letters(turn)}x{letters(n)}" for n in range(words)]


def with_one_word_more(words: int, turn: int, who: int) -> str:
    """One of two wordings: up to 22 words, two with a word more each would not be alike."""
    text = sentence(words, turn)
    return " ".join([*text[:3], *SMALL[: who % 2], *text[3:]])


def with_a_word_of_ones_own(words: int, turn: int, who: int) -> str:
    """A wording for each process: from 24 words on, two with a word more each are alike."""
    text = sentence(words, turn)
    return " ".join([*text[:3], SMALL[who], *text[3:]])


def with_other_case_and_punctuation(words: int, turn: int, who: int) -> str:
    """The last word differs in its case or in the punctuation around it."""
    *text, last = sentence(words, turn)
    ways = (
        last,
        last.capitalize(),
        last.upper(),
        f"{last}.",
        f"{last},",
        f"{last}!",
        f"({last})",
        f'"{last}"',
    )
    return " ".join([*text, ways[who]])


@pytest.mark.parametrize("source", [Source.USER, Source.AI_SYNTHESIS])
def test_the_same_and_nearly_the_same_claim_is_kept_once(database_url: str, source: Source) -> None:
    shapes = [
        *((with_one_word_more, words) for words in (12, 16, 22)),
        *((with_a_word_of_ones_own, words) for words in (24, 30, 47)),
        *((with_other_case_and_punctuation, words) for words in (26, 40)),
    ]
    contents = [
        [" ".join(sentence(9, 90)), *(make(words, words, who) for make, words in shapes)]
        for who in range(PROCESSES)
    ]
    reports = racers.race(
        database_url, racers.send_each_alone, [(texts, "ann", source) for texts in contents]
    )
    for turn, texts in enumerate(zip(*contents, strict=True)):
        answers = [report[turn] for report in reports]
        assert len({named for _, named in answers}) == 1, (texts[0], answers)
        outcomes = Counter(outcome for outcome, _ in answers)
        if source is Source.USER:
            assert outcomes == {"stored": 1, "blocked": PROCESSES - 1}
        else:
            assert outcomes == {"queued": PROCESSES}
    kept, broken = look(database_url)
    assert broken == []
    assert len(kept.memories) + len(kept.pending) == len(contents[0])
    assert len(kept.decisions) == PROCESSES * len(contents[0])


def test_one_key_is_one_claim_for_any_number_of_processes(database_url: str) -> None:
    keys = [f"key{number}" for number in range(10)]
    reports = racers.race(database_url, racers.send_with_keys, [("ann", keys)] * PROCESSES)
    for answers in zip(*reports, strict=True):
        assert Counter(outcome for outcome, _ in answers) == {"stored": 1, "repeated": PROCESSES - 1}
        (stored,) = (named for outcome, named in answers if outcome == "stored")
        assert all(stored in text for outcome, text in answers if outcome == "repeated")
    kept, broken = look(database_url)
    assert broken == []
    assert len(kept.memories) == len(kept.decisions) == len(keys)


def test_a_queue_takes_no_more_than_its_limit(database_url: str) -> None:
    """Half of the processes share their owners, half meet the others at the total alone."""
    owners = [["ann", "ben"]] * (PROCESSES // 2) + [[f"owner{n}"] for n in range(PROCESSES // 2)]
    work = [(some, f"label{letters(n)}", 4, 13) for n, some in enumerate(owners)]
    reports = racers.race(database_url, racers.fill_queue, work)
    assert Counter(outcome for report in reports for outcome, _ in report)["queued"] == 13
    kept, broken = look(database_url)
    assert broken == []
    assert kept.total == len(kept.pending) == 13
    assert max(owner.pending for owner in kept.owners.values()) <= 4


def test_approvals_race_with_submits_of_the_same_claims(store: Store, database_url: str) -> None:
    """Whichever comes first: the claim is in force once, and waits no more when it has been approved."""
    contents = [" ".join(sentence(9, turn)) for turn in range(12)]
    items = [waiting(store, text).id for text in contents]
    work = [("approve", items), ("approve", items[::-1])]
    work += [("send", contents if n % 2 else contents[::-1]) for n in range(PROCESSES - 2)]
    reports = racers.race(database_url, racers.act, [(what, given, "ann") for what, given in work])
    approvals = Counter(reports[0]) + Counter(reports[1])
    assert {item: approvals["Approved", item] for item in items} == dict.fromkeys(items, 1)
    kept, broken = look(database_url)
    assert broken == []
    assert sorted(memory.content for memory in kept.memories.values()) == sorted(contents)
    memory_of = {memory.content: memory.id for memory in kept.memories.values()}
    item_of = dict(zip(contents, items, strict=True))
    for (_, given), report in zip(work[2:], reports[2:], strict=True):
        for text, answer in zip(given, report, strict=True):
            assert answer in {("queued", item_of[text]), ("blocked", memory_of[text])}


def test_no_process_is_left_waiting(database_url: str) -> None:
    """Under load from all sides every claim of every process is stored, none is told that the database is busy."""
    work = [(f"desk{letters(n)}", f"owner{n}", 0.3) for n in range(6)]
    reports = racers.race(database_url, racers.send_again_and_again, work)
    assert {outcome for report in reports for outcome, _ in report} == {"stored"}
    assert all(reports)
    assert look(database_url)[1] == []


def test_waiting_for_the_write_lock_is_bounded(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/held.db?timeout=0.3"
    stores = [Store.open(url, threshold=THRESHOLD) for _ in range(2)]
    holder = engines.open_engine(url)
    with engines.writing(holder):
        refused = [send(store, "ann", "The pier is closed.") for store in stores]
        for answer in refused:
            assert isinstance(answer.exception(120), StoreBusy)
    assert send(stores[0], "ann", "The pier is closed.").result(120)
    for store in stores:
        store.close()
    holder.dispose()


def send(store: Store, owner_id: str, text: str, source: Source = Source.USER) -> Future[SubmitAnswer]:
    """Hands a claim to the store's writer."""
    return store.writer.submit(submission_of(examined(text, owner_id=owner_id, source=source)))


@pytest.fixture
def postgresql_url(request: pytest.FixtureRequest, postgresql: Postgresql) -> str:
    """A new database on PostgreSQL."""
    name = f"owners_{uuid.uuid4().hex}"
    postgresql.run(f"CREATE DATABASE {name} TEMPLATE migrated")
    request.addfinalizer(lambda: postgresql.run(f"DROP DATABASE {name} WITH (FORCE)"))
    return postgresql.url(name)


@pytest.mark.parametrize("source", [Source.USER, Source.AI_SYNTHESIS])
def test_a_lock_on_one_owner_delays_no_other(postgresql_url: str, source: Source) -> None:
    """Somebody holds ann's row. A process with a claim of hers waits; one with claims of others does not."""
    anns, others = (Store.open(postgresql_url, threshold=THRESHOLD) for _ in range(2))
    assert send(anns, "ann", "The pier is open.").result(120)
    with psycopg.connect(postgresql_url) as holder:
        holder.execute("SELECT * FROM owner WHERE owner_id = 'ann' FOR UPDATE")
        waits = send(anns, "ann", "The pier is long.", source)
        for number in range(20):  # ben is known from the second claim on, and new at the first
            assert send(others, "ben", f"Ben has boat {letters(number)}.", source).result(120)
        assert not waits.done()
        holder.rollback()
    assert waits.result(120)
    anns.close()
    others.close()


def test_a_transaction_about_one_owner_delays_no_other(postgresql_url: str) -> None:
    """The whole transaction of a claim of ann's, up to its commit, while ben's claims are stored."""
    others = Store.open(postgresql_url, threshold=THRESHOLD)
    engine = engines.open_engine(postgresql_url)
    with engines.writing(engine) as connection:
        write_submissions(connection, [submission_of(examined("The pier is open.", owner_id="ann"))])
        for number in range(20):
            assert send(others, "ben", f"Ben has boat {letters(number)}.").result(120)
        assert send(others, "cem", "Cem has no boat at all.").result(120)
    others.close()
    engine.dispose()
    kept, broken = look(postgresql_url)
    assert broken == []
    assert len(kept.memories) == 22
