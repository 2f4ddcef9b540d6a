"""What source code defines under a name, looked up in real repositories, and what it vouches for."""

from __future__ import annotations

import asyncio
import tomllib
from contextlib import closing
from pathlib import Path

import pytest

from tests.acceptance.whole.test_quayside import claim_of
from tests.repos import TestRepository
from vouchgate.gate.examiner import Examiner
from vouchgate.ingest.check import NOTHING_NEAR
from vouchgate.ingest.citations import given_citation
from vouchgate.ingest.citations.names import Cited, lineage_of
from vouchgate.ingest.claims.citation import Citation
from vouchgate.ingest.claims.decision import Tier
from vouchgate.ingest.claims.source import Found, Missing, SourceReading, Standing, Unreachable
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.pipeline import Examined
from vouchgate.ingest.sources.git.source import GitSource
from vouchgate.review.staleness import SourceChanged, SourcesUnchanged, compare
from vouchgate.review.vouching.owner_rules import facts_of
from vouchgate.sources.reader import Sources

PAIRS = tomllib.loads(Path(__file__).with_name("symbol_pairs.toml").read_text("utf-8"))
POLICY = load_policy().model_copy(update={"deadline_seconds": 60.0})
CLIENT = PAIRS["files"]["src/shop/client.py"]


@pytest.fixture
def shop(tmp_path: Path) -> TestRepository:
    made = TestRepository(tmp_path / "shop")
    made.commit("Start", PAIRS["files"])
    return made


def read(where: TestRepository | GitSource, value: str) -> SourceReading:
    looked_up = where if isinstance(where, GitSource) else GitSource([where.path], timeout_seconds=30)
    return looked_up.read(given_citation("symbol", value))


def found(where: TestRepository | GitSource, value: str) -> Found:
    reading = read(where, value)
    assert isinstance(reading, Found), reading
    return reading


def unreachable(where: TestRepository | GitSource, value: str) -> Unreachable:
    reading = read(where, value)
    assert isinstance(reading, Unreachable), reading
    return reading


class ReadOnce(GitSource):
    """Each citation is read once, wherever claims have it: `Sources` says where."""

    def __init__(self, repository: TestRepository) -> None:
        super().__init__([repository.path], timeout_seconds=60)
        self._readings: dict[str, SourceReading] = {}

    def read(self, citation: Citation) -> SourceReading:
        known = self._readings.get(citation.value)
        if known is None:
            known = self._readings[citation.value] = super().read(citation)
        return known


def examine(repository: TestRepository, *claims: str) -> list[Examined]:
    """What the gate finds of claims that rest on what this repository defines."""

    async def each() -> list[Examined]:
        return [await examiner.examine(claim_of(claim)) for claim in claims]

    with (
        closing(Sources(ReadOnce(repository), {})) as sources,
        closing(Examiner(POLICY, sources)) as examiner,
    ):
        examined = asyncio.run(each())
    return [one.knowing(dedup=NOTHING_NEAR) for one in examined]


def test_what_a_definition_says_is_stored_and_what_it_does_not_say_is_not(shop: TestRepository) -> None:
    answers = examine(shop, *(pair["claim"] for pair in PAIRS["pairs"]))
    half: dict[tuple[bool, bool], list[bool]] = {}
    counted = {True: 0, False: 0}
    for pair, answer in zip(PAIRS["pairs"], answers, strict=True):
        held_back = bool(counted[pair["true"]] % 2)
        counted[pair["true"]] += 1
        half.setdefault((held_back, pair["true"]), []).append(answer.decide().tier is Tier.STORED)
    assert {key: len(stored) for key, stored in half.items()} == dict.fromkeys(half, 17)
    assert sum(half[False, True]) >= 16 and sum(half[False, False]) == 0
    assert sum(half[True, True]) >= 15 and sum(half[True, False]) == 0
    rows = PAIRS["against"]
    stored = [each.decide().tier is Tier.STORED for each in examine(shop, *(row["claim"] for row in rows))]
    assert sum(row["true"] for row, kept in zip(rows, stored, strict=True) if kept) >= 16
    assert [row["claim"] for row, kept in zip(rows, stored, strict=True) if kept and not row["true"]] == []


