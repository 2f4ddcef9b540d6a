"""Reads one file, or lines of it, or what code defines, as it stands at the protected ref of configured repositories.

The path of a decision record is that record, also with lines or a commit. What is cited at a commit is read there, and
counts as long as it still stands so in the file: who decides by it would decide by what was true once.
"""

from __future__ import annotations

import hashlib
import json
import logging
import subprocess
import sys
import unicodedata
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from vouchgate.ingest.citations.kinds.path import PathKey, parse_key
from vouchgate.ingest.claims.bounds import TEXT_CHARACTERS
from vouchgate.ingest.claims.citation import Citation, CitationType
from vouchgate.ingest.claims.source import EXCERPT_CHARACTERS, Found, Missing, SourceReading, Standing
from vouchgate.ingest.sources.git.adr_files import LARGEST, NO_SIZE, read_blob, read_blobs, text_of
from vouchgate.ingest.sources.git.adr_text import is_record
from vouchgate.ingest.sources.git.definitions import PROGRAM, Definition
from vouchgate.ingest.sources.git.grounding import Grounding, missing_objects
from vouchgate.ingest.sources.git.prose import ENDINGS
from vouchgate.ingest.sources.git.records import FoundRecord, judge, not_counting, not_merged, record_at
from vouchgate.ingest.sources.git.refs import Tip, added_elsewhere, is_ancestor
from vouchgate.ingest.sources.git.repository import Repository, SourceError
from vouchgate.ingest.sources.plain_text import plain

_log = logging.getLogger(__name__)

AROUND = 3  # lines on each side of those cited that are read with them
MOST_CODE = 100  # files that have a name which is looked for
LARGEST_CODE = 262_144  # bytes of one that is read
_BETWEEN = "\n\n---\n\n"  # so that no statement is found in two facts put together
# Names of files alone, whatever these hold, and whatever the repository's settings and attributes say.
_GREP = ("grep", "-l", "-z", "-a", "-F", "-w", "--full-name", "--no-recurse-submodules", "--threads=1", "-e")
_STORED_ELSEWHERE = b"version https://git-lfs.github.com/spec/"
_NOT_FILES = {
    "120000": "is a symbolic link, which is not followed",
    "160000": "is a submodule, which is not read",
}


class _Absent(NamedTuple):
    """It is not in one repository; why, as a sentence."""

    detail: str


class _Looked(NamedTuple):
    """Where a citation is looked up: one repository, open, with what its protected ref points at."""

    grounding: Grounding
    repository: Repository
    tip: Tip
    citation: Citation
    key: PathKey


_Result = Found | FoundRecord | _Absent


class _Lines(NamedTuple):
    """What is read of a file: `cited` is what the citation names, `text` that with what stands around it."""

    cited: str
    text: str


def read_file(groundings: Sequence[Grounding], citation: Citation, deadline: float) -> SourceReading:
    """The file, lines or definition that a citation names. Raises SourceError when it could not be found out."""
    key = parse_key(citation.key)
    if key is None and citation.type is not CitationType.SYMBOL:
        raise SourceError("not_supported", "This is not a path inside a repository.")
    found: list[Found] = []
    records: list[FoundRecord] = []
    absent: list[_Absent] = []
    failures: list[SourceError] = []
    for grounding in groundings:
        try:
            with grounding.open(deadline) as repository:
                result = _look(grounding, repository, citation, key)
        except SourceError as error:
            _log.info("%s in %s: %s", citation.key, grounding.path.name, error.detail)
            failures.append(error)
            continue
        if isinstance(result, Found):
            found.append(result)
        elif isinstance(result, FoundRecord):
            records.append(result)
        else:
            absent.append(result)
    if records and not found:
        return judge(citation, records)
    if records or found:
        return _only(citation, [*found, *([judge(citation, records)] if records else [])])
    if failures:
        raise failures[0]
    return Missing(citation=citation, detail=" ".join(each.detail for each in absent[:5]))


