"""Search over memories beside the substring search there was: how well it ranks, on questions of our own, and what it
costs at 100,000 memories, in multiples of that search."""

from __future__ import annotations

import math
import statistics
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from random import Random

from sqlalchemy import Connection, insert, text, update

from bench.claims import ADJECTIVES, NOUNS, VERBS, made_word
from bench.postgres import postgresql
from vouchgate.ingest.claims.likeness import Embedding, ItemKind
from vouchgate.ingest.policy import Policy
from vouchgate.storage import ids
from vouchgate.storage.claims import memories, searching, word_index
from vouchgate.storage.claims.memories import MemoryFilter
from vouchgate.storage.dedup import vectors
from vouchgate.storage.engine import migrate, open_engine, prepare_vectors, reading, writing
from vouchgate.storage.identity.owners import TABLE as OWNER
from vouchgate.storage.identity.owners import lock_owners

ROWS = 100_000
ROUNDS = 60
BEST = 10  # of a ranking are looked at
NOW = datetime(2026, 11, 1, tzinfo=UTC)
OURS = frozenset({"ours"})

Search = Callable[[Connection, str], Sequence[str]]  # contents, best first


def run(rows: int = ROWS, *, held: bool = False) -> None:
    """Prints both. The questions that are held back are asked with `held` alone."""
    given = tomllib.loads(Path(__file__).with_name("questions.toml").read_text("utf-8"))
    questions = [one for one in given["questions"] if one.get("held", False) is held]
    embed = _embedder()
    print(f"\nSearch: nDCG@{BEST} of {len(questions)} questions over {len(given['memories'])} memories")
    with postgresql() as databases, ExitStack() as opened:
        for name, make in {"sqlite": _file, "postgresql": databases}.items():
            url = opened.enter_context(make())
            with _filled(url, list(given["memories"].values()), embed) as connection:
                for what, search in _searches(embed).items():
                    told = _quality(connection, search, questions, given["memories"])
                    print(f"  {name:<10} {what:<34} {told:.3f}")
        print(f"Search: milliseconds at {rows:,} memories of one owner, beside the substring search")
        dice = Random(1)
        contents = [_made(dice) for _ in range(rows)]
        for name, make in {"sqlite": _file, "postgresql": databases}.items():
            url = opened.enter_context(make())
            with _filled(url, contents, None) as connection:
                _latencies(name, connection, contents)


def _searches(embed: Callable[[str], Embedding] | None) -> dict[str, Search]:
    def substring(connection: Connection, words: str) -> Sequence[str]:
        wanted = MemoryFilter(owners=OURS, text=words, limit=BEST)
        return [one.content for one in memories.search(connection, wanted, NOW)]

    def ranked(connection: Connection, words: str, meaning: bool) -> Sequence[str]:
        wanted = MemoryFilter(owners=OURS, q=words, limit=BEST)
        vector = embed(words) if embed is not None and meaning else None
        return [one.content for one in searching.find(connection, wanted, NOW, vector)]

    found: dict[str, Search] = {
        "substring, the question": substring,
        "substring, its longest word": lambda c, q: substring(c, max(q.strip("?").split(), key=len)),
        "by words": partial(ranked, meaning=False),
    }
    return found if embed is None else found | {"by words and meaning": partial(ranked, meaning=True)}


def _quality(
    connection: Connection,
    search: Search,
    questions: Sequence[Mapping[str, object]],
    texts: Mapping[str, str],
) -> float:
    names = {content: name for name, content in texts.items()}
    return statistics.mean(
        _ndcg([names[content] for content in search(connection, str(one["ask"]))], one["answers"])  # type: ignore[arg-type]
        for one in questions
    )


