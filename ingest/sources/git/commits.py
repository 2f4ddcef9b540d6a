"""Commits of one repository: which one an id names, whether the protected ref has it, whether it was undone there."""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from threading import Lock

from vouchgate.ingest.claims.bounds import TEXT_CHARACTERS
from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.ingest.claims.source import Standing
from vouchgate.ingest.sources.git.adr_files import LARGEST, object_digest
from vouchgate.ingest.sources.git.refs import Tip, is_ancestor
from vouchgate.ingest.sources.git.repository import Repository, SourceError
from vouchgate.ingest.sources.plain_text import plain

_MOST_MERGES = 100  # reverted ones, of which it is looked up what they had brought
_MOST_BROUGHT = 2_000  # commits of one of these
_REMEMBERED = 1_024  # commits of one state of the branches whose reachability and files are kept
_MOST_FILES = 300  # names of changed files in the text of a commit
_FILES_BYTES = 20_000  # of those names together; what is over is left out
LISTED = 100_000  # commits up to which the whole history is held as a set, at about 75 bytes each
_SHORTEST = 7  # digits of an abbreviated id as shown
_ID = re.compile(r"[0-9a-f]{4,64}")  # nothing else is ever handed to git
_TIPS = ("refs/heads/", "refs/remotes/", "refs/tags/")
_UNDOES = re.compile(r"\bthis\s{1,4}reverts\s{1,4}(?:merge\s{1,4})?commits?\s{1,4}", re.IGNORECASE)
_REVERSES = re.compile(
    r"\breversing\s{1,4}changes\s{1,4}made\s{1,4}to\s{1,4}([0-9a-f]{7,64})\b", re.IGNORECASE
)
_REVERT = re.compile(r'\A((?:Revert ")+)(.*?)"+[ \t]*$', re.MULTILINE)
_PARENT = re.compile(rb"^parent ([0-9a-f]{40,64})$", re.MULTILINE)
_HEX_WORD = re.compile(r"[0-9a-f]{7,64}", re.IGNORECASE)


class CommitRecord(Frozen):
    """A commit as read. `short` is its shortest unique abbreviation of at least seven digits."""

    id: str
    short: str
    standing: Standing
    subject: str
    text: str  # the message, and the names of the files it changed
    digest: str
    dated: datetime | None
    reverted_by: str | None = None  # abbreviated


class Candidates(Frozen):
    """What an abbreviation names in one repository: full ids of commits, and other objects in words. Of the only commit
    also its abbreviation and its bytes."""

    commits: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    short: str = ""
    size: int = 0


