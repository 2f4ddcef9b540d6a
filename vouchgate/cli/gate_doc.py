"""`vouchgate gate-doc`: do documents stand up to what they cite?"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from vouchgate.cli.lines.extract import content_of
from vouchgate.cli.output import USAGE, Failure, complain
from vouchgate.cli.progress import Progress
from vouchgate.documents import baseline as baselines
from vouchgate.documents import recording
from vouchgate.documents.beside import path_in, with_files_beside
from vouchgate.documents.changes import changes_since, only_changed
from vouchgate.documents.checking import check_document, read_sources
from vouchgate.documents.evidence import harvested
from vouchgate.documents.formats import github, junit, sarif, text
from vouchgate.documents.report import Report
from vouchgate.gate.gathering import SourceReader
from vouchgate.harvest.repository import open_harvest
from vouchgate.ingest.documents import Document, Unreadable, read_document
from vouchgate.ingest.documents.gate import KINDS, gate
from vouchgate.ingest.documents.verdict import everything_cited
from vouchgate.ingest.policy import load_policy
from vouchgate.ingest.sources.git.repository import SourceError
from vouchgate.settings import Settings
from vouchgate.sources.repositories import open_repositories, work_tree_here
from vouchgate.sources.setup import open_sources

ENDINGS = (".md", ".markdown", ".rst", ".html", ".htm", ".txt")
FORMATS: Mapping[str, Callable[[Report], str]] = {
    "text": text.write,
    "json": lambda report: json.dumps(report.as_json(), indent=1, ensure_ascii=False) + "\n",
    "sarif": sarif.write,
    "github": github.write,
    "junit": junit.write,
}


@dataclass(frozen=True, slots=True)
class Options:
    """What may be said beside the files."""

    format: str = "text"
    fail_on: tuple[str, ...] = KINDS
    allow_no_claims: bool = False
    only_marked: bool = False
    harvest: bool = False
    changed_since: str | None = None
    record: Path | None = None
    replay: Path | None = None
    cache: Path | None = None
    cache_hours: float = 24.0
    baseline: Path | None = None
    retry_seconds: float = 30.0


def run(files: Sequence[str], settings: Settings, options: Options) -> int:
    """Writes the report; the exit status as `ingest.documents.gate.gate` says it, or 2 when a document or an option
    cannot be used. Raises Failure."""
    logging.basicConfig(level=logging.ERROR)  # that a source could not be read is in the report
    _refuse(options)
    policy = load_policy(settings.policy)
    documents = _documents(files)
    if documents is None:
        return USAGE
    try:
        accepted = {} if options.baseline is None else baselines.read(options.baseline)
        now = datetime.now(UTC) if options.replay is None else recording.time_of(options.replay)
    except (baselines.BaselineError, recording.RecordingError) as error:
        raise Failure(str(error), USAGE) from error
    settings = settings if settings.repo else settings.model_copy(update={"repo": work_tree_here()})
    git = open_repositories(settings, needed=False)
    root = next((each for each in settings.repo if isinstance(each, Path)), None)
    documents = [with_files_beside(document, root) for document in documents]
    documents = [_selected(document, options, root) for document in documents]
    with ExitStack() as opened:
        source: SourceReader
        if options.replay is not None:
            source = recording.Replayed(options.replay)
        else:
            sources = opened.enter_context(open_sources(settings, policy, git))
            source = sources
            if options.cache is not None:
                kept = timedelta(hours=options.cache_hours)
                source = recording.Cached(options.cache, sources, kept, now)
        runner = opened.enter_context(asyncio.Runner())
        if options.replay is None:
            opened.callback(lambda: runner.run(sources.stop_reading()))
        progress = opened.enter_context(Progress("sources read"))
        cited = everything_cited(documents)
        wait = 0.0 if options.replay else options.retry_seconds
        try:
            readings = runner.run(read_sources(source, cited, again_after=wait, progress=progress))
        except recording.RecordingError as error:
            raise Failure(str(error), USAGE) from error
        if options.harvest and options.replay is None:
            search = opened.enter_context(open_harvest(git))
            if search is not None:
                documents, found = runner.run(harvested(documents, search, source, policy, root))
                readings |= found
    if options.record is not None:
        recording.write(options.record, readings, now)
    checked = tuple(
        check_document(each, readings, policy, now, baseline=accepted, own=path_in(each.name, root))
        for each in documents
    )
    gated = gate(checked, policy, fail_on=options.fail_on, allow_no_claims=options.allow_no_claims)
    report = Report(checked, gated, now, policy.digest)
    print(FORMATS[options.format](report), end="", flush=True)
    return gated.status


def _refuse(options: Options) -> None:
    if options.format not in FORMATS:
        raise Failure(f"--format {options.format}: there are {', '.join(FORMATS)}", USAGE)
    if unknown := set(options.fail_on) - set(KINDS):
        raise Failure(f"--fail-on {', '.join(sorted(unknown))}: there are {', '.join(KINDS)}", USAGE)
    if options.replay is not None and (options.record or options.cache):
        raise Failure("--replay reads a recording and nothing else: leave --record and --cache out", USAGE)


def _documents(files: Sequence[str]) -> list[Document] | None:
    """The documents, of folders those in them; None, and a line for each, when one cannot be read."""
    documents, readable = [], True
    for file in _named(files):
        try:
            documents.append(read_document(file, content_of(file)))
        except Unreadable as error:
            complain(f"{file} cannot be read: {error}")
            readable = False
    if readable and not documents:
        raise Failure(f"there is no document here: {', '.join(files)}", USAGE)
    return documents if readable else None


def _named(files: Sequence[str]) -> Iterator[str]:
    for file in files:
        if file != "-" and Path(file).is_dir():
            inside = (each for each in Path(file).rglob("*") if each.suffix.lower() in ENDINGS)
            yield from sorted(str(each) for each in inside if each.is_file() and not each.is_symlink())
        else:
            yield file


def _selected(document: Document, options: Options, root: Path | None) -> Document:
    if options.only_marked:
        marked = tuple(claim for claim in document.claims if claim.marked)
        document = replace(document, claims=marked)
    if options.changed_since is None:
        return document
    if root is None:
        raise Failure("--changed-since needs a git work tree: give --repo DIR", USAGE)
    try:
        return only_changed(document, changes_since(options.changed_since, document, root))
    except (SourceError, ValueError) as error:
        raise Failure(f"--changed-since {options.changed_since}: {error}", USAGE) from error