def _ndcg(found: Sequence[str], answers: Mapping[str, int]) -> float:
    """Normalised discounted cumulative gain (Järvelin and Kekäläinen, 2002) of the first BEST."""

    def gain(grades: Sequence[int]) -> float:
        return math.fsum(
            (2**grade - 1) / math.log2(rank + 1) for rank, grade in enumerate(grades[:BEST], start=1)
        )

    return gain([answers.get(name, 0) for name in found]) / gain(sorted(answers.values(), reverse=True))


def _latencies(name: str, connection: Connection, contents: Sequence[str]) -> None:
    dice = Random(2)
    searches = _searches(None)
    kinds: dict[str, Callable[[], str]] = {
        "a rare word": lambda: dice.choice(contents).split()[-1].strip("."),
        "three words of a memory": lambda: " ".join(dice.sample(dice.choice(contents).split(), 3)),
        "a common word": lambda: dice.choice(NOUNS[:20]),
        "nothing there": lambda: made_word(dice, 6, 7),
    }
    for kind, ask in kinds.items():
        asked = [ask() for _ in range(ROUNDS)]
        before = _median(connection, searches["substring, the question"], asked)
        after = _median(connection, searches["by words"], asked)
        print(f"  {name:<10} {kind:<26} {after / before:6.2f} times ({before:.1f} ms, now {after:.1f} ms)")


def _median(connection: Connection, search: Search, asked: Sequence[str]) -> float:
    def once(words: str) -> float:
        begun = time.perf_counter()
        search(connection, words)
        return (time.perf_counter() - begun) * 1000

    return statistics.median(map(once, asked))


def _made(dice: Random) -> str:
    rare = made_word(dice)
    return (
        f"The {dice.choice(ADJECTIVES)} {dice.choice(NOUNS)} {dice.choice(VERBS)} {dice.choice(ADJECTIVES)} "
        f"{dice.choice(NOUNS)} {dice.randrange(10_000)} of {rare}."
    )


@contextmanager
def _file() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        yield f"sqlite:///{folder}/search.db"


@contextmanager
def _filled(
    url: str, contents: Sequence[str], embed: Callable[[str], Embedding] | None
) -> Iterator[Connection]:
    engine = open_engine(url, vectors=embed is not None)
    migrate(engine)
    if embed is not None:
        prepare_vectors(engine)
    rows = [_row(content, NOW - timedelta(seconds=place)) for place, content in enumerate(contents)]
    with writing(engine) as connection:
        lock_owners(connection, ["ours"])
        connection.execute(insert(memories.TABLE), rows)
        connection.execute(update(OWNER).values(log_seq=len(rows)))
        for row in rows if embed is not None else ():
            vectors.add(connection, "ours", ItemKind.MEMORY, row["id"], embed(row["content"]))  # type: ignore[misc]
        batch = word_index.Batch("ours", 0, len(rows), {row["id"]: row["content"] for row in rows})
        word_index.put(connection, batch, word_index.rows_of(batch, engine.dialect.name))
    with writing(engine) as connection:
        connection.execute(text("ANALYZE"))
    try:
        with reading(engine) as connection:
            yield connection
    finally:
        engine.dispose()


def _row(content: str, at: datetime) -> dict[str, str]:
    suffix = ids.new_id_suffix(at)
    told = {
        "memory_type": "fact",
        "source": "user",
        "status": "active",
        "confidence": "medium",
        "label": "FACT",
    }
    named = {"owner_id": "ours", "id": ids.memory_id(suffix), "decision_id": ids.decision_id(suffix)}
    return {**told, **named, "content": content, "created_at": at, "details": {}}  # type: ignore[dict-item]


def _embedder() -> Callable[[str], Embedding] | None:
    """The model of `dedup_method = "vector"`, where it is installed."""
    from vouchgate.embedding.paraphraser import EmbeddingError, load_embedder
    from vouchgate.ingest.data.policy_file import load_policy

    policy: Policy = load_policy(None)
    try:
        return load_embedder(policy).embed
    except (EmbeddingError, ModuleNotFoundError) as error:
        print(f"Search: nothing by meaning, {error}")
        return None