def test_existence_vouches_for_existence_alone(shop: TestRepository) -> None:
    claims = {
        "See symbol:chunked.": ("pointer", Tier.STORED),
        "There is a function chunked (symbol:chunked).": ("stated", Tier.STORED),
        "There is a class chunked (symbol:chunked).": ("uncovered", Tier.QUEUED),
        "There is a function chunked (symbol:src/shop/batch.py::chunked).": ("stated", Tier.STORED),
        "chunked deletes the database (symbol:chunked).": ("uncovered", Tier.QUEUED),
        "chunked splits items and deletes the database (symbol:chunked).": ("uncovered", Tier.QUEUED),
        "The default size of chunked is 500, and eggs are boiled (symbol:chunked).": (
            "uncovered",
            Tier.QUEUED,
        ),
        "There is a function chunks (symbol:chunks).": ("refuted", Tier.QUEUED),
    }
    for (claim, expected), answer in zip(claims.items(), examine(shop, *claims), strict=True):
        decision = answer.decide()
        assert (decision.rule, decision.tier) == expected, claim


def test_what_is_read_is_the_declaration_and_the_docstring(shop: TestRepository) -> None:
    reading = found(shop, "fetch_order")
    assert (reading.standing, reading.form, reading.official) == (Standing.IN_FORCE, "file", False)
    assert (reading.source_id, reading.name) == ("src/shop/client.py::fetch_order", "fetch_order")
    assert reading.detail == "fetch_order is in shop at main: src/shop/client.py."
    for said in (
        "`fetch_order` is defined in src/shop/client.py.",
        "There is a method `fetch_order` of `Client`",
        "The parameter `order_id` of `fetch_order` is a str.",
        "The default `timeout` of `fetch_order` is 30 (30.0)",
        "`fetch_order` returns a Order.",
        "Return one order.",
    ):
        assert said in reading.text, said
    assert "cache" not in reading.text and "_get" not in reading.text  # what is to be done, and what is done
    assert "`Settings` is decorated with dataclass(frozen=True), it is a" in found(shop, "Settings").text
    assert (
        "`is_open` is decorated with property, it is a property." in found(shop, "client.Client.is_open").text
    )
    assert "`RETRIED_STATUSES` is (502, 503)." in found(shop, "RETRIED_STATUSES").text
    assert 'currency = "EUR"' in found(shop, "formatPrice").text
    assert "Retry calls f until it returns nil" in found(shop, "server/retry.go::Retry").text
    assert found(GitSource([shop.path], official=["src/"]), "chunked").official


def test_several_definitions_of_one_name_are_ambiguous_where_they_differ(shop: TestRepository) -> None:
    other = PAIRS["files"]["src/shop/batch.py"]
    shop.commit("Copy", {"old/batch.py": other})
    assert found(shop, "chunked").standing is Standing.IN_FORCE
    assert "`chunked` is defined in old/batch.py." in found(shop, "chunked").text
    shop.commit("Change the copy", {"old/batch.py": other.replace("size=500", "size=50")})
    ambiguous = found(shop, "chunked")
    assert ambiguous.standing is Standing.AMBIGUOUS
    assert "old/batch.py, src/shop/batch.py" in ambiguous.detail
    for one in ("old.batch.chunked", "old/batch.py::chunked", "old::chunked"):
        assert "is 50," in found(shop, one).text, one
    assert "is 500," in found(shop, "shop.batch.chunked").text
    shop.commit(
        "Overload", {"a.py": "@overload\ndef f(a: int): ...\n@overload\ndef f(a: str): ...\ndef f(a): ...\n"}
    )
    assert found(shop, "f").standing is Standing.IN_FORCE
    shop.commit("Twice", {"b.py": "if a:\n    def g(): ...\nelse:\n    def g(x): ...\n"})
    assert found(shop, "b.g").standing is Standing.AMBIGUOUS


def test_what_is_gone_or_elsewhere_does_not_count(shop: TestRepository) -> None:
    assert isinstance(read(shop, "chunks"), Missing)
    assert isinstance(read(shop, "Worker.chunked"), Missing)
    assert isinstance(read(shop, "src/shop/client.py::chunked"), Missing)
    assert isinstance(read(shop, "items"), Missing)  # a parameter, and no definition
    renamed = PAIRS["files"]["src/shop/batch.py"].replace("chunked", "in_chunks")
    shop.git("checkout", "--quiet", "-b", "agent")
    shop.commit("Rename", {"src/shop/batch.py": renamed})
    main = GitSource([shop.path], refs=["main"])
    assert found(main, "chunked").standing is Standing.IN_FORCE
    new = found(main, "in_chunks")
    assert (new.standing, new.detail) == (Standing.NOT_MERGED, "in_chunks is not merged into shop at main.")
    assert isinstance(read(shop, "chunked"), Missing)
    memory = {"memory-bank/x.py": "def remembered(): ...\n", "CLAUDE.md": "def remembered(): ...\n"}
    shop.commit("Remember", memory)
    assert isinstance(read(shop, "remembered"), Missing)


