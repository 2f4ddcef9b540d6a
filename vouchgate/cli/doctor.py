"""`vouchgate doctor`: who may vouch, as the service is set up."""

from __future__ import annotations

from vouchgate.cli.output import one_line, say
from vouchgate.ingest.sources.git.grounding import RefWriter
from vouchgate.settings import Settings
from vouchgate.sources.repositories import open_repositories

_REMOTE = "refs/remotes/"
_ADVICE = "Name the repository by its address, where only your reviews write."


def run(settings: Settings) -> int:
    """Says of each repository whose word counts, and warns where that may be an agent's. Raises RepositoryError for one
    that cannot be used."""
    writers = open_repositories(settings).writers()
    if not writers:
        say("No repository is configured: no record, file or commit vouches for anything.")
    for writer in writers:
        say(one_line(describe(writer)))
        if (warning := warn(writer)) is not None:
            say(one_line(f"warning: {warning}"))
    return 0


def describe(writer: RefWriter) -> str:
    """Whose word counts, in a sentence."""
    if writer.address is not None:
        return f"{_shown(writer.address)}: who writes {_branch(writer.ref)} there vouches."
    if writer.ref.startswith(_REMOTE):
        remote, _, branch = writer.ref.removeprefix(_REMOTE).partition("/")
        return (
            f"{writer.path}: who writes {branch} of {remote} vouches, and who writes refs in this directory."
        )
    return f"{writer.path}: who writes {_branch(writer.ref)} in this directory vouches."


def warn(writer: RefWriter) -> str | None:
    """Why the agent may be the one who writes the ref; None where nothing points to it."""
    if writer.address is not None:
        if not writer.address.startswith("file:"):
            return None
        return f"{_shown(writer.address)} is on this machine: an agent that commits there vouches for itself."
    if writer.bare:
        return None
    if writer.ref.startswith(_REMOTE):
        return f"an agent that runs git in {writer.path} can move {writer.ref}. {_ADVICE}"
    return f"an agent that commits to {_branch(writer.ref)} in {writer.path} vouches for itself. {_ADVICE}"


def _branch(ref: str) -> str:
    return "what is checked out" if ref == "HEAD" else ref.removeprefix("refs/heads/").removeprefix("refs/")


def _shown(address: str) -> str:
    """Without the name and password that may stand in it."""
    scheme, mark, rest = address.partition("://")
    return f"{scheme}{mark}{rest.rpartition('@')[2]}" if mark else address
