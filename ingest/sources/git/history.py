"""Where else a repository speaks of a claim: in the messages of its commits, and in the lines of its code that have the
identifiers of the claim. Places to look at, for people and agents: neither is a document that vouches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from threading import Lock

from vouchgate.ingest.language.terms import Kind, words_of
from vouchgate.ingest.sources.git.commits import messages
from vouchgate.ingest.sources.git.refs import Tip
from vouchgate.ingest.sources.git.repository import Repository, SourceError
from vouchgate.ingest.sources.passage_index import Passage, PassageIndex
from vouchgate.ingest.sources.patterns import PathPatterns
from vouchgate.ingest.sources.plain_text import plain

MOST_COMMITS = 5_000  # the newest, whose messages are searched
MOST_MESSAGE = 2_000  # characters of one
MOST_IDENTIFIERS = 4  # of a claim that are looked for
MOST_LINES = 3  # of one file
_LONGEST_LINE = 400  # characters


class Messages:
    """The messages of the newest commits. Safe to call from several threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._index = PassageIndex()
        self._commit = ""

    def search(self, repository: Repository, tip: Tip, words: str, most: int) -> list[Passage]:
        """Messages that have most of the words; each is called `commit` and its id. Raises SourceError."""
        if not self._lock.acquire(timeout=repository.remaining()):
            raise SourceError("timeout", f"Reading the history of {repository.name} took too long.")
        try:
            if tip.commit != self._commit:
                texts = dict(_messages(repository, tip))
                self._index.follow(dict.fromkeys(texts, 0), lambda names: [(n, texts[n]) for n in names])
                self._commit = tip.commit
        finally:
            self._lock.release()
        return self._index.search(words, most)


def _messages(repository: Repository, tip: Tip) -> Iterator[tuple[str, str]]:
    newest = f"--max-count={MOST_COMMITS}"
    for entry in messages(repository, "%h%n%s%n%n%b", newest, "--no-merges", tip.commit, "--"):
        name, _, message = entry.partition("\n")
        if message.strip():
            yield f"commit {name}", plain(message[:MOST_MESSAGE].strip())


def code_lines(
    repository: Repository, tip: Tip, words: str, most: int, memory: PathPatterns
) -> list[Passage]:
    """The lines of files at the tip that have an identifier of these words, each called by path and line; files in
    which agents keep what they remember are left out. Raises SourceError."""
    named = [words[word.start : word.end] for word in words_of(words) if word.kind is Kind.IDENTIFIER]
    patterns = [part for name in dict.fromkeys(named) for part in ("-e", name)][: 2 * MOST_IDENTIFIERS]
    if not patterns:
        return []
    listed = repository.run("grep", "-n", "-z", "-I", "-F", "-w", *patterns, tip.tree, "--", ok=(0, 1))
    return list(_lines(listed, most, memory, patterns[1::2]))


def _lines(listed: bytes, most: int, memory: PathPatterns, names: Sequence[str]) -> Iterator[Passage]:
    found: list[tuple[int, int, Passage]] = []
    seen: Counter[str] = Counter()
    for number, entry in enumerate(listed.split(b"\n")):
        place, _, rest = entry.decode(errors="replace").partition("\x00")
        line, _, text = rest.partition("\x00")
        path = place.partition(":")[2]
        if not line.isdigit() or memory.match(path) or plain(path) != path:
            continue
        seen[path] += 1
        if seen[path] > MOST_LINES:
            continue
        shown = plain(text.strip()[:_LONGEST_LINE])
        found.append((-sum(name in shown for name in names), number, Passage(f"{path}:{line}", "", shown)))
    yield from (passage for *_, passage in sorted(found)[:most])
