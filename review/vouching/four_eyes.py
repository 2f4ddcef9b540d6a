"""Four eyes: the person behind an agent does not vouch for what it proposed, nor does who stands in for them. Asked in
the transaction of every act that vouches for something, under its owner's lock (ADR-0041, ADR-0046)."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection

from vouchgate.ingest.claims.people import Principal
from vouchgate.ingest.policy import Policy
from vouchgate.storage.queue import proposers

CODE = "four_eyes"
_OWN = "You are the person behind the agent that proposed this, so somebody else has to vouch for it."
_STANDS_IN = (
    "You stand in for the person behind the agent that proposed this, so somebody else has to vouch for it."
)
ENDED = "You do not rule for this owner any more."
_NOBODY = "It is not known who is behind your token, so nobody can see that it was not you who proposed this."
_UNNAMED = (
    "It is not known who is behind the agent that proposed this, so nobody can see that it was not you."
)


def find_problem(
    connection: Connection,
    principal: Principal,
    proposer: str | None,
    owner_id: str,
    *,
    policy: Policy,
    now: datetime,
) -> str | None:
    """What stands against this principal vouching for what `proposer`, a principal's id, proposed; a sentence."""
    if principal.id == proposer:
        return _OWN
    if not proposers.may_still_rule(connection, principal, owner_id, now):
        return ENDED
    if policy.four_eyes == "off":
        return None
    known = proposers.persons_of(connection, {principal.id, proposer or ""})
    mine, theirs = known.get(principal.id, principal.person), known.get(proposer or "")
    rulers = proposers.rulers(connection, owner_id, now)
    stands_in = any(one.id == mine and one.acts_for == theirs for one in rulers)
    two = mine is not None and theirs is not None and mine != theirs and not stands_in
    # Whoever rules in the stead of the proposer alone is nobody else.
    others = any(theirs not in (one.id, one.acts_for) for one in rulers)
    if two or (policy.four_eyes == "teams" and (theirs is None or not others)):
        return None
    if theirs is None:
        return _UNNAMED
    return _NOBODY if mine is None else _STANDS_IN if stands_in else _OWN
