"""Exactness: the store decides as brute force over all earlier claims would, however claims are grouped."""

from __future__ import annotations

import random
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.claims import NOW, examined, policy, submission_of
from vouchgate.ingest.checks.dedup import judge
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.likeness import DedupUnavailable, ItemKind, Neighbour, Neighbours
from vouchgate.ingest.dedup.compare import Allowance, jaccard
from vouchgate.ingest.dedup.signature import signature_keys
from vouchgate.ingest.language.words import tokens
from vouchgate.storage.claims.submit import Decided, WriterAnswer, write_submissions
from vouchgate.storage.dedup import index
from vouchgate.storage.engine import writing
from vouchgate.storage.store import Store

# Small words among them, whose coming and going changes nothing, so that some near claims are the same claim.
SMALL = ["the", "a", "an", "that", "this"]
WORDS = SMALL + [f"{one}{two}{three}ly" for one in "bdfgklmn" for two in "aeiou" for three in "prst"]
SIZES = [1, 2, 3, 10, 11, 12, 13, 21, 22, 23, 24, 25, 26, 45, 46, 47, 48, 49, 50]
THRESHOLDS = [0.92, 0.8, 0.95, 1.0]


@dataclass
class BruteForce:
    """Compares with everything: what the index must be equal to."""

    threshold: Fraction
    items: list[Neighbour] = field(default_factory=list)

    def settle(self, content: str, answer: WriterAnswer, *, trusted: bool) -> None:
        """Checks one answer against all that came before it, then remembers what it added."""
        assert isinstance(answer, Decided)
        result = answer.answer
        own = tokens(content)
        near = [item for item in self.items if jaccard(own, tokens(item.content)) >= self.threshold]
        true = Neighbours(items=tuple(sorted(near, key=lambda item: item.id)))
        assert result.evidence.dedup == true
        finding, nearest = judge(content, true, self.threshold, policy().values)
        assert [one for one in result.findings if one.check == finding.check] == [finding]
        rules = {"unique": "trusted_source" if trusted else "ungrounded"}
        assert result.rule == rules.get(finding.code, finding.code)
        if finding.code == "duplicate":
            assert nearest is not None
            assert result.conflicting_memory_id == nearest.neighbour.id
        elif result.memory_id is not None:
            self.items.append(Neighbour(kind=ItemKind.MEMORY, id=result.memory_id, content=content))
        elif finding.code == "already_pending":
            assert nearest is not None
            assert result.queue_id == nearest.neighbour.id
        else:
            self.items.append(Neighbour(kind=ItemKind.PENDING, id=str(result.queue_id), content=content))


@st.composite
def near_claims(draw: st.DrawFn) -> list[tuple[str, bool]]:
    """Claims that differ from one another in a few words, at sizes where the number of allowed differences
    changes. The flag says whether a trusted source says it."""
    chance = draw(st.randoms(use_true_random=False))
    size = draw(st.sampled_from(SIZES))
    base = chance.sample(WORDS, size)
    claims = []
    for _ in range(draw(st.integers(2, 10))):
        words = list(base)
        for _ in range(draw(st.integers(0, 3))):
            act = draw(st.sampled_from(["drop", "add", "swap"]))
            if act != "add" and len(words) > 1:
                words.pop(chance.randrange(len(words)))
            if act != "drop":
                words.append(chance.choice(SMALL if chance.random() < 0.5 else WORDS))
        chance.shuffle(words)
        claims.append((" ".join(words), draw(st.booleans())))
    return claims


# What a threshold changes is which keys are looked up and written, by the same statements: on PostgreSQL, the one of
# the most keys.
@pytest.fixture(
    scope="module",
    params=[*(("sqlite", each) for each in THRESHOLDS), ("postgresql", 0.8)],
    ids=lambda given: f"{given[0]}-{given[1]}",
)
def exact_store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Store, float]]:
    """The store with an index for one threshold, for all examples; every example has an owner of its own."""
    kind, threshold = request.param
    if kind == "sqlite":
        file = tmp_path_factory.mktemp("exact") / "vouchgate.db"
        url = f"sqlite:///{shutil.copyfile(request.getfixturevalue('migrated_file'), file)}"
    else:
        server = request.getfixturevalue("postgresql")
        name = f"exact_{uuid.uuid4().hex}"
        server.run(f"CREATE DATABASE {name} TEMPLATE migrated")
        url = str(server.url(name))
    store = Store.open(url, threshold=policy(threshold=threshold).threshold)
    yield store, threshold
    store.close()


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(claims=near_claims(), groups=st.lists(st.integers(1, 5), min_size=10, max_size=10))
def test_every_decision_is_the_one_of_brute_force(
    exact_store: tuple[Store, float], claims: list[tuple[str, bool]], groups: list[int]
) -> None:
    store, threshold = exact_store
    owner_id = f"owner-{uuid.uuid4()}"  # its own in every example, the repeated ones too
    under = policy(threshold=threshold, per_owner=1000, total=10**9)
    truth = BruteForce(under.threshold)
    while claims:
        group, claims = claims[: groups[0]], claims[groups[0] :]
        groups = groups[1:]
        sent = [
            submission_of(
                examined(
                    content,
                    owner_id=owner_id,
                    source=Source.USER if trusted else Source.AI_SYNTHESIS,
                    under=under,
                )
            )
            for content, trusted in group
        ]
        with writing(store._engine) as connection:
            answers = write_submissions(connection, sent, allow=lambda: Allowance(10**6, 600))
        for (content, trusted), answer in zip(group, answers, strict=True):
            truth.settle(content, answer, trusted=trusted)


