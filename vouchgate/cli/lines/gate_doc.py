"""`vouchgate gate-doc`: do documents stand up to what they cite?"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path

from vouchgate.cli.output import USAGE, Failure, complain
from vouchgate.cli.progress import Progress
from vouchgate.documents import baseline as baselines
from vouchgate.documents import recording
from vouchgate.documents.beside import path_in, with_files_beside, work_tree_of
from vouchgate.documents.changes import Changes, only_changed
from vouchgate.documents.checking import check_document, read_sources
from vouchgate.documents.evidence import harvested
from vouchgate.documents.files import content_of, documents_in
from vouchgate.documents.formats import github, html, junit, sarif, text
from vouchgate.documents.report import Report
from vouchgate.gate.examiner import Harvest
from vouchgate.gate.gathering import SourceReader
from vouchgate.harvest.documents import open_harvest
from vouchgate.ingest.claims.citation import Citation
from vouchgate.ingest.claims.source import SourceReading
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.documents import Document, Unreadable, read_document
from vouchgate.ingest.documents.gate import KINDS, gate
from vouchgate.ingest.documents.types import Slip
from vouchgate.ingest.documents.verdict import everything_cited
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.sources.git.repository import SourceError
from vouchgate.ingest.sources.git.source import GitSource
from vouchgate.ingest.support.prepared import PreparedTexts
from vouchgate.settings import Settings
from vouchgate.sources.repositories import open_repositories, work_tree_here
from vouchgate.sources.setup import open_sources

QUIET_SECONDS = 2.0  # before a run says how far it is
_READY_CHARACTERS = 1_500_000  # of texts of sources that are ready at a time: some 150 MB
FORMATS: Mapping[str, Callable[[Report], str]] = {
    "text": text.write,
    "json": lambda report: json.dumps(report.as_json(), indent=1, ensure_ascii=False) + "\n",
    "sarif": sarif.write,
    "html": html.write,
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
    replay_links: Path | None = None
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
    for option, folder in (("--record", options.record), ("--cache", options.cache)):
        if folder is not None:
            _try_to_write(option, folder)
    documents = _documents(files)
    if documents is None:
        return USAGE
    try:
        accepted = {} if options.baseline is None else baselines.read(options.baseline)
        replayed = options.replay or options.replay_links
        now = datetime.now(UTC) if replayed is None else recording.time_of(replayed)
    except (baselines.BaselineError, recording.RecordingError) as error:
        raise Failure(str(error), USAGE) from error
    settings = settings if settings.repo else settings.model_copy(update={"repo": work_tree_here()})
    git = open_repositories(settings, needed=False)
    roots = [each for each in settings.repo if isinstance(each, Path)]
    documents = [with_files_beside(each, work_tree_of(each.name, roots)) for each in documents]
    empty = not any(document.claims for document in documents)
    documents = _selected(documents, options, roots, git)
    try:
        documents, readings = _read(documents, _World(settings, policy, git, roots, now), options)
    except recording.RecordingError as error:
        raise Failure(str(error), USAGE) from error
    texts = PreparedTexts(_READY_CHARACTERS)  # documents of one repository cite the same records
    checked = tuple(
        check_document(
            each,
            readings,
            policy,
            now,
            baseline=accepted,
            own=path_in(each.name, work_tree_of(each.name, roots)),
            texts=texts,
        )
        for each in documents
    )
    allowed = options.allow_no_claims or (options.changed_since is not None and not empty)
    gated = gate(checked, policy, fail_on=options.fail_on, allow_no_claims=allowed)
    report = Report(checked, gated, now, policy.digest)
    sys.stdout.buffer.write(FORMATS[options.format](report).encode(errors="replace"))
    sys.stdout.buffer.flush()
    return gated.status


@dataclass(frozen=True, slots=True)
class _World:
    """What a run reads with; `roots` are the tops of the repositories that are work trees."""

    settings: Settings
    policy: Policy
    git: GitSource
    roots: Sequence[Path]
    now: datetime


def _read(
    documents: list[Document], world: _World, options: Options
) -> tuple[list[Document], dict[str, SourceReading]]:
    """What the documents cite, read; with `--harvest`, they refer to what was found for them too. Raises
    RecordingError."""
    folder = options.replay or options.replay_links
    with ExitStack() as opened:
        runner = opened.enter_context(asyncio.Runner())
        progress, started = opened.enter_context(Progress("sources read")), time.monotonic()

        def tell(done: int, of: int) -> None:
            if time.monotonic() - started > QUIET_SECONDS:
                progress(done, of)

        source: SourceReader
        searches: Sequence[Harvest] = ()
        if options.replay is not None:
            source = replayed = recording.Replayed(options.replay)
            searches = (replayed,)
        else:
            sources = opened.enter_context(open_sources(world.settings, world.policy, world.git))
            opened.callback(lambda: runner.run(sources.stop_reading()))
            source = sources
            if options.replay_links is not None:
                source = recording.Replayed(options.replay_links, sources)
            elif options.cache is not None:
                source = recording.Cached(
                    options.cache, sources, timedelta(hours=options.cache_hours), world.now
                )
            if options.harvest:
                searches = opened.enter_context(open_harvest(world.policy, sources.corpora, world.git))
        readings = runner.run(
            read_sources(
                source,
                everything_cited(documents),
                per_host=world.policy.web.per_host,
                again_after=0.0 if folder else options.retry_seconds,
                progress=tell,
            )
        )
        found: dict[str, tuple[Citation, ...]] = {}
        if options.harvest:
            documents, more, found = runner.run(
                harvested(documents, searches, source, world.policy, world.roots)
            )
            readings = {**more, **readings}
        if options.record is not None:
            recording.write(options.record, readings, found, world.now)
    return documents, readings


def _refuse(options: Options) -> None:
    if options.format not in FORMATS:
        raise Failure(f"--format {options.format}: there are {', '.join(FORMATS)}", USAGE)
    if not options.fail_on:
        raise Failure(f"--fail-on names nothing, so that all would pass: there are {', '.join(KINDS)}", USAGE)
    if unknown := set(options.fail_on) - set(KINDS):
        raise Failure(f"--fail-on {', '.join(sorted(unknown))}: there are {', '.join(KINDS)}", USAGE)
    if sum(each is not None for each in (options.replay, options.replay_links, options.record)) > 1:
        raise Failure("--replay, --replay-links and --record: give one of them", USAGE)


def _try_to_write(option: str, folder: Path) -> None:
    """Before anything is read, which may take long. Raises Failure."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise Failure(f"{option} {folder} cannot be written: {error.strerror}", USAGE) from error


