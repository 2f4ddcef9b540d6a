"""The prose of a repository at its protected ref, searched by words. Code is not in it, nor files in which agents keep
what they remember, nor what is larger than 1 MiB."""

from __future__ import annotations

from itertools import islice
from threading import Lock

from vouchgate.ingest.sources.git.adr_files import LARGEST, read_blobs, text_of
from vouchgate.ingest.sources.git.patterns import PathPatterns
from vouchgate.ingest.sources.git.repository import Repository, SourceError
from vouchgate.ingest.sources.passage_index import Passage, PassageIndex
from vouchgate.ingest.sources.plain_text import plain

ENDINGS = (".md", ".markdown", ".mdx", ".rst", ".txt", ".adoc", ".asciidoc")
MOST_FILES = 10_000  # of prose in one repository; those deeper in the tree are left out first
_AT_ONCE = 64  # files read by one git command


class Prose:
    """The passages of one repository. Files are known by the id of their content, so that a moved ref costs what
    changed. Safe to call from several threads."""

    def __init__(self, memory: PathPatterns) -> None:
        self._memory = memory
        self._lock = Lock()
        self._index = PassageIndex()
        self._tree = ""
        self._known: dict[str, str] = {}  # path to the id of what is indexed

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
        gone = [path for path in self._known if wanted.get(path) != self._known[path]]
        self._index.remove(gone)
        for path in gone:
            del self._known[path]
        missing = iter([(path, object_id) for path, object_id in wanted.items() if path not in self._known])
        while batch := dict(islice(missing, _AT_ONCE)):
            read = dict(read_blobs(repository, list(set(batch.values()))))
            for path, object_id in batch.items():
                text = text_of(read[object_id])
                self._index.put(path, "" if text is None else plain(text))
                self._known[path] = object_id

    def _files(self, repository: Repository, tree: str) -> dict[str, str]:
        listed = repository.run("ls-tree", "-r", "-l", "-z", "--full-tree", tree)
        found = []
        for entry in listed.decode(errors="surrogateescape").split("\x00"):
            description, _, path = entry.partition("\t")
            mode, _, kind_id_size = description.partition(" ")
            if mode not in ("100644", "100755") or not path.lower().endswith(ENDINGS):
                continue
            _, object_id, size = kind_id_size.split()
            if int(size) <= LARGEST and not self._memory.match(path):
                found.append((path.count("/"), path, object_id))
        return {path: object_id for _, path, object_id in sorted(found)[:MOST_FILES]}
