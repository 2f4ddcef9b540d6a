"""From a host name to its addresses: one look-up, in a thread, with an end."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

from vouchgate.ingest.net.addresses import Address
from vouchgate.ingest.net.fetched import HopFailure
from vouchgate.ingest.net.turns import Turns, asking

LOOKUP_SECONDS = 5.0  # for one name; what the system's resolver waits for one server
_LOOKUPS = 64  # threads at most, those included that hang in the resolver after their time was up
_OF_OWNER = 16  # of these: names whose servers never answer hang there far longer than anybody waits

Resolve = Callable[[str], Sequence[str]]  # a name to its addresses as text; may block; raises OSError


def system_resolve(host: str) -> tuple[str, ...]:
    """What the system says the addresses are, in its order of preference. Blocks. Raises socket.gaierror."""
    answers = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(address[0]) for _, _, _, _, address in answers))


class NameResolver:
    """Look-ups that never hold up the event loop, nor anything else that uses threads."""

    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve
        self._turns = Turns(_OF_OWNER, _LOOKUPS)

    async def addresses(self, host: str) -> tuple[Address, ...] | HopFailure:
        """All addresses of a name, at least one."""
        try:
            async with asyncio.timeout(LOOKUP_SECONDS):
                answer = await self._look_up(host)
        except TimeoutError:
            return HopFailure("dns", f"no answer for {host} within {LOOKUP_SECONDS:g} s")
        if isinstance(answer, socket.gaierror) and answer.errno == socket.EAI_NONAME:
            return HopFailure("missing_host", f"the name {host} does not exist")
        if isinstance(answer, Exception):
            return HopFailure("dns", f"{host} could not be looked up ({answer})")
        try:
            addresses = tuple(ipaddress.ip_address(text) for text in answer)
        except ValueError:
            return HopFailure("dns", f"the answer for {host} holds something that is no address")
        return addresses or HopFailure("dns", f"{host} has no address")

    async def _look_up(self, host: str) -> Sequence[str] | Exception:
        loop, owner_id = asyncio.get_running_loop(), asking()
        done: asyncio.Future[Sequence[str] | Exception] = loop.create_future()

        def finish(answer: Sequence[str] | Exception) -> None:
            self._turns.give_back(owner_id)
            if not done.done():
                done.set_result(answer)

        def work() -> None:
            answer: Sequence[str] | Exception
            try:
                answer = self._resolve(host)
            except Exception as error:  # noqa: BLE001  (whatever a resolver raises is an answer here)
                answer = error
            with suppress(RuntimeError):  # the loop has been closed, and nobody waits any more
                loop.call_soon_threadsafe(finish, answer)

        await self._turns.take(owner_id)
        # A thread of its own: those of the shared pool are few, and the program's end would wait for them.
        try:
            threading.Thread(target=work, name="look-up", daemon=True).start()
        except RuntimeError as error:  # no more threads
            finish(error)
        return await done