def _only(citation: Citation, found: Sequence[Found]) -> Found:
    """The one that counts; two that say different things are none."""
    merged = [each for each in found if each.standing not in (Standing.NOT_MERGED, Standing.PROPOSED)]
    candidates = merged or found
    if len({each.digest for each in candidates}) == 1:
        return candidates[0]
    return Found(
        citation=citation,
        source_id=candidates[0].source_id,
        called=citation.name,
        form="file",
        standing=Standing.AMBIGUOUS,
        detail=f"{len(candidates)} repositories have {citation.name}, and not the same.",
    )


def _look(grounding: Grounding, repository: Repository, citation: Citation, key: PathKey | None) -> _Result:
    tip = grounding.tip(repository)
    if tip is None:
        raise SourceError("error", f"{repository.name} has no commits yet.")
    try:
        if key is None:
            return _symbol(grounding, repository, citation, tip)
        commit = (
            tip.commit if key.commit is None else _commit(grounding, repository, citation, tip, key.commit)
        )
        if not isinstance(commit, str):
            return commit
        looked, whole = (
            _Looked(grounding, repository, tip, citation, key),
            key.commit is None and key.first is None,
        )
        if not whole and not is_record(key.path):
            return _read(looked, commit)
        return _read_record(looked, commit, whole=whole)
    except SourceError as error:
        raise missing_objects(repository, error) from error


def _read_record(looked: _Looked, commit: str, *, whole: bool) -> _Result:
    """The record at a path, or with that file name wherever it lies; else the file there. `whole`: none of its lines,
    and no commit, are named."""
    grounding, repository, tip, citation, key = looked
    index = grounding.records(repository, tip)
    if "/" not in key.path and _data(repository, commit, key.path) is None:
        called = index.called(key.path)
        if len(called) > 1:
            detail = f"{len(called)} records of {repository.name} have the file name {citation.name}."
            return _none_that_counts(citation, Standing.AMBIGUOUS, detail)
        if called:
            key = key._replace(path=called[0].path)
    record = index.at(key.path)
    if record is not None and whole:
        return record_at(repository, index, record)
    read = _read(looked._replace(key=key), commit)
    if record is None or not isinstance(read, Found) or read.standing is not Standing.IN_FORCE:
        return read
    return record_at(repository, index, record)  # its lines say what the record as a whole decides


def _commit(
    grounding: Grounding, repository: Repository, citation: Citation, tip: Tip, prefix: str
) -> str | Found | _Absent:
    """The commit at which a file is cited, where it is one that counts."""
    commits = grounding.commits.candidates(repository, prefix).commits
    if not commits:
        return _Absent(f"No commit {prefix} exists in {repository.name}.")
    if len(commits) > 1:
        detail = f"{prefix} is short for {len(commits)} commits of {repository.name}."
        return _none_that_counts(citation, Standing.AMBIGUOUS, detail)
    if not is_ancestor(repository, commits[0], tip.commit):
        detail = f"Commit {prefix} is not merged into {tip.name} in {repository.name}."
        return _none_that_counts(citation, Standing.NOT_MERGED, detail)
    return commits[0]


def _none_that_counts(citation: Citation, standing: Standing, detail: str) -> Found:
    return Found(
        citation=citation,
        source_id=citation.key.partition(":")[2],
        called=citation.name,
        form="file",
        standing=standing,
        detail=detail,
    )