@pytest.mark.on("sqlite")
@pytest.mark.parametrize("size", [357, 1200, 4096])
def test_long_claims_at_the_border(store: Store, size: int) -> None:
    chance = random.Random(size)  # noqa: S311  (a fixed sequence, not a secret)
    words = [chr(0x4E00 + number) for number in range(size * 2)]
    base = words[:size]
    allowed = size // 24  # the most words a that can be replaced: (n - a) / (n + a) >= 23 / 25
    store.writer.submit(submission_of(examined(" ".join(base)))).result(120)
    for replaced in (1, allowed - 1, allowed, allowed + 1):
        for _ in range(3):
            mixed = chance.sample(base, size - replaced) + words[size : size + replaced]
            facts = _facts(store, " ".join(mixed))
            assert isinstance(facts, Neighbours)
            reaches = Fraction(size - replaced, size + replaced) >= Fraction(23, 25)
            assert len(facts.items) == int(reaches)
    assert Fraction(size - allowed, size + allowed) >= Fraction(23, 25)


def _facts(store: Store, content: str, threshold: Fraction = Fraction(23, 25)) -> object:
    keys = signature_keys(tokens(content), "fact", threshold)
    with store.read() as connection:
        return index.find_neighbours(connection, "ann", keys, NOW)


def _reached(store: Store, content: str, now: datetime = NOW, owner_id: str = "ann") -> list[str]:
    keys = signature_keys(tokens(content), "fact", Fraction(23, 25))
    with store.read() as connection:
        facts = index.find_neighbours(connection, owner_id, keys, now)
    assert isinstance(facts, Neighbours)
    return [item.id for item in facts.items]


def test_what_leaves_the_index_is_no_neighbour(store: Store) -> None:
    answer = store.writer.submit(submission_of(examined("The gate is closed."))).result(120)
    assert isinstance(answer, Decided)
    memory_id = str(answer.answer.memory_id)
    assert _reached(store, "The gate is closed.") == [memory_id]
    for owner_id, left in (("bob", [memory_id]), ("ann", [])):
        store.writer.run(
            [owner_id],
            lambda c, owner_id=owner_id: index.remove(c, owner_id, ItemKind.MEMORY, memory_id),  # type: ignore[misc]
        ).result(120)
        assert _reached(store, "The gate is closed.") == left


def test_neighbours_are_of_one_owner_in_force_and_in_order(store: Store) -> None:
    long = (
        "gate keeper looks over every memory and each claim that some agent sends along today before it is"
        " kept by anyone"
    )
    expected = {}
    for owner_id, hours in (("ann", 1), ("bob", 5), ("ann", 5), ("ann", None)):
        horizon = None if hours is None else NOW + timedelta(hours=hours)
        answer = store.writer.submit(
            submission_of(examined(f"{long} gone {hours}", owner_id=owner_id, validity_horizon=horizon))
        ).result(120)
        assert isinstance(answer, Decided)
        expected[owner_id, hours] = str(answer.answer.memory_id or answer.answer.queue_id)
    asked = f"{long} gone"
    assert _reached(store, asked) == sorted(i for (owner, _), i in expected.items() if owner == "ann")
    later = NOW + timedelta(hours=1)
    assert _reached(store, asked, later) == sorted([expected["ann", 5], expected["ann", None]])
    assert _reached(store, asked, NOW, "bob") == [expected["bob", 5]]


def test_claims_of_several_owners_are_not_held_against_those_of_others(store: Store) -> None:
    def together(*owners: str) -> list[WriterAnswer]:
        sent = [submission_of(examined("The gate is closed.", owner_id=owner_id)) for owner_id in owners]
        with writing(store._engine) as connection:
            return write_submissions(connection, sent)

    for group in (["cara"], ["ann", "ben"]):  # what is looked up for these two leads to hers too
        for answer in together(*group):
            assert isinstance(answer, Decided)
            assert (answer.answer.rule, answer.answer.evidence.dedup) == ("trusted_source", Neighbours())
    for answer in together("ann", "dan"):
        assert isinstance(answer, Decided)
        assert answer.answer.rule == (
            "duplicate" if answer.answer.evidence.claim.owner_id == "ann" else "trusted_source"
        )


@pytest.mark.on("sqlite")
def test_an_index_for_another_threshold_gives_no_empty_answer(store: Store) -> None:
    facts = _facts(store, "The gate is closed.", Fraction(4, 5))
    assert isinstance(facts, DedupUnavailable)
    assert "built for the threshold 0.92, the policy asks for 0.8" in facts.detail
