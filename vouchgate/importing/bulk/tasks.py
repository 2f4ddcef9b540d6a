"""What workers do, as functions of rows and policy: nothing here knows a database, a token or the cluster.

A file is gone through three times. `scan` makes the keys of each row; `join` brings together the rows that share one;
`compare` holds the nearest against each other, word by word; `judge` examines the rows and shows them to an auditor,
together with all those that what it says rests on. So every answer is that of one auditor who is shown all rows.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from typing import Any

import numpy as np

from vouchgate.gate.examiner import Examiner
from vouchgate.gate.incoming import ClaimRefused
from vouchgate.importing.audit import Auditor
from vouchgate.importing.batches import BATCH, PreparedRow, claim_of, prepared
from vouchgate.importing.bulk.joining import Keyed, Numbers, Pairs, joined, met, nearest, sharing
from vouchgate.importing.bulk.parts import Part, count_lines, read_part
from vouchgate.importing.feed import ReadOnceSources, examine_all
from vouchgate.importing.findings import Audit
from vouchgate.importing.labels import LabelledRow, row_name
from vouchgate.importing.nearest import CANDIDATES, ChosenRows, Near, keys_of, said_until, tell
from vouchgate.importing.rows import BadRow, Defaults, ImportRow
from vouchgate.ingest.claims.people import Principal
from vouchgate.ingest.dedup.compare import Comparisons
from vouchgate.ingest.dedup.rewording import Rewriter
from vouchgate.ingest.dedup.signature import signature_keys
from vouchgate.ingest.language.words import tokens
from vouchgate.ingest.policy import Policy
from vouchgate.settings import Settings
from vouchgate.sources.repositories import open_repositories
from vouchgate.sources.setup import open_sources
from vouchgate.storage.claims.submit import Idempotency
from vouchgate.storage.dedup.contradicting import new_allowance

MOST_TOLD = 20  # rows that cannot be used and are told one by one; the others are counted
_UNSENT = Idempotency("", "")  # an audit sends nothing


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
    """What was found in some rows; how many cannot be used, the first of these; and the answers to all others, where
    they are wanted."""

    audit: Audit
    owners: set[str]
    bad_count: int
    bad: list[BadRow]
    rows: list[LabelledRow]


def number_of(row: BadRow | PreparedRow | ImportRow | LabelledRow) -> int:
    """Of its line or row, in the file or, while that is not known, in its part."""
    return int(row_name(row.place))


@contextmanager
def _examining(plan: Plan) -> Iterator[tuple[Examiner, asyncio.Runner]]:
    """An examiner that reads what is cited from the disk of the worker, each thing once, and the loop it belongs to."""
    logging.getLogger("vouchgate").setLevel(logging.ERROR)  # that a source could not be read is in the answer
    settings = Settings.model_construct(**plan.settings, offline=True)
    with ExitStack() as opened:
        sources = opened.enter_context(open_sources(settings, plan.policy, open_repositories(settings)))
        runner, once = opened.enter_context(asyncio.Runner()), ReadOnceSources(sources)
        opened.callback(lambda: runner.run(once.stop_reading()))
        examiner = Examiner(plan.policy, once)
        opened.callback(examiner.close)
        yield examiner, runner


def _claims(
    plan: Plan, examiner: Examiner, rows: Iterable[ImportRow | BadRow]
) -> Iterator[PreparedRow | BadRow]:
    """The rows as claims."""
    for row in rows:
        if isinstance(row, BadRow):
            yield row
        else:
            claim = claim_of(examiner, plan.principal, row, plan.defaults)
            yield claim if isinstance(claim, BadRow) else prepared(row, claim, _UNSENT)


def scan(plan: Plan, part: Part, places: int) -> list[Any]:
    """How many lines the part has, and for each place where keys are joined the keys of duplicates and of what is
    similar that belong there; rows by their numbers within the part."""
    same: list[tuple[int, ...]] = []
    like: list[tuple[int, ...]] = []
    with _examining(plan) as (examiner, _):
        for row in _claims(plan, examiner, read_part(part)):
            try:
                claim = None if isinstance(row, BadRow) else examiner.inspect(row.claim).claim
            except ClaimRefused:
                continue
            if claim is not None:
                at, owner = number_of(row) - part.before, _digest(claim.owner_id)
                words, kind = tokens(claim.content), claim.memory_type.value
                keys = signature_keys(words, kind, plan.policy.threshold).all_probes()
                same.append((at, 0, *(key ^ owner for key in keys)))
                like.append((at, _digest(repr(said_until(claim))), *(key ^ owner for key in keys_of(claim))))
    columns = [_columns(same), _columns(like)]
    return [count_lines(part), *([one.of_place(place, places) for one in columns] for place in range(places))]


def _columns(rows: Sequence[tuple[int, ...]]) -> Keyed:
    """A line for each key of each row: (row, text, *keys)."""
    times = [len(row) - 2 for row in rows]
    row, text = (np.repeat(np.array([row[at] for row in rows], np.int64), times) for at in (0, 1))
    return Keyed(np.array([key for row in rows for key in row[2:]], np.int64), row, text)


def _digest(text: str) -> int:
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def join(parts: Sequence[Part], scanned: Sequence[Sequence[Keyed]]) -> list[Pairs]:
    """Of the keys of one place, part by part: which rows have to be judged together, as they may be duplicates; and for
    each part, which of its rows may be similar to which before them. Rows by their numbers in the file."""
    same, like = (
        Keyed(*(np.concatenate([column[at] for column in moved]) for at in range(3)))
        for moved in (
            [
                keyed[of]._replace(row=keyed[of].row + part.before)
                for keyed, part in zip(scanned, parts, strict=True)
            ]
            for of in (0, 1)
        )
    )
    pairs = met(like)
    order = np.argsort(pairs.row, kind="stable")
    row, other = pairs.row[order], pairs.other[order]
    ends = _ends(parts, row)
    return [sharing(same), *map(Pairs, np.split(row, ends), np.split(other, ends))]


def _ends(parts: Sequence[Part], numbers: Numbers) -> Numbers:
    """Where in these numbers, which are in order, those of each part but the last end."""
    return np.searchsorted(numbers, [part.before for part in parts[1:]], side="right")


def compare(plan: Plan, parts: Sequence[Part], size: int, pieces: Sequence[Pairs]) -> Pairs:
    """Those of the rows that are similar that matter for the ones they were met by: that contradict them, and all where
    so many are about the same that more of them were not met."""
    chosen = nearest(joined(pieces), size)
    texts = {
        number_of(row): (row.owner or plan.defaults.owner, row.content, row.saved_at)
        for row in _rows(parts, np.unique(np.concatenate(chosen)))
        if isinstance(row, ImportRow)  # what was masked in a row is never asked for: it has no keys
    }
    others: defaultdict[int, list[int]] = defaultdict(list)
    for row, other in zip(*map(np.ndarray.tolist, chosen), strict=True):
        if texts[row][0] == texts[other][0]:  # of one owner
            others[row].append(other)
    known = plan.policy, Rewriter(plan.policy.values), texts
    kept = [(row, other) for row, of in others.items() for other in _mattering(*known, row, of)]
    return Pairs(*np.array(kept, np.int64).reshape(-1, 2).T)


def _mattering(
    policy: Policy, rewriter: Rewriter, texts: Mapping[int, Sequence[Any]], row: int, others: Sequence[int]
) -> list[int]:
    (_, text, at), allowance = texts[row], new_allowance()
    known = Comparisons(text, policy.threshold, policy.values)
    told = tell(text, at, [Near(n, *texts[n][1:]) for n in others], rewriter)
    kept = {n for n in others if known.may_contradict(texts[n][1], allowance) is not False}
    if len(kept) < CANDIDATES:
        kept = {
            n for n in kept if not known.contradict(texts[n][1], allowance) or known.contradicted(texts[n][1])
        }
    kept.update(n for n, _, _ in told)
    return [n for n in others if n in kept]


def _rows(parts: Sequence[Part], numbers: Numbers) -> Iterator[ImportRow | BadRow]:
    """The rows of these numbers, which are in order, of all parts that have one."""
    for part, those in zip(parts, np.split(numbers, _ends(parts, numbers)), strict=True):
        if len(those):
            yield from read_part(part, only=frozenset(those.tolist()))


def judge(plan: Plan, parts: Sequence[Part], numbers: Numbers, chosen: Pairs, *, answers: bool) -> Judged:
    """What an auditor says of these rows, who is shown them in order; `chosen` of `compare`, for these rows."""
    others: defaultdict[int, list[int]] = defaultdict(list)
    for number, other in zip(*map(np.ndarray.tolist, chosen), strict=True):
        others[number].append(other)
    auditor = Auditor(plan.policy, ChosenRows(dict(others)))
    bad: list[BadRow] = []
    told: list[LabelledRow] = []
    with _examining(plan) as (examiner, runner):
        claims = _claims(plan, examiner, _rows(parts, numbers))
        while some := list(islice(claims, BATCH)):
            ready = [row for row in some if isinstance(row, PreparedRow)]
            bad += [row for row in some if isinstance(row, BadRow)]
            for row, examined in zip(ready, runner.run(examine_all(examiner, ready)), strict=True):
                if isinstance(examined, BadRow):
                    bad.append(examined)
                    continue
                answer = auditor.observe(row, examined, number_of(row))
                if answers:
                    told.append(answer)
    return Judged(auditor.result(), auditor.owners, len(bad), sorted(bad, key=number_of)[:MOST_TOLD], told)
