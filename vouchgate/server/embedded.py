"""A gate inside a program: the service in a thread of it, and clients without a network; ADR-0062, docs/embedded.md.

What is asked, checked, decided and kept is the service's own: requests go to the same application, and the database is
one that `vouchgate serve` opens, later or at the same time.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self
from weakref import WeakSet

from sqlalchemy import URL, Connection

from vouchgate.client import AsyncReviews, CannotOpen, Client, Reviews
from vouchgate.client.aio import AsyncClient
from vouchgate.client.config import Config, check_timeout
from vouchgate.client.errors import GateClosed
from vouchgate.client.in_process import URL as ADDRESS
from vouchgate.client.in_process import InProcess
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.people import Principal, Role
from vouchgate.ingest.data.policy_file import PolicyError
from vouchgate.review.vouching.owner_rules import OwnerRulesError
from vouchgate.server.app import create_app
from vouchgate.server.auth import Authenticator
from vouchgate.service import Service, open_to_serve
from vouchgate.settings import Settings, SettingsError, load_settings
from vouchgate.sources.repositories import RepositoryError
from vouchgate.storage.errors import StorageError, StoreClosed
from vouchgate.storage.identity import tokens
from vouchgate.storage.store import Store

OWNER = "me"  # whose memories they are, unless somebody says otherwise, as at a first start of the service
AGENT, REVIEWER, HOST = "agent", "owner", "host"  # what those are called who call from inside
LAND_SECONDS = 10.0  # for which requests under way are waited for when it is closed
RETRIES = 4  # as a client has by itself
Repos = str | Path | Sequence[str | Path]
_NOT_OPENED = (SettingsError, PolicyError, OwnerRulesError, RepositoryError, StorageError)


class _Known(Authenticator):
    """Knows who calls from inside the program by secrets that hold as long as it runs; who that is, and whether they
    still may, the database says."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._ids: dict[str, str] = {}

    def admit(self, token_id: str) -> str:
        """A secret with which one calls as the principal of this token."""
        secret = secrets.token_urlsafe(32)
        self._ids[secret] = token_id
        return secret

    def _look_up(self, presented: str) -> Principal | None:
        token_id = self._ids.get(presented)
        if token_id is None:
            return None
        with self._store.read() as connection:
            found = tokens.holding(connection, token_id, self._clock())
        return next((each for each in found if each.id == token_id), None)


class _MadeMeanwhile(Exception):
    """Another thread or process made the token since it was looked for."""

    def __init__(self, token_id: str) -> None:
        super().__init__(token_id)
        self.token_id = token_id


