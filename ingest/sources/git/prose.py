"""The prose of a repository at its protected ref, searched by words. Code is not in it, nor files in which agents keep
what they remember, nor what is larger than 1 MiB."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Lock

from vouchgate.ingest.sources.git.adr_files import LARGEST, NO_SIZE, read_blobs, text_of
from vouchgate.ingest.sources.git.repository import Repository, SourceError
from vouchgate.ingest.sources.passage_index import Passage, PassageIndex
from vouchgate.ingest.sources.patterns import PathPatterns
from vouchgate.ingest.sources.plain_text import plain

ENDINGS = (".md", ".markdown", ".mdx", ".rst", ".txt", ".adoc", ".asciidoc")
MOST_FILES = 10_000  # of prose in one repository; those deeper in the tree are left out first


class Prose:
    """The passages of one repository. Files are known by the id of their content, so that a moved ref costs what
    changed. Safe to call from several threads."""

    def __init__(self, memory: PathPatterns) -> None:
        self._memory = memory
        self._lock = Lock()
        self._index = PassageIndex()
        self._tree = ""

    def search(self, repository: Repository, tree: str, words: str, most: int) -> list[Passage]:
        """The passages of this tree that have most of the words; a document is called by its path. Raises
        SourceError; what was read until then stays, so that the next search gets further."""
        if not self._lock.acquire(timeout=repository.remaining()):
            raise SourceError("timeout", f"Reading the prose of {repository.name} took too long.")
        try:
            if tree != self._tree:
                self._refresh(repository, tree)
                self._tree = tree
        finally:
            self._lock.release()
        return self._index.search(words, most)

    def _refresh(self, repository: Repository, tree: str) -> None:
        wanted = self._files(repository, tree)

        def read(paths: Sequence[str]) -> Iterator[tuple[str, str]]:
            blobs = dict(read_blobs(repository, list({wanted[path] for path in paths})))
            for path in paths:
                yield path, plain(text_of(blobs[wanted[path]]) or "")

        self._index.follow(wanted, read)

    def _files(self, repository: Repository, tree: str) -> dict[str, str]:
        listed = repository.run("ls-tree", "-r", "-l", "-z", "--full-tree", tree)
        found = []
        for entry in listed.decode(errors="surrogateescape").split("\x00"):
            description, _, path = entry.partition("\t")
            mode, _, kind_id_size = description.partition(" ")
            if mode not in ("100644", "100755") or not path.lower().endswith(ENDINGS):
                continue
            _, object_id, size = kind_id_size.split()
            if size == NO_SIZE:
                raise SourceError("error", f"Not every file of {repository.name} can be read.")
            citable = plain(path) == path  # as no name in another encoding is
            if citable and int(size) <= LARGEST and not self._memory.match(path):
                found.append((path.count("/"), path, object_id))
        return {path: object_id for _, path, object_id in sorted(found)[:MOST_FILES]}
