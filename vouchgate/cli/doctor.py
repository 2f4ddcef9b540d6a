"""`vouchgate doctor`: who may vouch, as the service is set up."""

from __future__ import annotations

from contextlib import closing

from vouchgate.cli.output import one_line, say
from vouchgate.ingest.sources.answers import NoAnswer
from vouchgate.ingest.sources.corpus.source import CorpusSource
from vouchgate.ingest.sources.git.grounding import RefWriter
from vouchgate.ingest.sources.web.extractor import Extractor
from vouchgate.settings import Settings
from vouchgate.sources.corpora import open_corpora
from vouchgate.sources.repositories import open_repositories

COUNTING_SECONDS = 60.0  # for one corpus
_REMOTE = "refs/remotes/"
_ADVICE = "Name the repository by its address, where only your reviews write."


def run(settings: Settings) -> int:
    """Says of each corpus and repository whose word counts, and warns where that may be an agent's. Raises
    RepositoryError or SettingsError for one that cannot be used."""
    writers = open_repositories(settings).writers()
    with closing(Extractor()) as extractor, closing(open_corpora(settings, extractor)) as corpora:
        for name in settings.corpora:
            say(one_line(describe_corpus(settings, corpora, name)))
    if not writers:
        say("No repository is configured: no record, file or commit vouches for anything.")
    for writer in writers:
        say(one_line(describe(writer)))
        if (warning := warn(writer)) is not None:
            say(one_line(f"warning: {warning}"))
    return 0


def describe_corpus(settings: Settings, corpora: CorpusSource, name: str) -> str:
    """How many documents it has, and whose word they are, in a sentence."""
    folder = settings.corpora[name]
    try:
        count = f"{corpora.count(name, COUNTING_SECONDS):,} documents"
    except NoAnswer as none:
        count = f"its documents could not be counted ({none.detail})"
    whose = "it is not official and vouches for nothing"
    if name in settings.official_corpora:
        whose = "it is official: who can write there vouches"
    return f"{folder}, the corpus {name}: {count}; {whose}."


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