def _read(looked: _Looked, commit: str) -> Found | _Absent:
    grounding, repository, tip, citation, key = looked
    data = _data(repository, commit, key.path)
    where = f"{plain(key.path)} in {repository.name}"
    if data is None:
        return _not_there(looked)
    lines = _lines(where, data, key)
    if lines is None:
        there = plain(text_of(data) or "").removesuffix("\n").count("\n") + 1
        return _Absent(f"{where} has {there} lines.")
    standing, says = (
        Standing.IN_FORCE,
        f"{citation.name} is in {repository.name} at {tip.name}.",
    )
    official = grounding.official.match(key.path)
    if key.commit is not None:
        now = _data(repository, tip.commit, key.path)
        official = False
        stands = plain(text_of(now or b"") or "")
        if lines.text not in stands:
            lines = lines._replace(text=lines.cited)  # what stands around it there may be no longer so
        if now is None or lines.cited not in stands:
            standing = Standing.SUPERSEDED
            says = f"{where} does not say at {tip.name} what it said at {key.commit}."
    if grounding.memory.match(key.path):
        standing, official = Standing.MEMORY, False
        says = f"{where} is a file in which agents keep what they remember, and vouches for nothing."
    return Found(
        citation=citation,
        source_id=citation.key.removeprefix("path:"),
        called=citation.name,
        form="file",
        standing=standing,
        detail=says,
        title=plain(key.path),
        project=repository.name,
        excerpt=lines.text[:EXCERPT_CHARACTERS],
        text=lines.text,
        digest=hashlib.sha256(lines.cited.encode()).hexdigest(),
        official=official,
    )


def _not_there(looked: _Looked) -> Found | _Absent:
    grounding, repository, tip, citation, key = looked
    missing = _Absent(f"{plain(key.path)} does not exist in {repository.name} at {tip.name}.")
    if key.commit is not None:
        return missing
    root = None if repository.work_tree is None else repository.work_tree.resolve()
    file = None if root is None else root / key.path
    if root is not None and file is not None and file.resolve().is_relative_to(root) and file.is_file():
        return _none_that_counts(citation, *not_counting(grounding, repository, tip, key.path))
    if key.path in added_elsewhere(repository, tip, key.path):
        return _none_that_counts(citation, *not_merged(repository, tip, key.path))
    return missing


def _data(repository: Repository, commit: str, path: str) -> bytes | None:
    """The bytes of the file at this path in this commit; None when there is none. Raises SourceError for what is there
    and not read."""
    entry = _entry(repository, commit, path)
    if entry is None:
        # A directory above it may be a link or a submodule, behind which nobody looks.
        for parent in reversed(PurePosixPath(path).parents):
            if str(parent) != "." and _entry(repository, commit, str(parent)) is None:
                break
        return None
    kind, object_id, size = entry
    if kind != "blob":
        return None
    if int(size) > LARGEST:
        raise SourceError("not_supported", f"{plain(path)} in {repository.name} is larger than 1 MiB.")
    return read_blob(repository, object_id)


def _entry(repository: Repository, commit: str, path: str) -> tuple[str, str, str] | None:
    """Kind, id and size of what is at this path; None when nothing is. Raises SourceError for a link or a submodule."""
    listed = repository.ask(
        "ls-tree", "-l", "-z", "--full-tree", commit, "--", path, lacks=f" {NO_SIZE}\t".encode()
    )
    description, _, name = listed.decode(errors="surrogateescape").partition("\x00")[0].partition("\t")
    if not name:
        return None
    mode, kind, object_id, size = description.split()
    if mode in _NOT_FILES:
        raise SourceError("not_supported", f"{plain(name)} in {repository.name} {_NOT_FILES[mode]}.")
    if size == NO_SIZE:
        raise SourceError("error", f"{plain(name)} of {repository.name} is not in its object store.")
    return kind, object_id, size


def _lines(where: str, data: bytes, key: PathKey) -> _Lines | None:
    """The lines cited, or all; None when the file has not as many. Raises SourceError for what is no text, or too much
    of it."""
    text = None if data.startswith(_STORED_ELSEWHERE) else text_of(data)
    if text is None:
        raise SourceError("not_supported", f"{where} is not text.")
    text = plain(text)
    cited, around = text, text
    if key.first is not None and key.last is not None:
        lines = text.removesuffix("\n").split("\n")
        if key.last > len(lines):
            return None
        cited = "\n".join(lines[key.first - 1 : key.last])
        if not cited.strip():
            raise SourceError("not_supported", f"There is nothing in the lines of {where} that are cited.")
        around = "\n".join(lines[max(0, key.first - 1 - AROUND) : key.last + AROUND])
    if len(around) > TEXT_CHARACTERS:
        detail = f"{where} is longer than {TEXT_CHARACTERS:,} characters: cite the lines."
        raise SourceError("not_supported", detail)
    return _Lines(cited, around)


