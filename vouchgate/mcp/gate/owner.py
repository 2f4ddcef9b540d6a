"""Whose memory the server behind the gate is.

It has to be one owner's: whoever drains the outbox of all owners into one store mixes their memories.
"""

from __future__ import annotations

from vouchgate.client import AsyncClient
from vouchgate.client.models import Who
from vouchgate.ingest.claims.people import Role


class UnusableToken(Exception):
    """A token that this gate must not be given, or that does not say whose memory it is. The message is for people."""


def owner_of(who: Who, wanted: str | None) -> str:
    """The one owner. Raises Unusable."""
    if who.role is not Role.AGENT:
        raise UnusableToken(
            f"this token is for the role {who.role}, and a model must only be given an agent's: "
            "vouchgate token create --role agent --owner ID makes one"
        )
    if wanted is not None:
        if not (who.any_owner or wanted in who.owners):
            raise UnusableToken(f"this token is not for the owner {wanted}")
        return wanted
    if who.any_owner or len(who.owners) != 1:
        raise UnusableToken("this token is for several owners: say with --owner whose memory this server is")
    return who.owners[0]


class Owner:
    """Finds out once whose memory it is; until then, nothing is written."""

    def __init__(self, client: AsyncClient, wanted: str | None) -> None:
        self._client, self._wanted = client, wanted
        self._known: str | None = None

    async def id(self) -> str:
        """The owner. Raises Unusable, and VouchgateError when the gate cannot be asked."""
        if self._known is None:
            self._known = owner_of(await self._client.whoami(), self._wanted)
        return self._known