def _documents(files: Sequence[str]) -> list[Document] | None:
    """The documents, of folders those in them; None, and a line for each, when one cannot be read."""
    named: dict[str, str] = {}  # files by their names: one that is given twice is one
    documents, readable = [], True
    for given in files:
        try:
            for file in _named(given):
                named.setdefault(_name(file), file)
        except Unreadable as error:
            complain(f"{given} cannot be read: {error}")
            readable = False
    for name, file in named.items():
        try:
            documents.append(read_document(name, content_of(file)))
        except Unreadable as error:
            complain(f"{file} cannot be read: {error}")
            readable = False
    if readable and not documents:
        raise Failure(f"there is no document here: {', '.join(files)}", USAGE)
    return documents if readable else None


def _name(file: str) -> str:
    """A file below the current directory by its path from there, however it was given: so reports, baselines and code
    hosts call it."""
    with suppress(ValueError):
        if file != "-":
            return Path(os.path.abspath(file)).relative_to(Path.cwd()).as_posix()  # noqa: PTH100  (no link is followed)
    return file


def _named(file: str) -> list[str]:
    """The file, or those in the folder. Raises Unreadable."""
    try:
        is_folder = file != "-" and Path(file).is_dir()
    except OSError as error:  # it lies in a folder that may not be entered
        raise Unreadable(error.strerror or "no such file") from error
    return list(map(str, documents_in(Path(file)))) if is_folder else [file]


def _selected(
    documents: Sequence[Document], options: Options, roots: Sequence[Path], git: GitSource
) -> list[Document]:
    """The documents with those claims alone that the options ask for."""
    chosen = [_only_marked(each) if options.only_marked else each for each in documents]
    if options.changed_since is None:
        return chosen
    if not roots:
        raise Failure("--changed-since needs a git work tree: give --repo DIR", USAGE)
    since = cache(partial(Changes, options.changed_since, git=git))
    try:
        lie_in = ((each, work_tree_of(each.name, roots)) for each in chosen)
        # One that lies in none of them was nowhere before.
        return [only_changed(each, since(root if root in roots else roots[0])) for each, root in lie_in]
    except (SourceError, ValueError) as error:
        raise Failure(f"--changed-since {options.changed_since}: {error}", USAGE) from error


def _only_marked(document: Document) -> Document:
    marked = tuple(claim for claim in document.claims if claim.marked)
    asked = tuple(each for each in document.findings if each.slip is Slip.CITATION_NEEDED)
    return replace(document, claims=marked, findings=asked)
