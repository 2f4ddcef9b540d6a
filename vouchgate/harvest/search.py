"""A search for evidence, one look after the other: the next path is asked only when what was found is not enough.

Its phases can be run by themselves. PLAN is `ingest.corroboration.queries.plan`, HARVEST is `harvest`, NORMALIZE is
`reading_of` (and, where claims are read out of texts, `vouchgate.harvest.research.normalize`), CORROBORATE is `hits_of`
and `weigh`, SCORE is `decide_from_history` and `conclude`, RENDER is `ingest.corroboration.proof`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from vouchgate.harvest.budget import Purse
from vouchgate.harvest.paths import Look, SearchPath
from vouchgate.ingest.claims.source import Found, SourceReading, Standing
from vouchgate.ingest.corroboration.decision import decide_from_history
from vouchgate.ingest.corroboration.history import Attempt, Failure, NeedMoreSearch, SearchHistory, SearchTask
from vouchgate.ingest.corroboration.hits import MOST_HITS, Reading, hits_of
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.sources.answers import Clock, one_line

log = logging.getLogger(__name__)

Pages = dict[str, Reading | str]  # what came of each address: a text, or why there is none

LOOK_SECONDS = 20.0  # for one look, without the pages it names; as for one reading of a cited source


class World(NamedTuple):
    """What a search can look at."""

    paths: Mapping[str, SearchPath]  # by name, in the order they are tried
    read: Callable[[str], Awaitable[SourceReading]]  # the page at an address; never raises
    clock: Clock

    def narrowed(self, policy: Policy) -> Policy:
        """The policy with these paths and no others."""
        rules = policy.corroboration.model_copy(update={"paths": tuple(self.paths)})
        return policy.model_copy(update={"corroboration": rules})


class Searched(NamedTuple):
    """What was looked for, and the texts that were read. The hits of `history` are those texts', in their order."""

    history: SearchHistory
    readings: tuple[Reading, ...]


async def search(
    task: SearchTask, world: World, purse: Purse, policy: Policy, room: int = MOST_HITS
) -> Searched:
    """Looks for a claim until what was read is enough, or nothing is left to try or to spend. At most `room` texts are
    kept. Never raises for what was found or not found."""
    policy = world.narrowed(policy)
    searched, pages = Searched(SearchHistory(), ()), Pages()
    while isinstance(following := decide_from_history(task, searched.history, 0, 1, policy), NeedMoreSearch):
        look = await harvest(following.path, following.query, world, purse, pages)
        if look is None:
            failure = Failure(path=following.path, query=following.query, why=purse.empty())
            history = searched.history
            return searched._replace(
                history=history.model_copy(update={"failures": (*history.failures, failure)})
            )
        more = added(searched, following.path, following.query, look, room)
        if len(more.readings) > len(searched.readings):
            hits = hits_of(task.claim, more.readings, policy)
            more = more._replace(history=more.history.model_copy(update={"hits": hits}))
        searched = more
    return searched


async def harvest(path: str, query: str, world: World, purse: Purse, pages: Pages) -> Look | None:
    """One look along one path, with the pages it names read; None when the purse is empty. `pages` are those that were
    asked for already, and are not asked for again. Whatever goes wrong is a failure of the look."""
    if purse.empty():
        return None
    purse.take_look()
    started = time.monotonic()
    try:
        look = await _look(world.paths[path], query, min(LOOK_SECONDS, purse.seconds))
        left = purse.seconds - (time.monotonic() - started)
        return await _with_pages(look, world, purse, pages, left)
    finally:
        purse.spend(time.monotonic() - started)


async def _look(path: SearchPath, query: str, seconds: float) -> Look:
    try:
        async with asyncio.timeout(seconds):
            look = await path.look(query, seconds)
        return look if isinstance(look, Look) else Look(failures=("it answered in no form that is known",))
    except TimeoutError:
        return Look(failures=(f"no answer within {seconds:.3g} s",))
    except Exception as error:
        log.exception("the look along %s failed", path.name)
        return Look(failures=(f"an unexpected {type(error).__name__}",))


async def _with_pages(look: Look, world: World, purse: Purse, pages: Pages, seconds: float) -> Look:
    """The look with the pages at its addresses read, at once; each host sees no more requests than it may."""
    named = list(dict.fromkeys(look.addresses))
    wanted = [address for address in named if address not in pages]
    had = wanted[: purse.take_pages(len(wanted))]
    pages.update(zip(had, await asyncio.gather(*(_page(each, world, seconds) for each in had)), strict=True))
    failures = list(look.failures)
    if len(had) < len(wanted):
        left_out = len(wanted) - len(had)
        failures.append(f"the budget of pages is spent: {left_out} that were named were not read")
    read = [pages[address] for address in named if address in pages]
    failures.extend(page for page in read if isinstance(page, str))
    readings = tuple(page for page in read if isinstance(page, Reading))
    return Look((*look.readings, *readings), tuple(failures))


async def _page(address: str, world: World, seconds: float) -> Reading | str:
    try:
        async with asyncio.timeout(max(seconds, 0)):
            return reading_of(await world.read(address), address, world.clock())
    except TimeoutError:
        return f"{one_line(address)[:120]} could not be read in the time that was left"


def reading_of(read: SourceReading, address: str, at: datetime) -> Reading | str:
    """What was read at an address as a text to hold claims against; why there is none, in a sentence."""
    if not isinstance(read, Found):
        return read.detail.removesuffix(".")
    if read.standing is not Standing.IN_FORCE or not read.text:
        return f"{one_line(address)[:120]} has no text that counts"
    return Reading(
        text=read.text,
        url=read.source_id if read.source_id.startswith(("http://", "https://")) else address,
        title=read.title,
        published=read.dated,
        revised=read.revised,
        read_at=at,
        form=read.form,
        project=read.project,
        official=read.official,
        verified=True,
        links=read.links,
    )


def added(searched: Searched, path: str, query: str, look: Look, room: int = MOST_HITS) -> Searched:
    """What was searched with one look more, the hits still to be made. A look that failed and found nothing is no
    attempt: nobody knows that there is nothing."""
    known = {_key(reading) for reading in searched.readings}
    new = [
        reading for key, reading in {_key(each): each for each in look.readings}.items() if key not in known
    ]
    left = max(room - len(searched.readings), 0)
    why = list(look.failures)
    if len(new) > left:
        why.append(f"{room} texts are held against a claim at most: {len(new) - left} were left out")
    history = searched.history
    failures = tuple(Failure(path=path, query=query, why=each) for each in why)
    tried = (Attempt(path=path, query=query, found=len(look.readings)),)
    return Searched(
        history.model_copy(
            update={
                "attempts": history.attempts + (tried if look.readings or not failures else ()),
                "failures": history.failures + failures,
            }
        ),
        (*searched.readings, *new[:left]),
    )


def _key(reading: Reading) -> Sequence[str]:
    return (reading.url or reading.name, reading.text)