class _Running:
    """A service in a thread of this process, with the event loop that its application runs in."""

    def __init__(self, settings: Settings, owner: str) -> None:
        """Raises CannotOpen."""
        self.owner = owner
        self._settings = settings
        self._process = os.getpid()
        self._opened: Future[Service] = Future()
        self._ended: Future[None] = Future()
        # A daemon, because a program that forgets to close it must end all the same.
        thread = threading.Thread(target=self._run, name="vouchgate-gate", daemon=True)
        try:
            thread.start()
            self._service = self._opened.result()
            _RUNNING.add(self)
        except _NOT_OPENED as error:
            raise CannotOpen(str(error)) from error
        except BaseException:  # such as Ctrl-C: it opens all the same, and nobody could close it
            self._opened.add_done_callback(self._end_unwanted)
            raise

    def config(self, role: Role, name: str, sources: Iterable[str], timeout: float) -> Config:
        """How the principal of this name calls; it is made where there is none. Raises ValueError,
        and GateClosed."""
        self._transport.require_open()
        known = {Source(source) for source in sources}
        try:
            token_id = self._principal(role, name + tokens.EMBEDDED, frozenset(known))
        except StoreClosed:  # meanwhile
            raise GateClosed("this gate is closed") from None
        return Config(ADDRESS, self._known.admit(token_id), timeout, RETRIES, self._transport)

    def both(self, timeout: float) -> tuple[Config, Config]:
        """How an agent calls that may assert no source, and how the owner who reviews. Where one cannot be made, the
        service ends. Raises ValueError."""
        try:
            return (
                self.config(Role.AGENT, AGENT, (), timeout),
                self.config(Role.REVIEWER, REVIEWER, (), timeout),
            )
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Ends it, and waits for that. A second time it does nothing, nor in a process that was forked from its own,
        which has no such thread."""
        if os.getpid() != self._process:
            return
        self._begin_to_end()
        self._ended.result()

    def _end_unwanted(self, opened: Future[Service]) -> None:
        if opened.exception() is None:
            self._begin_to_end()

    def _begin_to_end(self) -> None:
        with suppress(RuntimeError):  # its loop is closed: it has ended, or is about to
            self._loop.call_soon_threadsafe(self._stop.set)

    def _principal(self, role: Role, name: str, sources: frozenset[Source]) -> str:
        """The id of the token that stands for it. Nobody is ever given its text."""
        store, now, owners = self._service.store, datetime.now(UTC), frozenset({self.owner})

        def find(connection: Connection) -> str | None:
            for each in tokens.holding(connection, name, now):
                if (each.role, each.owners, each.sources) == (role, owners, sources) and not each.any_owner:
                    return each.id
            return None

        def refuse_second(connection: Connection, _: str) -> None:
            if (there := find(connection)) is not None:
                raise _MadeMeanwhile(there)

        with store.read() as connection:
            found = find(connection)
        if found is not None:
            return found
        try:
            made, _ = tokens.create(
                store,
                role=role,
                name=name,
                owners=owners,
                sources=sources,
                actor="service",
                now=now,
                also=refuse_second,
            )
        except _MadeMeanwhile as other:
            return other.token_id
        return made.id

    def _run(self) -> None:
        """The thread."""
        try:
            with open_to_serve(self._settings) as service:
                asyncio.run(self._serve(service))
        except BaseException as error:  # noqa: BLE001  (it is raised where somebody waits for it)
            (self._ended if self._opened.done() else self._opened).set_exception(error)
        else:
            self._ended.set_result(None)

    async def _serve(self, service: Service) -> None:
        app = create_app(service)
        app.state.authenticator = self._known = _Known(service.store)
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._transport = InProcess(app, self._loop)
        async with app.router.lifespan_context(app):
            self._opened.set_result(service)
            await self._stop.wait()
            await self._transport.finish(LAND_SECONDS)


_RUNNING: WeakSet[_Running] = WeakSet()


def _close_all() -> None:
    """Closes what the program did not."""
    for each in list(_RUNNING):
        each.close()


# Not `atexit`, which comes when no pool takes work any more. It is what `concurrent.futures` ends its own threads by.
threading._register_atexit(_close_all)  # type: ignore[attr-defined]


def _open(
    database: str | Path | None,
    repo: Repos,
    owner: str,
    policy: str | Path | None,
    settings: Mapping[str, Any],
) -> _Running:
    url = None if database is None else str(database)
    if url is not None and "://" not in url:
        url = URL.create("sqlite", database=str(Path(url).absolute())).render_as_string()
    repos = [repo] if isinstance(repo, str | Path) else list(repo)
    try:
        read = load_settings(os.environ, database_url=url, repo=repos, policy=policy, **settings)
    except SettingsError as error:
        raise CannotOpen(str(error)) from error
    return _Running(read, owner)


class Gate(Client):
    """A gate in this program, without a server. It is a `Client` whose service is in a thread of this process, and asks
    as an agent that may assert no source. Close it, or use it as a context manager.

    `reviews` rules on what waits, as the owner: the person who runs this program. Give an agent `agent(…)`, which has
    no such way, and never the gate itself.
    """

    @classmethod
    def open(
        cls,
        database: str | Path | None = None,
        *,
        repo: Repos = (),
        owner: str = OWNER,
        policy: str | Path | None = None,
        timeout: float = 30.0,
        **settings: Any,
    ) -> Self:
        """Opens the database, a SQLite file that is made where there is none or a URL, and reads the repositories that
        claims cite. `owner` is whose memories they are, `timeout` is in seconds.

        What is not given is as `vouchgate serve` would have it here: VOUCHGATE_* variables, then vouchgate.toml;
        `settings` are the others by their names in small letters, such as `offline=True`. Raises CannotOpen, and
        ValueError for an owner or a time-out that cannot be one.
        """
        check_timeout(timeout)
        return cls(_open(database, repo, owner, policy, settings), timeout)

    def __init__(self, running: _Running, timeout: float) -> None:
        """Of `open`."""
        self._running, self._timeout = running, timeout
        agent, reviewer = running.both(timeout)
        self._connect(agent)
        self.reviews = Reviews.over(reviewer)

    submit = Client.save

    def agent(self, name: str = AGENT, *, sources: Iterable[str] = ()) -> Client:
        """A way in for an agent of this name, which cannot review. `sources` are those that it may assert, such as
        `"user"` for a part of the program that hears the user and no model. Raises ValueError."""
        return Client.over(self._running.config(Role.AGENT, name, sources, self._timeout))

    def recorder(self, name: str = HOST) -> Client:
        """A way in for the part of the program that hears users and runs tools: it can `record`, which no agent can,
        and can do nothing else."""
        return Client.over(self._running.config(Role.RECORDER, name, (), self._timeout))

    def close(self) -> None:
        """Waits for what is under way, and closes the database. Clients of `agent` and `reviews` end with it."""
        super().close()
        self.reviews.close()
        self._running.close()


class AsyncGate(AsyncClient):
    """`Gate` with coroutines. The service has an event loop of its own: it does not hold up yours, and works in any.
    `async with await AsyncGate.open(…) as gate`."""

    @classmethod
    async def open(
        cls,
        database: str | Path | None = None,
        *,
        repo: Repos = (),
        owner: str = OWNER,
        policy: str | Path | None = None,
        timeout: float = 30.0,
        **settings: Any,
    ) -> Self:
        """See `Gate.open`."""
        check_timeout(timeout)

        def close(opened: asyncio.Future[Self]) -> None:  # nobody waits for it any more
            if not opened.cancelled() and opened.exception() is None:
                asyncio.get_running_loop().run_in_executor(None, opened.result()._running.close)

        opening = asyncio.ensure_future(
            asyncio.to_thread(lambda: cls(_open(database, repo, owner, policy, settings), timeout))
        )
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(close)
            raise

    def __init__(self, running: _Running, timeout: float) -> None:
        """Of `open`."""
        self._running, self._timeout = running, timeout
        agent, reviewer = running.both(timeout)
        self._connect(agent)
        self.reviews = AsyncReviews.over(reviewer)

    submit = AsyncClient.save

    async def agent(self, name: str = AGENT, *, sources: Iterable[str] = ()) -> AsyncClient:
        """See `Gate.agent`."""
        config = await asyncio.to_thread(
            self._running.config, Role.AGENT, name, tuple(sources), self._timeout
        )
        return AsyncClient.over(config)

    async def recorder(self, name: str = HOST) -> AsyncClient:
        """See `Gate.recorder`."""
        config = await asyncio.to_thread(self._running.config, Role.RECORDER, name, (), self._timeout)
        return AsyncClient.over(config)

    async def aclose(self) -> None:
        """See `Gate.close`."""
        await super().aclose()
        await self.reviews.aclose()
        await asyncio.to_thread(self._running.close)
