"""Has this owner stored this before? The gate's index beside everything else that finds near-duplicates.

Each line has a ratio to a look-up by unique key, through the same driver and layer, in the same run. Claims
are generated (`bench.claims`); what is true is found by brute force.
"""

from __future__ import annotations

import json
import multiprocessing
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from random import Random

from bench import dedup_picture, dedup_report
from bench.claims import Generator
from bench.dedup_measure import FLOOD_INSERTS, INSERTS, ours_checks, ours_inserts, ours_scan, rival
from bench.dedup_ours import Ours
from bench.dedup_report import Section
from bench.dedup_rivals import RIVALS
from bench.dedup_truth import Truth
from bench.dedup_work import Flooded, Work, flood_work, natural_work, sampled
from bench.floods import FLOODS, FloodGenerator
from bench.postgres import Databases, postgresql

THRESHOLD = Fraction(23, 25)  # the built-in policy's


@dataclass(frozen=True)
class Options:
    """What to measure. `flood` is how many claims of each template an owner has."""

    sizes: tuple[int, ...] = (10_000, 100_000)
    owners: tuple[int, ...] = (1, 1_000)
    flood: int = 10_000
    seconds: float = 1.5  # for the look-ups of one contender; the slow ones get as far as they get
    picture: Path | None = None
    figures: Path | None = None  # where to keep the figures as JSON, for a picture later


MILLION = Options(sizes=(10_000, 100_000, 1_000_000), flood=100_000)


def draw_again(figures: Path, picture: Path) -> None:
    """Draws the picture of figures that an earlier run kept."""
    dedup_picture.draw(json.loads(figures.read_text()), picture)


def run(options: Options) -> None:
    """Prints a table for every size and number of owners, one for the floods, and what was aimed at."""
    began = time.monotonic()
    sections: list[Section] = []
    texts = Generator(20).claims(max(options.sizes))
    for entry in RIVALS:  # their imports take longer than a small index does
        entry.make(texts[:100], THRESHOLD)
    print(f"\nDedup: {len(texts):,} claims made in {time.monotonic() - began:.0f} s")
    with postgresql() as database:
        for size in options.sizes:
            truth = Truth(texts[:size], THRESHOLD)
            for owners in options.owners:
                work = natural_work(texts[:size], owners, truth)
                section = _section(work, owners, options.seconds, database)
                dedup_report.print_section(section)
                sections.append(section)
            del truth
        if options.flood:
            floods = _floods(options, texts, database)
            dedup_report.print_floods(floods)
            sections += floods
    dedup_report.print_aims(sections)
    print(f"  ({time.monotonic() - began:.0f} s in all)")
    if options.figures is not None:
        options.figures.write_text(json.dumps([section.as_json() for section in sections], indent=1))
    if options.picture is not None:
        dedup_picture.draw([section.as_json() for section in sections], options.picture)


@contextmanager
def _stores(database: Databases, rows: Sequence[tuple[int, str]]) -> Iterator[list[Ours]]:
    """A new store of these claims, with their owners, on either database. The two are filled at once."""
    with tempfile.TemporaryDirectory() as folder, database() as url, ExitStack() as opened:
        file = f"sqlite:///{folder}/bench.db"
        filling = multiprocessing.get_context("fork").Process(target=_fill, args=(file, rows))
        filling.start()
        try:
            _fill(url, rows)
        finally:
            filling.join()
        if filling.exitcode != 0:
            raise RuntimeError(f"the SQLite store was not filled: status {filling.exitcode}")
        stores = [Ours(file, THRESHOLD), Ours(url, THRESHOLD)]
        for store in stores:
            opened.callback(store.close)
        yield stores


def _fill(url: str, rows: Sequence[tuple[int, str]]) -> None:
    store = Ours(url, THRESHOLD)
    store.load(rows)
    store.close()


def _section(work: Work, owners: int, seconds: float, database: Databases) -> Section:
    """Every contender on one store."""
    section = Section(len(work.texts), owners)
    for entry in RIVALS:  # before a database is open: they run in forked processes
        section.rivals.append(rival(entry, work, owners, THRESHOLD, seconds))
    random = Random(0)

    def some_number(owner: int) -> int:
        return random.randrange(owner, len(work.texts), owners)

    with _stores(database, list(work.rows())) as stores:
        for store in stores:
            checks = ours_checks(store, work, some_number)
            checks[-1].bytes_each = store.index_bytes() / len(work.texts)
            section.checks[store.dialect] = checks
            section.scans[store.dialect] = ours_scan(store, work.judged(sampled(owners)))
            section.inserts[store.dialect] = ours_inserts(store, work.fresh, INSERTS)
    return section


def _floods(options: Options, texts: Sequence[str], database: Databases) -> list[Section]:
    """One owner a template, with a tenth of other claims among those of the template; all in one store."""
    rows: list[tuple[int, str]] = []
    works: list[tuple[Flooded, Work]] = []
    random = Random(3)
    for owner, flood in enumerate(FLOODS):
        source = FloodGenerator(flood, 1)
        alike = source.claims(options.flood, THRESHOLD)
        claims = alike + list(texts[: options.flood // 10])
        random.shuffle(claims)
        flooded = Flooded(source, owner, len(rows), alike, claims)
        works.append((flooded, flood_work(flooded, Truth(claims, THRESHOLD))))
        rows += [(owner, text) for text in claims]
    sections = [Section(options.flood, 1, flooded.source.flood.name) for flooded, _ in works]
    with _stores(database, rows) as stores:
        for store in stores:
            each = store.index_bytes() / len(rows)
            for section, (flooded, work) in zip(sections, works, strict=True):
                some_number = partial(_number_from, random, flooded.first, len(flooded.texts))
                section.checks[store.dialect] = ours_checks(store, work, some_number)
                section.checks[store.dialect][-1].bytes_each = each
                section.inserts[store.dialect] = ours_inserts(store, work.fresh, FLOOD_INSERTS)
    return sections


def _number_from(random: Random, first: int, count: int, _owner: int) -> int:
    return random.randrange(first, first + count)
