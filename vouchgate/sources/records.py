"""Reads records: what users said and tools returned, as a host put it down for the owner of the claim."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from datetime import UTC, datetime
from fnmatch import fnmatchcase

from vouchgate.ingest.citations.kinds.record import record_id
from vouchgate.ingest.claims.citation import Citation
from vouchgate.ingest.claims.source import EXCERPT_CHARACTERS, Found, SourceReading, Standing, Unreachable
from vouchgate.ingest.policy import RecordsPolicy
from vouchgate.storage.claims import records
from vouchgate.storage.claims.records import Recorded
from vouchgate.storage.store import Store

# A tool that returns one of the gate's own ids returns what the gate has said.
_OWN_OUTPUT = re.compile(r"\b(?:mem|rev|dec)_[0-9a-f]{32}\b")


class RecordSource:
    """The records of a store. Safe to call from several threads."""

    def __init__(
        self, store: Store, rules: RecordsPolicy, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._store = store
        self._rules = rules
        self._clock = clock

    def read(self, citation: Citation, owner_id: str) -> SourceReading:
        """Looks up one `record` citation among this owner's. Blocking. Raises StorageError. That there is none cannot
        be told from that it is another's or that its time is over, so it is never Missing."""
        wanted, found = record_id(citation.key), None
        if wanted and owner_id:
            with self._store.read() as connection:
                found = records.get(connection, owner_id, wanted, self._clock())
        if found is None:
            detail = f"{citation.value} is no record that is kept for this owner, or its time is over."
            return Unreachable(citation=citation, code="no_record", detail=detail)
        standing, says = self._standing(citation.value, found)
        return Found(
            citation=citation,
            source_id=citation.key,
            form=found.kind,
            standing=standing,
            detail=says,
            excerpt=found.text[:EXCERPT_CHARACTERS],
            text=found.text,
            digest=hashlib.sha256(found.text.encode()).hexdigest(),
            dated=found.said_at,
            official=found.kind == "turn",  # about its speaker; see `ingest.support.turns`
            who=found.who,
        )

    def _standing(self, name: str, found: Recorded) -> tuple[Standing, str]:
        day = f"{found.said_at:%Y-%m-%d}"
        if found.kind == "turn":
            return Standing.IN_FORCE, f"{name} is what a user said on {day}."
        tool = found.who.casefold()
        if any(fnmatchcase(tool, each.casefold()) for each in self._rules.memory_tools) or _OWN_OUTPUT.search(
            found.text
        ):
            says = f"{name} reads back what agents remember, which vouches for nothing."
            return Standing.MEMORY, says
        if tool not in {each.casefold() for each in self._rules.tools}:
            says = f"{name} is the output of a tool that the operator has not listed as one no agent can steer, so it "
            return Standing.HINT, f"{says}vouches for nothing."
        return Standing.IN_FORCE, f"{name} is what a tool returned on {day}."
