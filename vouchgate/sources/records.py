"""Reads records: what users said and tools returned, as a host put it down for the owner of the claim."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from fnmatch import fnmatchcase

from vouchgate.ingest.citations.kinds.record import PREFIX
from vouchgate.ingest.claims.citation import Citation
from vouchgate.ingest.claims.source import EXCERPT_CHARACTERS, Found, SourceReading, Standing, Unreachable
from vouchgate.ingest.policy import RecordsPolicy
from vouchgate.storage.claims import records
from vouchgate.storage.ids import ID
from vouchgate.storage.store import Store


class RecordSource:
    """The records of a store. Safe to call from several threads."""

    def __init__(self, store: Store, rules: RecordsPolicy) -> None:
        self._store, self._rules = store, rules

    def read(self, citation: Citation, owner_id: str) -> SourceReading:
        """Looks up one `record` citation among this owner's. Blocking. Raises StorageError. That there is none cannot
        be told from that it is another's or that its time is over, so it is never Missing."""
        with self._store.read() as connection:
            found = records.get(connection, owner_id, citation.key.removeprefix(PREFIX), datetime.now(UTC))
        if found is None:
            detail = f"{citation.value} is no record that is kept for this owner, or its time is over."
            return Unreachable(citation=citation, code="no_record", detail=detail)
        standing, says = Standing.IN_FORCE, f"what a user said on {found.said_at:%Y-%m-%d}."
        if found.kind == "tool_output":
            standing, says = self._standing(found.who.casefold(), found.text)
        return Found(
            citation=citation,
            source_id=citation.key,
            form=found.kind,
            standing=standing,
            detail=f"{citation.value} is {says}",
            excerpt=found.text[:EXCERPT_CHARACTERS],
            text=found.text,
            digest=hashlib.sha256(found.text.encode()).hexdigest(),
            dated=found.said_at,
            official=found.kind == "turn",  # on its speaker alone; see `ingest.support.turns`
            who=found.who,
        )

    def _standing(self, tool: str, text: str) -> tuple[Standing, str]:
        if ID.search(text) or any(fnmatchcase(tool, each.casefold()) for each in self._rules.memory_tools):
            return Standing.MEMORY, "what agents remember, read back by a tool, and vouches for nothing."
        if tool not in map(str.casefold, self._rules.tools):
            says = "the output of a tool not listed as one no agent can steer, and vouches for nothing."
            return Standing.HINT, says
        return Standing.IN_FORCE, "what a tool returned that no agent can steer."
