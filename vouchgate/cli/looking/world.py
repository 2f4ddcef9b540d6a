"""What commands look at for evidence, opened as the settings say."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from vouchgate.cli.output import USAGE, Failure
from vouchgate.harvest.documents import open_searches
from vouchgate.harvest.search import World
from vouchgate.harvest.setup import world_of
from vouchgate.ingest.policy import Policy
from vouchgate.settings import Settings
from vouchgate.sources.repositories import open_repositories
from vouchgate.sources.setup import open_sources


@contextmanager
def looking(settings: Settings, policy: Policy) -> Iterator[tuple[World, asyncio.Runner]]:
    """The world, and the one event loop in which it may be looked at. Raises Failure when there is nothing to look
    along."""
    logging.basicConfig(level=logging.ERROR)  # what could not be found out is in the answer already
    git = open_repositories(settings)
    with ExitStack() as opened:
        sources = opened.enter_context(open_sources(settings, policy, git))
        local = opened.enter_context(open_searches(sources.corpora, git))
        world = world_of(settings, policy, sources, local)
        if not world.paths:
            raise Failure(
                "there is nothing to look along: give --repo DIR or --corpus NAME=DIR, or see docs/operations.md",
                USAGE,
            )
        runner = opened.enter_context(asyncio.Runner())
        opened.callback(lambda: runner.run(sources.stop_reading()))
        yield world, runner