def test_a_memory_is_looked_at_again_when_the_definition_changes(shop: TestRepository) -> None:
    before = found(shop, "fetch_order").digest
    (known,) = examine(shop, "The default timeout of fetch_order is 30 (symbol:fetch_order).")
    then = known.answer(known.decide(), decision_id=None, memory_id=None, queue_id=None, took_ms=0.0)
    shop.commit(
        "Change another",
        {"src/shop/client.py": CLIENT.replace("batch_size: int = 50", "batch_size: int = 5")},
    )
    assert found(shop, "fetch_order").digest == before
    claim = then.evidence.claim.content
    assert "src/shop/client.py" in facts_of(then, ())["path"]  # owner rules by file are asked
    rests_on = Cited("symbol:fetch_order", found(shop, "fetch_order").source_id)
    assert set(lineage_of([rests_on])) == {"symbol:fetch_order", "path:src/shop/client.py"}
    assert isinstance(compare(then, (), examine(shop, claim)[0], {}), SourcesUnchanged)
    shop.commit(
        "Change it", {"src/shop/client.py": CLIENT.replace("timeout: float = 30.0", "timeout: float = 3.0")}
    )
    assert found(shop, "fetch_order").digest != before
    changed = compare(then, (), examine(shop, claim)[0], {})
    assert isinstance(changed, SourceChanged) and "symbol:fetch_order" in changed.reason
    (shop.path / "src/shop/client.py").unlink()
    shop.commit("Delete it")
    assert isinstance(compare(then, (), examine(shop, claim)[0], {}), SourceChanged)


def test_hostile_files_cost_only_themselves(shop: TestRepository) -> None:
    """Each of them has the name; none is run, and none keeps a good one from being read."""
    ran = shop.path.parent / "ran"
    hostile: dict[str, str | bytes] = {
        "e/binary.py": b"def victim(): ...\x00\xff\xfe",
        "e/large.py": "def victim(): ...\n" + "x = 1\n" * 60_000,
        "e/line.js": "function victim() {}" + ";a()" * 300_000,
        "e/deep.py": "victim = " + "-" * 100_000 + "1",
        "e/nested.py": "victim = " + "(" * 5_000,
        "e/chain.py": "victim = a" + ".b" * 50_000,
        "e/bad.py": "def victim(:\n",
        "e/data.bin": b"\x00victim\x00" * 1000,
        "e/quiet.py": f"open({str(ran)!r}, 'w')\nraise SystemExit(victim)\n",
    }
    shop.commit("Evil", hostile)
    assert unreachable(shop, "victim").code == "not_supported"
    shop.commit("Good", {"good.py": "def victim(a=3): ...\n"})
    assert "The default `a` of `victim` is 3" in found(shop, "victim").text
    slow = {"s/slow.py": "def slow(): ...\nx = f'" + "{a}" * 80_000 + "'\n"}
    shop.commit("Slow", slow)
    assert unreachable(GitSource([shop.path], timeout_seconds=1.5), "slow").code in (
        "timeout",
        "not_supported",
    )
    assert not ran.exists()


def test_what_the_repository_says_of_itself_hides_nothing_and_runs_nothing(shop: TestRepository) -> None:
    ran = shop.path.parent / "ran"
    inner = TestRepository(shop.path / "vendor")
    inner.commit("Inner", {"inner.py": "def inner(): ...\n"})
    (shop.path / "link.py").symlink_to("src/shop/batch.py")
    shop.commit(
        "Attributes", {".gitattributes": "*.py binary diff=evil filter=evil\n", "ünï/größe.py": "größe = 3\n"}
    )
    for name, value in {
        "submodule.recurse": "true",
        "grep.patternType": "perl",
        "grep.fullName": "false",
        "grep.column": "true",
        "core.pager": f"touch {ran}",
        "diff.evil.textconv": f"touch {ran};",
        "core.fsmonitor": f"touch {ran}",
    }.items():
        shop.git("config", name, value)
    assert found(shop, "chunked").detail.endswith(": src/shop/batch.py.")  # not also link.py
    assert isinstance(read(shop, "inner"), Missing)
    assert "`größe` is 3." in found(shop, "gro\u0308ße").text
    assert not ran.exists()
    blob = shop.git("rev-parse", "HEAD:src/shop/batch.py")
    shop.object_file(blob).unlink()
    assert unreachable(shop, "chunked").code == "error"


def test_too_many_files_are_not_read(shop: TestRepository) -> None:
    shop.commit("Many", {f"m/a{number}.py": f"def run(): return {number}\n" for number in range(101)})
    assert "102 files of shop have run" in unreachable(shop, "run").detail
    assert found(shop, "m/a7.py::run").standing is Standing.IN_FORCE
