"""Looking a claim up by meaning beside everything else that is asked about it, within the policy's deadline."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from typing import Protocol

from vouchgate.ingest.claims.claim import Claim
from vouchgate.ingest.claims.likeness import Embedding, ParaphraseFacts, ParaphraseUnavailable
from vouchgate.ingest.net.turns import Turns, asking

log = logging.getLogger(__name__)

ParaphraseResult = tuple[ParaphraseFacts, Embedding | None]  # what was found, and the claim's vector


class Paraphraser(Protocol):
    """Compares claims by meaning. Blocking; called in a worker thread; may raise."""

    def embed(self, text: str) -> Embedding: ...

    def find(self, owner_id: str, embedding: Embedding, now: datetime) -> ParaphraseFacts: ...


class ParaphraseLookup:
    """Asks a paraphraser in threads of its own, and waits so many seconds. What goes wrong is not found out, and a
    line in the log. Close it when done."""

    def __init__(self, paraphraser: Paraphraser, seconds: float) -> None:
        self._paraphraser = paraphraser
        self._seconds = seconds
        self._threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="vectors")
        self._turns = Turns(1, 2)

    def close(self) -> None:
        """Waits for look-ups under way."""
        self._threads.shutdown(wait=True, cancel_futures=True)

    async def look_up(self, claim: Claim, now: datetime) -> ParaphraseResult:
        """Which earlier claims are near by meaning, and the claim's vector."""
        asked = self._turns.run(claim.owner_id, self._threads, partial(self._ask, claim, now))
        try:
            return await asyncio.wait_for(asked, self._seconds)
        except TimeoutError:
            detail = f"Earlier claims could not be looked up by meaning within {self._seconds:g} s."
            return ParaphraseUnavailable(detail=detail), None

    async def embed(self, text: str) -> Embedding | None:
        """The vector of a text; None when it could not be made in time."""
        made = self._turns.run(asking(), self._threads, partial(self._paraphraser.embed, text))
        try:
            return await asyncio.wait_for(made, self._seconds)
        except Exception:  # whatever the model raises, there is no vector
            log.exception("no vector could be made")
            return None

    def _ask(self, claim: Claim, now: datetime) -> ParaphraseResult:
        embedding = None
        try:
            embedding = self._paraphraser.embed(claim.content)
            return self._paraphraser.find(claim.owner_id, embedding, now), embedding
        except Exception:  # whatever went wrong, it could not be found out: UNKNOWN, and a log line
            log.exception("earlier claims could not be looked up by meaning")
            detail = "Earlier claims could not be looked up by meaning."
            return ParaphraseUnavailable(detail=detail), embedding
