"""What workers do, as functions of rows and policy: nothing here knows a database, a token or the cluster.

A file is gone through three times. `scan` makes the keys of each row; `join` brings together the rows that share one;
`compare` holds the nearest against each other, word by word; `judge` examines the rows and shows them to an auditor,
together with all those that what it says rests on. So every answer is that of one auditor who is shown all rows.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from typing import Any

import numpy as np

from vouchgate.gate.examiner import Examiner
from vouchgate.importing.audit import Auditor
from vouchgate.importing.batches import BATCH, PreparedRow, claim_of, prepared
from vouchgate.importing.bulk.joining import Keyed, Numbers, Pairs, joined, met, nearest, sharing
from vouchgate.importing.bulk.parts import Part, count_lines, read_part
from vouchgate.importing.feed import ReadOnceSources, examine_all
from vouchgate.importing.findings import Audit
from vouchgate.importing.nearest import CANDIDATES, ChosenRows, bands_of
from vouchgate.importing.rows import BadRow, Defaults, ImportRow
from vouchgate.ingest.claims.people import Principal
from vouchgate.ingest.dedup.compare import Comparisons
from vouchgate.ingest.dedup.signature import signature_keys
from vouchgate.ingest.language.words import tokens
from vouchgate.ingest.policy import Policy
from vouchgate.settings import Settings
from vouchgate.sources.repositories import open_repositories
from vouchgate.sources.setup import open_sources
from vouchgate.storage.claims.submit import Idempotency
from vouchgate.storage.dedup.contradicting import new_allowance

_UNSENT = Idempotency("", "")  # an audit sends nothing
MOST_TOLD = 20  # rows of a part that cannot be used, and are told one by one


@dataclass(frozen=True, slots=True)
class Plan:
    """What holds for all rows. `settings` are those that say what rows may cite, without addresses of databases and
    without tokens: it is all that workers are given beside the file."""

    policy: Policy
    principal: Principal
    defaults: Defaults
    settings: Mapping[str, Any]


@dataclass(slots=True)
class Judged:
    """What was found in some rows. `bad` are the first that cannot be used, with their numbers; `lines` the answers as
    JSON, where they are wanted, with the numbers of their rows."""

    audit: Audit
    owners: set[str]
    bad: list[tuple[int, BadRow]] = field(default_factory=list)
    bad_count: int = 0
    lines: list[tuple[int, str]] = field(default_factory=list)


@contextmanager
def _examiner(plan: Plan, runner: asyncio.Runner) -> Iterator[Examiner]:
    """Reads what is cited from the disk of the worker, each thing once."""
    logging.getLogger("vouchgate").setLevel(logging.ERROR)  # that a source could not be read is in the answer
    settings = Settings.model_construct(**plan.settings, offline=True)
    with ExitStack() as opened:
        sources = opened.enter_context(open_sources(settings, plan.policy, open_repositories(settings)))
        once = ReadOnceSources(sources)
        opened.callback(lambda: runner.run(sources.stop_reading()))
        opened.callback(lambda: runner.run(once.stop_reading()))
        examiner = Examiner(plan.policy, once)
        opened.callback(examiner.close)
        yield examiner


def scan(plan: Plan, part: Part, places: int) -> list[Any]:
    """How many lines the part has, and for each place where keys are joined the keys of duplicates and of what is
    similar that belong there; rows by their numbers within the part."""
    same, like = _Keys(), _Keys()
    with asyncio.Runner() as runner, _examiner(plan, runner) as examiner:
        for number, row in read_part(part):
            claim = row if isinstance(row, BadRow) else claim_of(examiner, plan.principal, row, plan.defaults)
            if isinstance(claim, BadRow):
                continue
            owner, at = _digest(claim.owner_id), number - part.before
            signature = signature_keys(tokens(claim.content), claim.memory_type.value, plan.policy.threshold)
            same.add(signature.all_probes(), at, owner, 0)
            if bands := bands_of(claim):
                like.add(bands, at, owner, _digest(claim.content))
    of_same, of_like = same.columns(), like.columns()
    return [
        count_lines(part),
        *((of_same.of_place(place, places), of_like.of_place(place, places)) for place in range(places)),
    ]


class _Keys:
    """Keys of rows as they come. Equal keys of two owners are two keys."""

    def __init__(self) -> None:
        self._keys: list[int] = []
        self._owners: list[int] = []
        self._rows: list[int] = []
        self._texts: list[int] = []
        self._times: list[int] = []

    def add(self, keys: Sequence[int], row: int, owner: int, text: int) -> None:
        self._keys += keys
        self._times.append(len(keys))
        for known, value in ((self._rows, row), (self._owners, owner), (self._texts, text)):
            known.append(value)

    def columns(self) -> Keyed:
        owners, rows, texts = (
            np.repeat(np.array(each, np.int64), self._times)
            for each in (self._owners, self._rows, self._texts)
        )
        return Keyed(np.array(self._keys, np.int64) ^ owners, rows, texts)


def _digest(text: str) -> int:
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def join(parts: Sequence[Part], scanned: Sequence[tuple[Keyed, Keyed]]) -> list[Any]:
    """Of the keys of one place, part by part: which rows have to be judged together, as they may be duplicates; and for
    each part, which of its rows may be similar to which before them. Rows by their numbers in the file."""
    moved = [
        (same.moved(part.before), like.moved(part.before))
        for (same, like), part in zip(scanned, parts, strict=True)
    ]
    all_same, all_like = (
        Keyed(*map(np.concatenate, zip(*columns, strict=True))) for columns in zip(*moved, strict=True)
    )
    pairs = met(all_like)
    order = np.argsort(pairs.row, kind="stable")
    row, other = pairs.row[order], pairs.other[order]
    ends = np.searchsorted(row, [part.before for part in parts[1:]])
    return [sharing(all_same), *map(Pairs, np.split(row, ends), np.split(other, ends))]


def compare(plan: Plan, parts: Sequence[Part], size: int, pieces: Sequence[Pairs]) -> Pairs:
    """Those of the rows that are similar that matter for the ones they were met by: that contradict them, and all where
    so many are about the same that more of them were not met."""
    chosen = nearest(joined(list(pieces)), size)
    texts = _texts(plan, parts, np.unique(np.concatenate(chosen)))
    others: defaultdict[int, list[int]] = defaultdict(list)
    for row, other in zip(chosen.row.tolist(), chosen.other.tolist(), strict=True):
        if texts[row][0] == texts[other][0]:  # of one owner
            others[row].append(other)
    kept = [(row, other) for row, of in others.items() for other in _mattering(plan.policy, row, of, texts)]
    return Pairs(*np.array(kept, np.int64).reshape(-1, 2).T)


def _mattering(
    policy: Policy, row: int, others: Sequence[int], texts: Mapping[int, tuple[str | None, str]]
) -> list[int]:
    known, allowance = Comparisons(texts[row][1], policy.threshold, policy.values), new_allowance()
    about = [each for each in others if known.may_contradict(texts[each][1], allowance) is not False]
    if len(about) >= CANDIDATES:
        return about
    return [
        each
        for each in about
        if not known.contradict(texts[each][1], allowance) or known.contradicted(texts[each][1])
    ]


def _texts(plan: Plan, parts: Sequence[Part], wanted: Numbers) -> dict[int, tuple[str | None, str]]:
    """The owner and text of these rows. What was masked in them is never asked for: it has no keys."""
    found: dict[int, tuple[str | None, str]] = {}
    for part, numbers in _by_part(parts, wanted):
        for number, row in read_part(part, only=frozenset(numbers.tolist())):
            if isinstance(row, ImportRow):
                found[number] = (row.owner or plan.defaults.owner, row.content)
    return found


def _by_part(parts: Sequence[Part], numbers: Numbers) -> Iterator[tuple[Part, Numbers]]:
    """The parts that have any of these rows, with them; `numbers` are in order."""
    split = np.split(numbers, np.searchsorted(numbers, [part.before for part in parts[1:]]))
    return ((part, those) for part, those in zip(parts, split, strict=True) if len(those))


def judge(plan: Plan, parts: Sequence[Part], numbers: Numbers, chosen: Pairs, *, lines: bool) -> Judged:
    """What an auditor says of these rows, who are shown them in order; `chosen` of `compare`, for these rows."""
    of_rows: defaultdict[int, list[int]] = defaultdict(list)
    for row, other in zip(chosen.row.tolist(), chosen.other.tolist(), strict=True):
        of_rows[row].append(other)
    auditor = Auditor(plan.policy, ChosenRows(dict(of_rows)))
    bad: list[tuple[int, BadRow]] = []
    answers: list[tuple[int, str]] = []
    with asyncio.Runner() as runner, _examiner(plan, runner) as examiner:
        rows = _prepared(plan, examiner, parts, numbers, bad)
        while some := list(islice(rows, BATCH)):
            looked = runner.run(examine_all(examiner, [row for _, row in some]))
            for (number, row), examined in zip(some, looked, strict=True):
                if isinstance(examined, BadRow):
                    bad.append((number, examined))
                    auditor.skip(row.claim, number)
                    continue
                told = auditor.observe(row, examined, number)
                if lines:
                    answers.append((number, told.as_line()))
    first = sorted(bad, key=lambda each: each[0])[:MOST_TOLD]
    return Judged(auditor.result(), auditor.owners, first, len(bad), answers)


def _prepared(
    plan: Plan,
    examiner: Examiner,
    parts: Sequence[Part],
    numbers: Numbers,
    bad: list[tuple[int, BadRow]],
) -> Iterator[tuple[int, PreparedRow]]:
    """The rows that can be used; the others come to the `bad`."""
    for part, those in _by_part(parts, numbers):
        for number, row in read_part(part, only=frozenset(those.tolist())):
            claim = row if isinstance(row, BadRow) else claim_of(examiner, plan.principal, row, plan.defaults)
            if isinstance(claim, BadRow) or isinstance(row, BadRow):
                bad.append((number, claim))
            else:
                yield number, prepared(row, claim, _UNSENT)