def _symbol(grounding: Grounding, repository: Repository, citation: Citation, tip: Tip) -> Found | _Absent:
    where = f"{repository.name} at {tip.name}"
    found = _find(grounding, repository, citation, tip.commit)
    if not found:
        head = repository.run("rev-parse", "-q", "--verify", "HEAD^{commit}", ok=(0, 1)).decode().strip()
        if head not in ("", tip.commit) and _find(grounding, repository, citation, head):
            says = f"{citation.name} is not merged into {where}."
            return _none_that_counts(citation, Standing.NOT_MERGED, says)
        return _Absent(f"No definition of {citation.name} exists in {where}.")
    one, paths = found[0], [each.path for each in found]
    places = plain(", ".join(paths[:8]))
    if any(each.source != one.source for each in found):
        return _none_that_counts(citation, Standing.AMBIGUOUS, f"{where} has several, in {places}.")
    last = one.name.rpartition(".")[2]
    text = plain(_BETWEEN.join([*(f"`{last}` is defined in {path}." for path in paths), *one.facts]))
    return Found(
        citation=citation,
        source_id=plain(f"{one.path}::{last}"),
        called=citation.name,
        form="file",
        standing=Standing.IN_FORCE,
        detail=f"{citation.name} is in {where}: {places}.",
        title=plain(f"{last}, {one.name} in {one.path}"),
        project=repository.name,
        excerpt=text[:EXCERPT_CHARACTERS],
        text=text[:TEXT_CHARACTERS],
        digest=hashlib.sha256("\n".join([*paths, one.source]).encode(errors="replace")).hexdigest(),
        official=all(map(grounding.official.match, paths)),
    )


def _find(grounding: Grounding, repository: Repository, citation: Citation, commit: str) -> list[Definition]:
    """What a commit defines under a name, but for prose and files in which agents keep what they remember."""
    file, _, name = citation.key.removeprefix("symbol:").rpartition("::")
    last = name.rpartition(".")[2]
    _, listed, complaint = repository.call(*_GREP, last, commit, "--", *([file] if file else []), ok=(0, 1))
    if "error:" in complaint:  # it goes past what is not here
        raise SourceError("error", f"Not every file of {repository.name} can be read.")
    named = listed.decode(errors="surrogateescape").replace(f"{commit}:", "").split("\x00")[:-1]
    code = (each for each in named if not each.lower().endswith(ENDINGS))
    paths = [each for each in code if not grounding.memory.match(each)]
    if len(paths) > MOST_CODE:
        raise SourceError("not_supported", f"{len(paths)} files of {repository.name} have {last}: name one.")
    if not paths:
        return []
    tree = repository.run("ls-tree", "-z", "-l", "--full-tree", commit, "--", *paths)
    rows = [row.split(None, 4) for row in tree.decode(errors="surrogateescape").split("\x00")[:-1]]
    ids = {path: object_id for _, _, object_id, size, path in rows if int(size) <= LARGEST_CODE}
    data = dict(read_blobs(repository, list({*ids.values()})))
    texts = {path: plain(text_of(data[each]) or "") for path, each in ids.items()}
    # Read in a process of its own, which a hostile file may break.
    asked = json.dumps([unicodedata.normalize("NFKC", last), texts]).encode()
    program, left = [sys.executable, "-I", "-S", PROGRAM], repository.remaining()
    try:
        done = subprocess.run(program, input=asked, capture_output=True, check=True, timeout=left, env={})
        read = [Definition(*each) for each in json.loads(done.stdout)]
    except (subprocess.SubprocessError, ValueError) as error:
        repository.remaining()
        raise SourceError("not_supported", f"Code of {repository.name} breaks what reads it.") from error
    found = [each for each in read if f".{each.name}".endswith(f".{name}")]
    unread = [path for path in paths if path not in ids] + [each.path for each in read if not each.name]
    if unread and not found:
        detail = f"{plain(unread[0])} in {repository.name} is not understood: cite lines of it."
        raise SourceError("not_supported", detail)
    return found
