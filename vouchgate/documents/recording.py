"""What was read for documents, kept in a folder: for a run offline that says the same, and for the next run.

The folder has one file a source, named by the digest of its citation, and `run.json` with the time of the run and what
was found for claims that cite nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from pydantic import AwareDatetime, Field, TypeAdapter, ValidationError

from vouchgate.gate.gathering import SourceReader
from vouchgate.ingest.claims.citation import KEPT_BY_OPERATOR, Citation
from vouchgate.ingest.claims.decision import Looked, Suggested
from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.ingest.claims.source import Found, SourceReading, Unreachable

RUN = "run.json"
_READING: TypeAdapter[SourceReading] = TypeAdapter(SourceReading)


class _Run(Frozen):
    at: AwareDatetime
    harvested: dict[str, tuple[Citation, ...]] = Field(default_factory=dict)
    digest: str = ""

    def digested(self) -> str:
        """What its digest has to be."""
        return _digest(self.model_dump(mode="json", exclude={"digest"}))


class RecordingError(ValueError):
    """A folder that holds no recording, or one that was changed; the message names it."""


def write(
    folder: Path,
    readings: Mapping[str, SourceReading],
    harvested: Mapping[str, tuple[Citation, ...]],
    now: datetime,
) -> None:
    """Keeps what was read at this time, in place of what is there, and what was found for claims, by their text.
    Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    for key, reading in readings.items():
        _put(folder / _name(key), key, reading, now)
    run = _Run(at=now, harvested=dict(harvested))
    run = run.model_copy(update={"digest": run.digested()})
    (folder / RUN).write_text(run.model_dump_json(indent=1) + "\n", "utf-8")


def time_of(folder: Path) -> datetime:
    """When the recorded run was. Raises RecordingError."""
    return _run(folder).at


def _run(folder: Path) -> _Run:
    try:
        run = _Run.model_validate_json((folder / RUN).read_bytes())
    except (OSError, ValidationError) as error:
        raise RecordingError(f"{folder} holds no recording: {RUN} cannot be read") from error
    if run.digest != run.digested():
        raise RecordingError(f"{folder / RUN} was changed since it was recorded: record again")
    return run


class Replayed:
    """Reads what a recorded run read, and nothing else, but for what is kept here where `repositories` read it.
    What was not read then is UNKNOWN. Raises RecordingError."""

    def __init__(self, folder: Path, repositories: SourceReader | None = None) -> None:
        self._folder = folder
        self._run = _run(folder)
        self._repositories = repositories

    async def find(
        self, claim: str, seconds: float
    ) -> tuple[Sequence[Citation], Sequence[Suggested], Sequence[Looked]]:
        """What was found for a claim then."""
        return self._run.harvested.get(claim, ()), (), ()

    async def read(self, citation: Citation, *, fresh: bool = False) -> SourceReading:
        """As the source that was asked then. Raises RecordingError for a file that was changed."""
        if self._repositories is not None and citation.type in KEPT_BY_OPERATOR:
            return await self._repositories.read(citation, fresh=fresh)
        path = self._folder / _name(citation.key)
        kept = _get(path, citation.key)
        if kept is None:
            detail = f"{citation.value} is not in the recording."
            return Unreachable(citation=citation, code="offline", detail=detail)
        if kept[0] != self._run.at:
            raise RecordingError(f"{path} is of another run than {RUN}: record again")
        return kept[1].model_copy(update={"citation": citation})


class Cached:
    """Reads what an earlier run read not long ago, and the rest from the source. What was not there, or could not be
    found out, is asked again, and so is what is kept here: in another repository, or a commit later, it is another."""

    def __init__(self, folder: Path, source: SourceReader, most: timedelta, now: datetime) -> None:
        self._folder = folder
        self._source = source
        self._after = now - most
        self._now = now

    async def read(self, citation: Citation, *, fresh: bool = False) -> SourceReading:
        """As the source. Never raises for what is in the folder: a file that cannot be used is read again."""
        if citation.type in KEPT_BY_OPERATOR:
            return await self._source.read(citation, fresh=fresh)
        path = self._folder / _name(citation.key)
        try:
            kept = None if fresh else _get(path, citation.key)
        except RecordingError:
            kept = None
        if kept is not None and kept[0] >= self._after:
            return kept[1].model_copy(update={"citation": citation})
        reading = await self._source.read(citation, fresh=fresh)
        if isinstance(reading, Found):
            self._folder.mkdir(parents=True, exist_ok=True)
            _put(path, citation.key, reading, self._now)
        return reading


def _name(key: str) -> str:
    return hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()[:32] + ".json"


def _put(path: Path, key: str, reading: SourceReading, now: datetime) -> None:
    fields: dict[str, Any] = {"key": key, "at": now.isoformat(), "reading": reading.model_dump(mode="json")}
    if isinstance(reading, Found):
        fields |= {"text": reading.text, "later": reading.later, "path": reading.path}
    fields["digest"] = _digest(fields)
    made = path.with_suffix(".new")
    made.write_text(json.dumps(fields, indent=1, sort_keys=True) + "\n", "utf-8")
    made.replace(path)


def _get(path: Path, key: str) -> tuple[datetime, SourceReading] | None:
    try:
        fields = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise RecordingError(f"{path} cannot be read") from error
    try:
        if fields.pop("digest") != _digest(fields):
            raise RecordingError(f"{path} was changed since it was recorded")
        if fields["key"] != key:
            raise RecordingError(f"{path} was changed since it was recorded: it holds another source")
        reading = _READING.validate_python(fields["reading"])
        if isinstance(reading, Found):
            kept = {"text": fields["text"], "later": fields["later"], "path": fields.get("path", "")}
            reading = reading.model_copy(update=kept)
        return datetime.fromisoformat(fields["at"]), reading
    except (KeyError, TypeError, AttributeError, ValidationError) as error:
        raise RecordingError(f"{path} is no recorded source") from error


def _digest(fields: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()
