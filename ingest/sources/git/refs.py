"""The protected ref of a repository: the one state of it that vouches for anything.

It is the ref that a setting names; else the default branch of the remote `origin`, as the clone knows it; else what
is checked out. What is on another branch, under a tag elsewhere or in the work tree is not merged, and vouches for
nothing.
"""

from __future__ import annotations

from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.ingest.sources.git.repository import Repository, SourceError
from vouchgate.ingest.sources.plain_text import plain

_REMOTES, _BRANCHES, _TAGS = "refs/remotes/", "refs/heads/", "refs/tags/"
_REMOTE = f"{_REMOTES}origin/"
_MOST_REFS = 50  # beside the protected one, in which is looked for what that has not
_MOST_COMMITS = 1000  # of them


class Tip(Frozen):
    """The newest commit of the protected ref and its tree, which is empty where it is not here. `name` is what people
    call the ref."""

    commit: str
    tree: str
    name: str


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
    if (tip := _checked_out(repository)) is not None:
        return tip
    status, _, _ = repository.call("rev-parse", "-q", "--verify", "HEAD", ok=(0, 1))
    if status == 0:
        raise SourceError("error", f"The newest commit of {repository.name} cannot be read.")
    if repository.run("for-each-ref", "--count=1"):
        raise SourceError("error", f"HEAD of {repository.name} points at a branch that does not exist.")
    return None


def commit_tip(repository: Repository, commit: str) -> Tip:
    """A commit, by its full id, as if a ref pointed at it. Raises SourceError."""
    return _tip(repository, commit, commit[:12])


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


def added_elsewhere(repository: Repository, tip: Tip, *paths: str) -> list[str]:
    """Files at or below these paths that commits add which the protected ref has not in its history: the newest commits
    of the refs that were written last."""
    asked = (
        "--sort=-creatordate",
        f"--count={_MOST_REFS}",
        "--format=%(objectname) %(objecttype)%(*objecttype)",
    )
    listed = repository.run("for-each-ref", *asked, _BRANCHES, _REMOTES, _TAGS).decode().splitlines()
    others = [line.split()[0] for line in listed if line.endswith("commit")]
    newest = f"--max-count={_MOST_COMMITS}", "--no-merges"
    commits = repository.run("rev-list", *newest, *others, f"^{tip.commit}") if others else b""
    if not commits:
        return []
    names = "--root", "-r", "-z", "--no-commit-id", "--name-only", "--no-renames", "--diff-filter=A"
    added = repository.run("diff-tree", "--stdin", *names, "--", *paths, stdin=commits)
    return list(dict.fromkeys(added.decode(errors="surrogateescape").split("\x00")[:-1]))


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
    name, both = plain(name), (f"{commit}^{{commit}}", f"{commit}^{{tree}}")
    if ids := repository.ask("rev-parse", *both, ok=(0, 128)).decode().split():
        return Tip(commit=ids[0], tree=ids[1], name=name)
    if found := _commit(repository, commit):
        return Tip(commit=found, tree="", name=name)
    raise SourceError("error", f"The newest commit of {name} in {repository.name} cannot be read.")


def _checked_out(repository: Repository) -> Tip | None:
    asked = "HEAD^{commit}", "HEAD^{tree}", "--symbolic-full-name", "HEAD"
    status, output, _ = repository.call("rev-parse", *asked, ok=(0, 128))
    lines = output.decode(errors="replace").splitlines()
    if status == 0 and len(lines) == 3:
        return Tip(commit=lines[0], tree=lines[1], name=_branch(lines[2]))
    commit = _commit(repository, "HEAD")
    return Tip(commit=commit, tree="", name=_branch(full_name(repository, None))) if commit else None


def _branch(name: str) -> str:
    return plain(name.removeprefix(_BRANCHES)) if name.startswith(_BRANCHES) else "what is checked out"


def _commit(repository: Repository, name: str) -> str:
    """The id of the commit that is called so; empty where it is not here."""
    status, output, _ = repository.call("rev-parse", "-q", "--verify", f"{name}^{{commit}}", ok=(0, 1, 128))
    return output.decode().strip() if status == 0 else ""