class _State:
    """What was worked out for one state of the branches and tags."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.reverts: Mapping[str, tuple[str, ...]] = {}  # reverting commit -> ids it undoes
        self.history: frozenset[bytes] | None = None  # None: not read yet, or more commits than that
        self.known: OrderedDict[str, tuple[Standing, tuple[str, ...]]] = OrderedDict()


class Commits:
    """The commits of one repository. What follows from the tips of all branches and tags is kept for as long as these
    tips stay where they are. A history of at most `listed` commits is held whole; in a longer one git looks for each
    commit."""

    def __init__(self, *, listed: int = LISTED) -> None:
        self._listed = listed
        self._lock = Lock()
        self._state = _State("")

    def candidates(self, repository: Repository, prefix: str) -> Candidates:
        """What this (abbreviated) id names. Empty: no such object. Raises SourceError `shallow_clone` when it
        could be among the history that was not cloned."""
        if not _ID.fullmatch(prefix):
            raise SourceError("not_supported", "This is not a commit id.")
        # --disambiguate knows only object ids, so a branch with such a name cannot stand in for a commit.
        lines = repository.run(
            "rev-parse", "--is-shallow-repository", f"--disambiguate={prefix[:_SHORTEST]}"
        ).split()
        shallow, *alike = (line.decode() for line in lines)
        ids = [object_id for object_id in alike if object_id.startswith(prefix)]
        if not ids:
            if shallow != "false" or repository.is_partial():
                raise SourceError(
                    "shallow_clone", f"{repository.name} is not a complete clone, and has no object {prefix}."
                )
            return Candidates()
        kinds = _kinds(repository, ids)
        commits = tuple(object_id for object_id, (kind, _) in kinds.items() if kind == "commit")
        others = tuple(f"a {kind}" for kind, _ in kinds.values() if kind != "commit")
        if len(commits) != 1:
            return Candidates(commits=commits, others=others)
        short, size = _abbreviation(commits[0], alike), kinds[commits[0]][1]
        return Candidates(commits=commits, others=others, short=short, size=size)

    def read(self, repository: Repository, names: Candidates, tip: Tip | None) -> CommitRecord:
        """Reads the one commit that was found and finds out what it is worth: it counts only in the history of the
        protected ref, whose `tip` this is, and only a revert there undoes it. Raises SourceError."""
        commit_id, short = names.commits[0], names.short
        if names.size > LARGEST:
            raise SourceError("not_supported", f"Commit {short} of {repository.name} is larger than 1 MiB.")
        data = repository.ask("cat-file", "commit", commit_id)
        if object_digest(commit_id, "commit", data) != commit_id:
            raise SourceError("error", f"Commit {short} of {repository.name} is not what its id says.")
        header, _, body = data.partition(b"\n\n")
        parent = _PARENT.search(header)
        standing, files, undone_by = self._worked_out(
            repository, commit_id, parent[1].decode() if parent else None, tip
        )
        message = plain(body.decode(_encoding(header), errors="replace")).strip()
        told = _without_undone(message)
        text = f"{told}\n\nFiles: {', '.join(files)}" if files else told
        return CommitRecord(
            id=commit_id,
            short=short,
            standing=standing,
            subject=" ".join(message.partition("\n\n")[0].split())[:300],
            text=text[:TEXT_CHARACTERS],
            digest=hashlib.sha256(data).hexdigest(),
            dated=_committed_at(header),
            reverted_by=_unique(repository, undone_by) if undone_by else None,
        )

    def _worked_out(
        self, repository: Repository, commit_id: str, parent: str | None, tip: Tip | None
    ) -> tuple[Standing, tuple[str, ...], str | None]:
        key, head = _tips(repository, tip)
        if not self._lock.acquire(timeout=repository.remaining()):
            raise SourceError("timeout", f"Reading the history of {repository.name} took too long.")
        try:
            if self._state.key != key:
                # Filled before it is kept: a time-out in between must not leave half of it behind.
                state = _State(key)
                if tip is not None:
                    state.reverts = _reverts(repository, tip)
                    state.history = _history(repository, tip, self._listed)
                self._state = state
            state = self._state
            if commit_id in state.known:
                state.known.move_to_end(commit_id)
            else:
                standing = self._standing(repository, commit_id, tip, head)
                state.known[commit_id] = standing, _files(repository, commit_id, parent)
                while len(state.known) > _REMEMBERED:
                    state.known.popitem(last=False)
            standing, files = state.known[commit_id]
            undone_by = _undone_by(commit_id, state.reverts) if standing is Standing.IN_FORCE else None
            return Standing.REVERTED if undone_by else standing, files, undone_by
        finally:
            self._lock.release()

    def _standing(
        self, repository: Repository, commit_id: str, tip: Tip | None, head: str | None
    ) -> Standing:
        history = self._state.history
        if tip is not None and (
            bytes.fromhex(commit_id) in history
            if history is not None
            else is_ancestor(repository, commit_id, tip.commit)
        ):
            return Standing.IN_FORCE
        return Standing.NOT_MERGED if _is_on_a_ref(repository, commit_id, head) else Standing.DETACHED


def _tips(repository: Repository, tip: Tip | None) -> tuple[str, str | None]:
    """A key that changes whenever HEAD, a branch, a tag or the protected ref does, and the id of HEAD."""
    _, output, complaint = repository.call("show-ref", "--head", ok=(0, 1))
    if "error:" in complaint:
        raise SourceError("error", f"A branch or tag of {repository.name} points at something unreadable.")
    lines = [line.partition(" ") for line in output.decode(errors="replace").splitlines()]
    kept = [(tip, name) for tip, _, name in lines if name == "HEAD" or name.startswith(_TIPS)]
    head = next((tip for tip, name in kept if name == "HEAD"), None)
    protected = None if tip is None else tip.commit
    return hashlib.sha256(repr((protected, kept)).encode()).hexdigest(), head


def _history(repository: Repository, tip: Tip, limit: int) -> frozenset[bytes] | None:
    """Every commit in the history of the protected ref; None when there are more than `limit`."""
    ids = repository.run("rev-list", f"--max-count={limit + 1}", tip.commit).split()
    return None if len(ids) > limit else frozenset(bytes.fromhex(name.decode()) for name in ids)


def _is_on_a_ref(repository: Repository, commit_id: str, head: str | None) -> bool:
    """Whether any branch, tag or remote-tracking ref has it, or a HEAD that is on none."""
    tips = ("--branches", "--tags", "--remotes", *((head,) if head else ()))
    if not repository.run("rev-list", "--max-count=1", commit_id, "--not", *tips):
        return True
    # That walk trusts commit dates, so wrong clocks can mislead it. Its "no" is checked the slow way.
    if repository.run("for-each-ref", "--count=1", f"--contains={commit_id}", *_TIPS):
        return True
    return head is not None and is_ancestor(repository, commit_id, head)


def _files(repository: Repository, commit_id: str, parent: str | None) -> tuple[str, ...]:
    """The files that a commit changed, at most 300: a merge, those that it brought to the branch it was made on.
    None when the commit before it or its trees are not here."""
    # Both ends are named, because of a merge git shows only what differs from every parent.
    ends = (parent, commit_id) if parent is not None else ("--root", "--no-commit-id", commit_id)
    output = repository.run("diff-tree", "--name-only", "-r", "-z", *ends, ok=(0, 128))
    names = output[:_FILES_BYTES].decode(errors="replace").split("\x00")[:-1]
    return tuple(plain(name) for name in names[:_MOST_FILES])


def _reverts(repository: Repository, tip: Tip) -> Mapping[str, tuple[str, ...]]:
    """Every commit that says it reverts others, in the history of the protected ref. git looks at all messages once."""
    said = ("--regexp-ignore-case", "--fixed-strings", "--grep=This reverts")
    found = [each.partition("\n") for each in messages(repository, "%H%n%B", tip.commit, *said)]
    undone = {commit: ids for commit, _, message in found if (ids := undone_ids(message))}
    merges = [
        (commit, match[1].lower()) for commit, _, message in found if (match := _REVERSES.search(message))
    ]
    for commit, before in merges[:_MOST_MERGES]:  # with a merge all goes that it had brought
        for merge in undone.get(commit, ()):
            brought = repository.run(
                "rev-list", f"--max-count={_MOST_BROUGHT}", merge, f"^{before}", ok=(0, 128)
            )
            undone[commit] += tuple(brought.decode().split())
    return undone


def _without_undone(message: str) -> str:
    """A message without the title of the change that it takes back: it says that this is not so any more."""
    match = _REVERT.match(message)
    if match is None or match[1].count("R") % 2 == 0:
        return message
    return f"Revert{message[match.end() :]}"


def undone_ids(message: str) -> tuple[str, ...]:
    """The ids that a commit message says it reverts: what `git revert` writes, also several in one list."""
    found: list[str] = []
    for match in _UNDOES.finditer(message):
        for word in message[match.end() : match.end() + 1_000].split():
            name = word.strip(".,;:()[]`'\"")
            if _HEX_WORD.fullmatch(name):
                found.append(name.lower())
            elif name.lower() not in {"and", "&", ""}:
                break
            if word.endswith((".", ";")):
                break
    return tuple(dict.fromkeys(found))


def _undone_by(commit_id: str, reverts: Mapping[str, Iterable[str]]) -> str | None:
    """The commit whose revert of `commit_id` still holds, because no other reverts that one."""

    def reverting(target: str) -> list[str]:
        return [
            commit
            for commit, ids in reverts.items()
            if commit != target and any(target.startswith(undone) for undone in ids)
        ]

    def holds(revert: str, depth: int) -> bool:
        return depth >= 20 or not any(holds(again, depth + 1) for again in reverting(revert))

    return next((revert for revert in reverting(commit_id) if holds(revert, 0)), None)


def messages(repository: Repository, form: str, *chosen: str) -> list[str]:
    """What `git log` says in this form of each commit that `chosen` options of `git rev-list` find; of no commit larger
    than 1 MiB: who can push one shall not fill our memory."""
    ids = repository.run("rev-list", *chosen).decode().split()
    small = [each for each, (_, size) in _kinds(repository, ids).items() if size <= LARGEST] if ids else []
    if not small:
        return []
    asked = "\n".join(small).encode() + b"\n"
    listed = repository.run("log", "--no-walk=unsorted", "--stdin", f"--format={form}%x00", stdin=asked)
    return [each.lstrip("\n") for each in listed.decode(errors="replace").split("\x00")[:-1]]


def _kinds(repository: Repository, ids: Sequence[str]) -> dict[str, tuple[str, int]]:
    """The kind of each object, and its bytes."""
    form = "--batch-check=%(objecttype) %(objectsize)"
    output = repository.run("cat-file", form, stdin="\n".join(ids).encode() + b"\n").decode()
    found = [line.partition(" ") for line in output.splitlines()]
    if len(found) != len(ids) or any(kind not in {"commit", "tree", "blob", "tag"} for kind, _, _ in found):
        raise SourceError("error", f"An object of {repository.name} cannot be read: {ids[0]}.")
    return {each: (kind, int(size)) for each, (kind, _, size) in zip(ids, found, strict=True)}


def _abbreviation(commit_id: str, alike: Sequence[str]) -> str:
    for length in range(_SHORTEST, len(commit_id)):
        if sum(other.startswith(commit_id[:length]) for other in alike) == 1:
            return commit_id[:length]
    return commit_id


def _unique(repository: Repository, commit_id: str) -> str:
    alike = repository.run("rev-parse", f"--disambiguate={commit_id[:_SHORTEST]}").decode().split()
    return _abbreviation(commit_id, alike)


def _encoding(header: bytes) -> str:
    # Only single-byte encodings: Python knows others by name that are slow, or no text at all.
    match = re.search(rb"^encoding (iso-8859-(?:[1-9]|1[0-6])|(?:windows-|cp)125[0-8])$", header, re.M | re.I)
    name = match[1].decode().lower() if match else "utf-8"
    return "utf-8" if name == "iso-8859-12" else name  # the one that does not exist


def _committed_at(header: bytes) -> datetime | None:
    match = re.search(rb"^committer .{0,1000}> (\d{1,15}) [+-]\d{1,8}$", header, re.MULTILINE)
    try:
        return datetime.fromtimestamp(int(match[1]), tz=UTC) if match else None
    except (OverflowError, ValueError, OSError):  # a year that no calendar here has
        return None
