"""Looks up one architecture decision record in all configured repositories, by its number or by its path."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence

from vouchgate.ingest.claims.bounds import TEXT_CHARACTERS
from vouchgate.ingest.claims.citation import Citation
from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.ingest.claims.source import Found, Missing, SourceReading, Standing
from vouchgate.ingest.sources.git.adr_files import AdrIndex, AdrRecord, read_blob, text_of
from vouchgate.ingest.sources.git.adr_status import adr_id
from vouchgate.ingest.sources.git.adr_text import parse
from vouchgate.ingest.sources.git.grounding import Grounding, missing_objects
from vouchgate.ingest.sources.git.refs import Tip
from vouchgate.ingest.sources.git.repository import Repository, SourceError
from vouchgate.ingest.sources.plain_text import plain

_log = logging.getLogger(__name__)

_MOST_LATER = 10  # later records that change one, whose texts are read


class FoundRecord(Frozen):
    """A record found in one repository. `data` is its text in bytes when it is the only one there; `later` are the
    records that change it, by their names, with their texts in bytes as far as they can be read."""

    repository: str
    record: AdrRecord
    superseded_by: str | None
    data: bytes
    later: Mapping[str, bytes]


class _Search:
    """What looking in one repository after the other has brought so far."""

    def __init__(self) -> None:
        self.found: list[FoundRecord] = []
        self.elsewhere: list[tuple[Standing, str]] = []  # files that do not count, in words
        self.failures: list[SourceError] = []
        self.without_records: list[SourceError] = []
        self.looked_in: list[str] = []


def read_by_number(
    groundings: Sequence[Grounding], citation: Citation, number: int, deadline: float
) -> SourceReading:
    """The record with this number. Raises SourceError when it could not be found out."""
    search = _Search()
    for grounding in groundings:
        try:
            with grounding.open(deadline) as repository:
                _look(grounding, repository, number, search)
        except SourceError as error:
            _log.info("%s in %s: %s", citation.key, grounding.path.name, error.detail)
            (search.without_records if error.code == "no_records" else search.failures).append(error)
    if search.found:
        return judge(citation, search.found)
    if search.elsewhere:
        standing, detail = search.elsewhere[0]
        return Found(
            citation=citation,
            source_id=adr_id(number),
            called=citation.name,
            form="record",
            standing=standing,
            detail=detail,
        )
    if search.failures:
        raise search.failures[0]
    if len(search.without_records) == len(groundings):
        raise search.without_records[0]
    names = ", ".join(grounding.path.name for grounding in groundings)
    looked_in = ", ".join(dict.fromkeys(search.looked_in))
    return Missing(citation=citation, detail=f"No {citation.name} exists in {names} (looked in {looked_in}).")


def _look(grounding: Grounding, repository: Repository, number: int, search: _Search) -> None:
    tip = grounding.tip(repository)
    index = None if tip is None else grounding.records(repository, tip)
    records = () if index is None else index.numbered(number)
    if index is not None and records:
        try:
            search.found += _found_in(repository, index, records)
        except SourceError as error:
            raise missing_objects(repository, error) from error
        return
    path = grounding.uncommitted(repository, index, number)
    if path is not None:
        search.elsewhere.append(not_counting(grounding, repository, tip, path))
        return
    if index is None or tip is None:
        raise SourceError("error", f"{repository.name} has no commits yet.")
    if (path := grounding.unmerged(repository, index, tip, number)) is not None:
        search.elsewhere.append(not_merged(repository, tip, path))
        return
    if index.links:
        raise SourceError(
            "not_supported",
            f"{plain(index.links[0])} in {repository.name} is a link or a submodule, which is not followed.",
        )
    if not index.has_records:
        detail = f"No directory of decision records was found in {repository.name}; looked in {plain(index.looked_in)}."
        raise SourceError("no_records", detail)
    search.looked_in.append(plain(index.looked_in))


def not_counting(
    grounding: Grounding, repository: Repository, tip: Tip | None, path: str
) -> tuple[Standing, str]:
    """What a file of the work tree is worth that is not at the protected ref, and a sentence on it."""
    why = grounding.where_else(repository, tip, path)
    standing = Standing.PROPOSED if why == "is not committed" else Standing.NOT_MERGED
    return standing, f"{plain(path)} in {repository.name} {why}, so nothing but a file vouches for it."


def not_merged(repository: Repository, tip: Tip, path: str) -> tuple[Standing, str]:
    """The same of a file that only a commit has which the protected ref has not."""
    says = f"{plain(path)} in {repository.name} is not merged into {tip.name}, so nothing but a file vouches for it."
    return Standing.NOT_MERGED, says


def record_at(repository: Repository, index: AdrIndex, record: AdrRecord) -> FoundRecord:
    """One record, for a citation that names its file. Raises SourceError."""
    return _found_in(repository, index, (record,))[0]


def _found_in(repository: Repository, index: AdrIndex, records: Sequence[AdrRecord]) -> list[FoundRecord]:
    first = records[0]
    alone = len({record.object_id for record in records}) == 1 and first.obstacle is None
    data = read_blob(repository, first.object_id) if alone else b""
    later = index.amending(first) if alone else {}
    texts: dict[str, bytes] = {}
    for name, record in later.items():
        readable = record is not None and record.obstacle is None and len(texts) < _MOST_LATER
        texts[name] = read_blob(repository, record.object_id) if record is not None and readable else b""
    return [
        FoundRecord(
            repository=repository.name,
            record=record,
            superseded_by=next(filter(None, map(index.superseding, sorted(record.numbers))), None),
            data=data,
            later=texts,
        )
        for record in records
    ]


def judge(citation: Citation, found: Sequence[FoundRecord]) -> Found:
    """What the records that a citation names come to. Raises SourceError for one that is not read."""
    first = found[0]
    name, source_id = citation.name, first.record.id
    by_number = citation.key.startswith("adr:")
    if by_number:
        source_id = adr_id(int(citation.key.removeprefix("adr:")))
    if len({adr.record.object_id for adr in found}) > 1:
        places = ", ".join(f"{plain(adr.record.path)} ({adr.repository})" for adr in found[:8])
        return Found(
            citation=citation,
            source_id=source_id,
            called=name,
            form="record",
            standing=Standing.AMBIGUOUS,
            detail=f"{len(found)} files are {name}: {places}.",
        )
    place = f"{plain(first.record.path)} in {first.repository}"
    if first.record.obstacle is not None:
        raise SourceError("not_supported", f"{place} {first.record.obstacle}.")
    page = parse(text_of(first.data) or "")
    standing, detail, successor = _standing(name, place, first, by_number=by_number)
    return Found(
        citation=citation,
        source_id=source_id,
        called=name,
        form="record",
        standing=standing,
        detail=detail,
        title=page.title,
        excerpt=page.excerpt,
        text=page.text,
        path=first.record.path,
        project=first.repository,
        amended_by=tuple(first.later),
        later=_later_text(first.later),
        digest=_digest(first),
        dated=page.dated,
        successor=successor,
        official=True,
    )


def _digest(found: FoundRecord) -> str:
    """Of the record; with the records that change it, so that a memory is looked at again when one comes."""
    hasher = hashlib.sha256(found.data)
    for name, data in found.later.items():
        hasher.update(name.encode() + hashlib.sha256(data).digest())
    return hasher.hexdigest()


def _later_text(later: Mapping[str, bytes]) -> str:
    pages = (parse(text_of(data) or "").text for data in later.values() if data)
    return "\n\n".join(pages)[:TEXT_CHARACTERS]


def _standing(
    name: str, place: str, adr: FoundRecord, *, by_number: bool
) -> tuple[Standing, str, str | None]:
    statement = adr.record.statement
    if by_number and len(adr.record.numbers) > 1:
        both = " and ".join(adr_id(number) for number in sorted(adr.record.numbers))
        return Standing.AMBIGUOUS, f"{place} goes by two numbers, {both}: file name and heading differ.", None
    says = f"“{statement.quoted}”" if statement and statement.quoted else "an empty status"
    standing = statement.standing if statement else Standing.IN_FORCE
    if standing is Standing.IN_FORCE and adr.superseded_by:
        return (
            Standing.SUPERSEDED,
            f"{adr.superseded_by} says that it supersedes {name}, though {place} does not say so.",
            adr.superseded_by,
        )
    changed = f" It is changed by {', '.join(adr.later)}." if adr.later else ""
    if statement is None:
        return standing, f"{name} is {place}, which states no status and counts as accepted.{changed}", None
    if standing is Standing.IN_FORCE:
        return standing, f"{name} is in force: {place} says {says}.{changed}", None
    return standing, f"{name} is not in force: {place} says {says}.", statement.successor
