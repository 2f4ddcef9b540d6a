"""How the MCP server reaches the gate, and with whose token: an agent's, or none at all.

A reviewer's token approves. Given to a model by mistake, it would do so for whoever talks the model into it. So before
a token is used for the first time the gate is asked whose it is, and one that is not an agent's is used for nothing.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from vouchgate.client import ApiError, AsyncClient, OddAnswer, Who
from vouchgate.client.config import configured
from vouchgate.ingest.claims.people import Role

RETRIES = 1  # a model, and somebody who waits for it, sit at the other end
SECONDS = 20.0  # for one answer: the gate reads sources for 10 s unless its policy says more
KEPT = 50  # clients of tokens that were brought; making one takes longer than most calls

MAKE_ONE = "vouchgate token create --role agent --owner ID makes one"


class TokenRefused(Exception):
    """A token that is used for nothing. `status` is the HTTP status that says so; the message is for people."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(slots=True)
class _CachedClient:
    """A client of a token that the gate called an agent's, and how many calls use it now."""

    client: AsyncClient
    used: int = 0


class GateConnection:
    """The way to the gate at a URL. With a token of its own it uses that; without, everybody brings one."""

    def __init__(self, url: str, own_token: str | None = None, *, keep: int = KEPT) -> None:
        """Raises ValueError when the URL or the token cannot be used. Nothing is asked yet. `keep`: how many clients
        of tokens that were brought stay open while nobody uses them."""
        configured(url, own_token or "none", timeout=SECONDS, retries=RETRIES, environment={})
        self.url = url
        self._own_token = own_token
        # By digest, the one used last at the end. Only of agents' tokens: a token's role never changes, and that it was
        # revoked the gate says each time.
        self._kept: OrderedDict[bytes, _CachedClient] = OrderedDict()
        self._keep = keep

    async def close(self) -> None:
        """Closes what connections it keeps."""
        kept, self._kept = self._kept, OrderedDict()
        for one in kept.values():
            await one.client.aclose()

    async def check_token(self, brought: str | None = None) -> None:
        """Returns when the gate says that the door's own token, or the one that was brought to a door without, is an
        agent's. Raises NotAdmitted when it is not, and VouchgateError when that could not be found out."""
        token = self._own_token or brought
        if token is None:
            raise TokenRefused(401, "bring an agent's token: `Authorization: Bearer vg_…`")
        if _digest(token) in self._kept:
            return
        async with AsyncExitStack() as closing:
            client = AsyncClient(self.url, token, timeout=SECONDS, retries=RETRIES)
            closing.push_async_callback(client.aclose)
            who = await self._identify_owner(client)
            if who.role is not Role.AGENT:
                message = f"this token is for the role {who.role}; a model must only be given an agent's: {MAKE_ONE}"
                raise TokenRefused(403, message)
            if _digest(token) not in self._kept:  # or another call was faster
                self._kept[_digest(token)] = _CachedClient(client)
                closing.pop_all()

    async def _identify_owner(self, client: AsyncClient) -> Who:
        try:
            return await client.whoami()
        except ApiError as error:
            if error.status == 401:
                message = "the gate does not know this token, or it is revoked or expired"
                raise TokenRefused(401, message) from None
            if error.status < 500:
                raise OddAnswer(
                    "what answers cannot say whose a token is: it is no gate, or an older one"
                ) from None
            raise

    @asynccontextmanager
    async def client(self, brought: str | None = None) -> AsyncIterator[AsyncClient]:
        """A client for one call, with the token that `check_token` would let in. Raises as that does."""
        await self.check_token(brought)
        digest = _digest(self._own_token or brought or "")
        kept = self._kept[digest]
        self._kept.move_to_end(digest)
        kept.used += 1
        try:
            yield kept.client
        finally:
            kept.used -= 1
            await self._forget()

    async def _forget(self) -> None:
        """Closes clients beyond those to keep, the longest unused first, but for those in use."""
        idle = [digest for digest, kept in self._kept.items() if not kept.used]
        # All of them first: while one is closed, others may be taken into use.
        dropped = [self._kept.pop(digest) for digest in idle[: max(0, len(self._kept) - self._keep)]]
        for one in dropped:
            await one.client.aclose()


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
