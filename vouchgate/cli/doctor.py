"""`vouchgate doctor`: who may vouch, as the service is set up, and what is missing, in the order to mend it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener

from vouchgate.cli.output import FAILED, ended_as_by_hand, one_line, say
from vouchgate.client import ApiError, Client, VouchgateError
from vouchgate.gate.judge import open_entailment
from vouchgate.ingest.claims.people import Role
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.sources.answers import NoAnswer
from vouchgate.ingest.sources.corpus.source import CorpusSource
from vouchgate.ingest.sources.git.grounding import RefWriter
from vouchgate.ingest.sources.web.extractor import Extractor
from vouchgate.settings import PREFIX, Settings, database_to_open, plain
from vouchgate.sources.corpora import open_corpora
from vouchgate.sources.repositories import RepositoryError, open_repositories
from vouchgate.storage import engine as engines
from vouchgate.storage.disk.check import check_file, database_file
from vouchgate.storage.errors import StorageError
from vouchgate.storage.identity import tokens

COUNTING_SECONDS = 60.0  # for one corpus
READY_SECONDS = 5.0  # for the service to say whether it is ready
_MOST = 65_536  # bytes of what it says
_REMOTE = "refs/remotes/"
_ADVICE = "Name the repository by its address, where only your reviews write."


def run(settings: Settings) -> int:
    """Says of each corpus and repository whose word counts, and warns where that may be an agent's; then what is
    missing, and first of that the repositories that cannot be used. Nothing stays of what is fetched. Raises
    SettingsError or PolicyError for what else cannot be used."""
    policy = load_policy(settings.policy)
    if (model := open_entailment(policy, settings.entailment_model)) is not None:
        say(one_line(f"{settings.entailment_model}: the entailment model can be loaded, and answers."))
        model.close()
    writers: tuple[RefWriter, ...] = ()
    steps: list[str] = []
    with (
        ended_as_by_hand(),
        TemporaryDirectory(prefix="vouchgate-doctor-", ignore_cleanup_errors=True) as folder,
    ):
        try:
            writers = open_repositories(settings.model_copy(update={"mirrors": Path(folder)})).writers()
        except RepositoryError as error:
            steps.append(str(error))
    with closing(Extractor()) as extractor, closing(open_corpora(settings, extractor)) as corpora:
        for name in settings.corpora:
            say(one_line(describe_corpus(settings, corpora, name)))
    status = FAILED if steps else 0
    if not settings.repo:
        say("No repository is configured: no record, file or commit vouches for anything.")
    for writer in writers:
        say(one_line(describe(writer)))
        if (warning := warn(writer)) is not None:
            say(one_line(f"warning: {warning}"))
    steps += missing(settings)
    say("Missing, in the order to mend it:" if steps else "Nothing is missing.")
    for number, step in enumerate(steps, 1):
        say(one_line(f"{number}. {step}"))
    return status


def missing(settings: Settings) -> Iterator[str]:
    """What stands between a newcomer and the first claim that is stored, and what to do, a sentence or two each."""
    if not settings.repo and not settings.official_corpora:
        yield (
            f"Nothing can vouch: give --repo PATH, or {PREFIX}REPO, the repository that memories cite. "
            "Without it nearly everything waits for its owner."
        )
    url = settings.url or settings.pages_url
    trouble = _not_ready(url)
    roles, fault = _roles(settings)
    if trouble is not None:
        if fault is not None:
            yield fault
        yield trouble
    token = plain(settings.token)
    if token is None:
        yield (
            f"No token here: put an agent's into {PREFIX}TOKEN. The first start of the service shows one, and "
            "vouchgate token create --role agent --owner me makes another."
        )
    elif trouble is None and (refused := _refused(url, token)) is not None:
        yield refused
    if roles is not None and Role.REVIEWER not in roles:
        yield (
            "Nobody rules on what waits: vouchgate token create --role reviewer --owner me, then "
            "vouchgate token link ID for the pages."
        )


def _not_ready(url: str) -> str | None:
    """Why the service at this address takes no claims, and what to do; None when it does."""
    try:
        # Asked directly: it is no proxy that has to be ready.
        with build_opener(ProxyHandler({})).open(f"{url}/readyz", timeout=READY_SECONDS) as answer:
            return None if answer.status == 200 else f"What answers at {url} is no gate."
    except HTTPError as error:
        with error:
            said = error.read(_MOST)
        try:
            return f"The service at {url} is not ready: {json.loads(said)['detail']}"
        except (ValueError, KeyError, TypeError):
            return (
                f"What answers at {url} is no gate: name another address with {PREFIX}URL, or another --port."
            )
    except (OSError, ValueError):
        return f"Nothing answers at {url}: start the service, vouchgate serve --repo PATH, or name it with {PREFIX}URL."


def _roles(settings: Settings) -> tuple[frozenset[Role] | None, str | None]:
    """The roles of the tokens that hold, None where that cannot be known; and what is wrong with the database, if it
    is something to mend."""
    url = database_to_open(settings)
    file = database_file(url)
    try:
        if file is not None and not file.exists():
            return None, _not_made(file.absolute().parent)  # the service makes it, with the first tokens
        if file is not None:
            check_file(file)
        engine = engines.open_engine(url)
        try:
            if engines.needs_migration(engine):
                return None, "The database is of an earlier version: vouchgate db upgrade, after a backup."
            with engines.reading(engine) as connection:
                now, known = datetime.now(UTC), tokens.listing(connection)
        finally:
            engine.dispose()
    except (StorageError, OSError) as error:
        return None, f"The database cannot be used: {error}."
    held = [
        each.role
        for each in known
        if not each.embedded and not each.revoked_at and (each.expires_at is None or each.expires_at > now)
    ]
    return frozenset(held), None


def _not_made(folder: Path) -> str | None:
    """Why no database can be made in this folder; None where it can."""
    if not folder.is_dir():
        return f"The database cannot be made: there is no folder {folder}."
    if not os.access(folder, os.W_OK | os.X_OK):
        return f"The database cannot be made: nothing may be written into {folder}."
    return None


def _refused(url: str, token: str) -> str | None:
    """Why an agent cannot call with this token; None when it can."""
    try:
        with Client(url, token, retries=0) as client:
            who = client.whoami()
    except ApiError as error:
        return f"The token in {PREFIX}TOKEN is refused at {url}: {error.detail}"
    except (VouchgateError, ValueError) as error:
        return f"The token in {PREFIX}TOKEN cannot be tried at {url}: {error}"
    if who.role is Role.AGENT:
        return None
    return f"The token in {PREFIX}TOKEN is of the role {who.role.value}, and claims are sent with an agent's."


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
