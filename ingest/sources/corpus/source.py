"""Reads and searches the documents of corpora: folders of Markdown, text and HTML that the operator named.

A document of a corpus that the operator marked official may make a FACT, like a record; one of any other corpus is a
hint, because nothing keeps agents from writing it, and so is no document in which agents keep what they remember.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from vouchgate.ingest.citations.kinds.corpus import key_of, parse_key
from vouchgate.ingest.claims.citation import Citation, CitationType
from vouchgate.ingest.claims.source import (
    EXCERPT_CHARACTERS,
    Found,
    Missing,
    SourceReading,
    Standing,
    Unreachable,
)
from vouchgate.ingest.sources.answers import NoAnswer
from vouchgate.ingest.sources.corpus.folder import Listing, list_folder, read_document
from vouchgate.ingest.sources.passage_index import FoundPassage, PassageIndex, Search
from vouchgate.ingest.sources.patterns import MEMORY_FILES, PathPatterns
from vouchgate.ingest.sources.web.extractor import Extractor, NotRead
from vouchgate.ingest.sources.web.page import ContentKind, Page, kind_of, one_line, read_plain

_log = logging.getLogger(__name__)

FRESH_SECONDS = 3.0  # how long a listing is used
# Of the time between two listings, what a listing may take: one of a hundred thousand files takes half a second.
_SHARE = 0.05
_PAGES = (".html", ".htm", ".xhtml")


class Corpus(NamedTuple):
    """A folder that the operator named. `official` says that its documents may make a FACT."""

    name: str
    folder: Path
    official: bool = False


class CorpusSource:
    """The corpora of a service. Safe to call from several threads; `close` it when done. `memory_files` are patterns of
    documents that never count, and `timeout_seconds` bounds one reading."""

    def __init__(
        self,
        corpora: Sequence[Corpus],
        extractor: Extractor,
        *,
        memory_files: Sequence[str] = MEMORY_FILES,
        timeout_seconds: float = 5.0,
    ) -> None:
        memory = PathPatterns(memory_files, any_case=True)
        # Official ones first: of two passages that are as good, one that may vouch is looked at.
        ordered = sorted(corpora, key=lambda one: not one.official)
        self._shelves = {one.name: _Shelf(one, extractor, memory) for one in ordered}
        self._timeout = timeout_seconds

    def close(self) -> None:
        """Frees the indexes."""
        for shelf in self._shelves.values():
            shelf.close()

    def __len__(self) -> int:
        """How many corpora there are."""
        return len(self._shelves)

    def read(self, citation: Citation) -> SourceReading:
        """Looks up one `corpus` citation. Blocking. Never raises: what goes wrong is Unreachable and a log line."""
        try:
            return self._read(citation, time.monotonic() + self._timeout)
        except NoAnswer as none:
            _log.warning("%a could not be read (%s): %s", citation.key, none.code, none.detail)
            return Unreachable(citation=citation, code=none.code, detail=none.detail)
        except Exception:  # noqa: BLE001  (whatever goes wrong must become "could not be found out")
            _log.exception("reading %a failed", citation.key)
            return Unreachable(citation=citation, code="error", detail="The corpus could not be read.")

    def search(self, words: str, most: int, seconds: float) -> Search:
        """The passages of every corpus that have most of the words. Blocking. Each corpus has an equal share of what is
        left of the time; what was read of one until then stays, so that the next search gets further."""
        until = time.monotonic() + seconds
        found: list[FoundPassage] = []
        failures: list[str] = []
        for number, shelf in enumerate(self._shelves.values()):
            share = (until - time.monotonic()) / (len(self._shelves) - number)
            try:
                found += shelf.search(words, most, time.monotonic() + share)
            except NoAnswer as none:
                failures.append(none.detail)
        return Search(tuple(found), tuple(failures))

    def count(self, name: str, seconds: float) -> int:
        """How many documents a corpus has. Raises NoAnswer."""
        return len(self._shelves[name].list(time.monotonic() + seconds).documents)

    def digest(self, seconds: float) -> str:
        """What changes when a document of any corpus does, sha256 hex. Raises NoAnswer."""
        deadline = time.monotonic() + seconds
        listings = {
            name: sorted(each.list(deadline).documents.items()) for name, each in self._shelves.items()
        }
        return hashlib.sha256(repr(sorted(listings.items())).encode()).hexdigest()

    def _read(self, citation: Citation, deadline: float) -> SourceReading:
        named = parse_key(citation.key)
        if citation.type is not CitationType.CORPUS or named is None:
            raise NoAnswer("not_supported", "This is not a document of a corpus.")
        name, path = named
        shelf = self._shelves.get(name)
        if shelf is None:
            raise NoAnswer("not_supported", f"No corpus called {name} is configured.")
        page = shelf.read(path, deadline)
        if page is None:
            return Missing(citation=citation, detail=f"{path} does not exist in the corpus {name}.")
        standing, says = Standing.IN_FORCE, f"{citation.value} is in the official corpus {name}."
        if not shelf.corpus.official:
            standing = Standing.HINT
            says = f"{citation.value} is in a corpus that is not marked official, and vouches for nothing."
        elif shelf.memory.match(path):
            standing = Standing.MEMORY
            says = f"{citation.value} is a file in which agents keep what they remember, and vouches for nothing."
        return Found(
            citation=citation,
            source_id=citation.key,
            form="file",
            standing=standing,
            detail=says,
            title=one_line(page.title or path),
            excerpt=page.text[:EXCERPT_CHARACTERS],
            text=page.text,
            digest=hashlib.sha256(page.text.encode()).hexdigest(),
            dated=page.dated,
            official=standing is Standing.IN_FORCE,
            cut=page.cut,
        )


class _Shelf:
    """One corpus and its index, which follows the files by size, time and inode."""

    def __init__(self, corpus: Corpus, extractor: Extractor, memory: PathPatterns) -> None:
        self.corpus = corpus
        self.memory = memory
        self._extractor = extractor
        self._lock = Lock()
        self._index = PassageIndex()
        self._fresh_until = 0.0
        self._said: object = None

    def close(self) -> None:
        self._index.close()

    def read(self, path: str, deadline: float) -> Page | None:
        """What a document says, with its date; None when there is none. Raises NoAnswer."""
        file = read_document(self.corpus.folder, path)
        if file is None:
            return None
        if path.lower().endswith(_PAGES):
            page = self._read_page(path, file.data, deadline)
        elif kind_of("text/plain", file.data[:4096]) is ContentKind.NONE:
            raise NoAnswer("not_supported", f"{path} is not text.")
        else:
            page = read_plain(file.data, "text/plain")
        return page if page.dated else replace(page, dated=file.changed)

    def list(self, deadline: float) -> Listing:
        """What is there now, but for what agents keep there; that some is left out is a line in the log. Raises
        NoAnswer."""
        listing = list_folder(self.corpus.folder, deadline)
        if listing.left_out != self._said:
            self._said = listing.left_out
            for why, count in listing.left_out:
                _log.warning("not read of the corpus %s: %d, %s", self.corpus.name, count, why)
        counted = {path: at for path, at in listing.documents.items() if not self.memory.match(path)}
        return listing._replace(documents=counted)

    def search(self, words: str, most: int, deadline: float) -> Iterator[FoundPassage]:
        """The passages that have most of the words; a document is called as it is cited. Raises NoAnswer."""
        name = self.corpus.name
        if not self._lock.acquire(timeout=max(0.0, deadline - time.monotonic())):
            raise NoAnswer("timeout", f"Reading the corpus {name} took too long.")
        try:
            if time.monotonic() > self._fresh_until:
                self._refresh(deadline)
        finally:
            self._lock.release()
        for passage in self._index.search(words, most):
            document = key_of(name, passage.document)
            yield FoundPassage("", passage._replace(document=document), self.corpus.official)

    def _refresh(self, deadline: float) -> None:
        began = time.monotonic()
        listing = self.list(deadline)
        took = time.monotonic() - began
        odd: list[str] = []

        def read(paths: Sequence[str]) -> Iterator[tuple[str, str]]:
            for path in paths:
                if time.monotonic() > deadline:
                    raise NoAnswer("timeout", f"Reading the corpus {self.corpus.name} took too long.")
                try:
                    page = self.read(path, deadline)
                except NoAnswer as none:
                    if none.code == "timeout":
                        raise
                    odd.append(none.detail)
                    if none.code == "not_supported":  # else it is tried again
                        yield path, ""
                    continue
                if page is not None:
                    yield path, page.text

        try:
            self._index.follow(listing.documents, read)
        finally:
            if odd:
                _log.warning(
                    "not searched of the corpus %s: %d, such as %s", self.corpus.name, len(odd), odd[0]
                )
        self._fresh_until = time.monotonic() + max(FRESH_SECONDS, took / _SHARE)

    def _read_page(self, path: str, data: bytes, deadline: float) -> Page:
        now = datetime.now(UTC)
        job = None
        try:
            job = self._extractor.submit(data, ContentKind.HTML, url="", content_type="text/html", now=now)
            return job.result(max(0.0, deadline - time.monotonic()))
        except NotRead as error:
            code = "timeout" if error.code == "timeout" else "not_supported"
            raise NoAnswer(code, f"{path} could not be read: {error.reason}.") from error
        except TimeoutError as error:
            raise NoAnswer("timeout", f"Reading {path} took too long.") from error
        finally:
            if job is not None:
                job.cancel()  # of one that is done, this does nothing
