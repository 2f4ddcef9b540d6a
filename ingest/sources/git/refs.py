"""The protected ref of a repository: the one state of it that vouches for anything.

It is the ref that a setting names; else the default branch of the remote `origin`, as the clone knows it; else what
is checked out. What is on another branch, under a tag elsewhere or in the work tree is not merged, and vouches for
nothing.
"""

from __future__ import annotations

from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.ingest.sources.git.repository import Repository, SourceError
from vouchgate.ingest.sources.plain_text import plain

_REMOTE = "refs/remotes/origin/"


class Tip(Frozen):
    """The newest commit of the protected ref and its tree, which is empty where it is not here. `name` is the branch,
    for people; empty for what is checked out (`name_of`)."""

    commit: str
    tree: str
    name: str = ""


def checked_ref(ref: str) -> str:
    """The name of a ref as set. Raises ValueError for what cannot be one."""
    if (
        not ref.strip()
        or ref.startswith("-")
        or any(char.isspace() or char in "\x00~^:?*[\\" for char in ref)
    ):
        raise ValueError(f"{ref!r} is no name of a branch, a tag or a ref.")
    return ref


def protected_tip(repository: Repository, ref: str | None) -> Tip | None:
    """What the protected ref points at; None for a repository without a commit. Raises SourceError where that cannot be
    told: a named ref that is not there, two of one name, or one whose commit cannot be read."""
    if ref is not None:
        return _named(repository, ref)
    remote = f"{_REMOTE}HEAD"
    # One that points at a branch which is gone is not listed, and so as none.
    listed = repository.run("for-each-ref", "--format=%(objectname) %(symref)", remote).decode().split()
    if listed:
        name = listed[1].removeprefix(_REMOTE) if len(listed) > 1 else "origin/HEAD"
        return _tip(repository, listed[0], name)
    tip = _commit_and_tree(repository, "HEAD")
    if tip is not None:
        return Tip(commit=tip[0], tree=tip[1])
    status, _, _ = repository.call("rev-parse", "-q", "--verify", "HEAD", ok=(0, 1))
    if status == 0:
        raise SourceError("error", f"The newest commit of {repository.name} cannot be read.")
    if repository.run("for-each-ref", "--count=1"):
        raise SourceError("error", f"HEAD of {repository.name} points at a branch that does not exist.")
    return None


def name_of(repository: Repository, tip: Tip) -> str:
    """What people call the protected ref."""
    if tip.name:
        return plain(tip.name)
    branch = (
        repository.run("symbolic-ref", "-q", "--short", "HEAD", ok=(0, 1)).decode(errors="replace").strip()
    )
    return plain(branch) or "what is checked out"


def full_name(repository: Repository, ref: str | None) -> str:
    """The protected ref in full, such as `refs/heads/main`; `HEAD` where no branch is checked out. Raises SourceError
    as `protected_tip`."""
    if ref is not None:
        return _find(repository, ref)[0]
    listed = repository.run("for-each-ref", "--format=%(refname) %(symref)", f"{_REMOTE}HEAD")
    if listed:
        return listed.decode(errors="replace").split()[-1]
    branch = repository.run("symbolic-ref", "-q", "HEAD", ok=(0, 1)).decode(errors="replace").strip()
    return branch or "HEAD"


def is_ancestor(repository: Repository, older: str, newer: str) -> bool:
    """Whether the commit `older` is `newer`, or in its history."""
    return repository.call("merge-base", "--is-ancestor", older, newer, ok=(0, 1))[0] == 0


def _named(repository: Repository, ref: str) -> Tip:
    return _tip(repository, _find(repository, ref)[1], ref)


def _find(repository: Repository, ref: str) -> tuple[str, str]:
    """The full name of a ref as set, and its commit."""
    spelled = (
        (ref,)
        if ref.startswith("refs/")
        else tuple(f"refs/{kind}/{ref}" for kind in ("heads", "remotes", "tags"))
    )
    listed = repository.run("for-each-ref", "--format=%(refname) %(objectname) %(*objectname)", *spelled)
    lines = [line.split() for line in listed.decode(errors="replace").splitlines()]
    found = {line[0]: line[-1] for line in lines if line[0] in spelled}
    if not found:
        detail = f"{repository.name} has no {plain(ref)}, which the settings name as the ref that counts."
        raise SourceError("error", detail)
    if len(set(found.values())) > 1:
        both = " and ".join(map(plain, found))
        raise SourceError(
            "error", f"{repository.name} has {both}: the settings must name one of them in full."
        )
    return next(iter(found.items()))


def _tip(repository: Repository, commit: str, name: str) -> Tip:
    tip = _commit_and_tree(repository, commit)
    if tip is None:
        raise SourceError("error", f"The newest commit of {plain(name)} in {repository.name} cannot be read.")
    return Tip(commit=tip[0], tree=tip[1], name=name)


def _commit_and_tree(repository: Repository, name: str) -> tuple[str, str] | None:
    status, output, _ = repository.call("rev-parse", f"{name}^{{commit}}", f"{name}^{{tree}}", ok=(0, 128))
    ids = output.decode(errors="replace").split()
    if status == 0 and len(ids) == 2:
        return ids[0], ids[1]
    status, output, _ = repository.call("rev-parse", "-q", "--verify", f"{name}^{{commit}}", ok=(0, 1, 128))
    return (output.decode().strip(), "") if status == 0 else None
