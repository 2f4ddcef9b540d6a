"""What decided at a time: the policy, the file of owner rules, and what owners said beside them."""

from __future__ import annotations

import json
from datetime import datetime

from sqlalchemy import Connection

from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.storage import policies, switches
from vouchgate.storage.claims import publishers, standing_rulings
from vouchgate.storage.switches import Kind


class OwnersWord(Frozen):
    """What one owner had laid over the policy; standing rulings by name, with what they do."""

    owner_id: str
    trusted: tuple[str, ...] = ()
    banned: tuple[str, ...] = ()
    standing_rulings: tuple[str, ...] = ()


class InForce(Frozen):
    """What was in force at a time. Not `certain`: that was before starts were noted, and it is the policy that was
    first used last before then; a switch back to an earlier one would not be known. None: none is known."""

    at: datetime
    policy_digest: str | None
    since: datetime | None
    certain: bool
    owner_rules: str | None
    owners: tuple[OwnersWord, ...]


def in_force(connection: Connection, at: datetime, owners: frozenset[str] | None) -> InForce:
    """What was in force at a time; of these owners, or of all."""
    digest, since = policies.first_used_before(connection, at)
    noted = switches.in_force(connection, Kind.POLICY, at=at)
    if noted:
        digest, since = noted[0].about["digest"], noted[0].at
    rules = switches.in_force(connection, Kind.OWNER_RULES, at=at)
    text = None
    if rules:
        document = policies.document(connection, rules[0].about["digest"])
        text = None if document is None else json.loads(document)["owner_rules"]
    return InForce(
        at=at,
        policy_digest=digest,
        since=since,
        certain=bool(noted),
        owner_rules=text,
        owners=_words(connection, at, owners),
    )


def _words(connection: Connection, at: datetime, owners: frozenset[str] | None) -> tuple[OwnersWord, ...]:
    said: dict[tuple[str, str], str] = {}
    noted = set()
    for one in switches.in_force(connection, Kind.PUBLISHER, at=at, owners=owners):
        noted.add((one.owner_id, one.subject))
        if "until" in one.about and datetime.fromisoformat(one.about["until"]) > at:
            said[one.owner_id, one.subject] = one.about["trust"]
    for word in publishers.listing(connection, owners, at):  # of before they were kept for good
        if word.created_at <= at and (word.owner_id, word.publisher) not in noted:
            said[word.owner_id, word.publisher] = word.trust.value
    rulings: dict[str, list[str]] = {}
    for ruling in standing_rulings.at(connection, at, owners):
        rulings.setdefault(ruling.owner_id, []).append(f"{ruling.name} ({ruling.verdict.value})")
    return tuple(
        OwnersWord(
            owner_id=owner_id,
            trusted=tuple(name for (of, name), trust in said.items() if (of, trust) == (owner_id, "trusted")),
            banned=tuple(name for (of, name), trust in said.items() if (of, trust) == (owner_id, "banned")),
            standing_rulings=tuple(rulings.get(owner_id, ())),
        )
        for owner_id in sorted({*(of for of, _ in said), *rulings})
    )
