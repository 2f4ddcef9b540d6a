"""Who may do what: one pure table, role by role. The owner of a thing is asked apart from the act.

An agent is given no act that lets a queued claim pass, and a reviewer none that submits one, so the
proposer of a claim is never its approver.
"""

from __future__ import annotations

from enum import StrEnum

from vouchgate.ingest.claims.people import Principal, Role
from vouchgate.ingest.claims.waiting import PendingMemory


class Act(StrEnum):
    """What a principal can ask for. Whose data it may be asked for is `Principal.may_act_for`."""

    SUBMIT = "submit"
    CHECK = "check"
    READ_MEMORY = "read_memory"
    READ_DECISION = "read_decision"
    READ_EVENTS = "read_events"
    READ_IMPACT = "read_impact"  # what rests on a source, waiting claims too
    READ_REVIEWS = "read_reviews"
    READ_RULINGS = "read_rulings"  # what waits and waited, with notes and votes
    REVIEW = "review"  # approve or reject
    CLEAR = "clear"  # what an audit found in a memory, and have the rest go to the gate
    RETRACT = "retract"
    ERASE = "erase"  # for good, with all that came of it
    READ_OWN_PENDING = "read_own_pending"  # what became of the claims that this very principal submitted
    DELIVER = "deliver"  # take what a store behind the gate is to be told, and say what came of it
    RETRY_DELIVERY = "retry_delivery"  # put a dead letter back
    READ_DOCUMENT = "read_document"  # what came of a document; of an agent, one that it sent itself
    DELETE_DOCUMENT = "delete_document"  # and its report; of an agent, one that it sent itself
    RECORD = "record"  # put down what a user said or a tool returned
    READ_SELF = "read_self"  # who it is, and what it was granted
    READ_TEAM = "read_team"  # who has which role for an owner
    MANAGE_TEAM = "manage_team"  # give and take such roles
    STOP = "stop"  # what agents send for an owner, and end that
    LET_STAND_IN = "let_stand_in"  # have somebody rule in one's stead; of an admin, in anybody's


_EVERYBODY = frozenset({Act.READ_MEMORY, Act.READ_DECISION, Act.READ_DOCUMENT, Act.READ_SELF})

ALLOWED: dict[Role, frozenset[Act]] = {
    Role.AGENT: _EVERYBODY | {Act.SUBMIT, Act.CHECK, Act.READ_OWN_PENDING, Act.DELIVER, Act.DELETE_DOCUMENT},
    Role.RECORDER: frozenset({Act.RECORD, Act.READ_SELF}),
    Role.REVIEWER: _EVERYBODY
    | {
        Act.READ_REVIEWS,
        Act.READ_RULINGS,
        Act.READ_IMPACT,
        Act.REVIEW,
        Act.CLEAR,
        Act.RETRACT,
        Act.ERASE,
        Act.RETRY_DELIVERY,
        Act.DELETE_DOCUMENT,
        Act.READ_TEAM,
        Act.STOP,
        Act.LET_STAND_IN,
    },
    Role.AUDITOR: _EVERYBODY | {Act.READ_EVENTS, Act.READ_IMPACT, Act.READ_RULINGS, Act.READ_TEAM},
    Role.ADMIN: _EVERYBODY
    | {Act.READ_EVENTS, Act.READ_IMPACT, Act.READ_TEAM, Act.MANAGE_TEAM, Act.STOP, Act.LET_STAND_IN},
}


def is_allowed(principal: Principal, act: Act) -> bool:
    """Whether the role of this principal allows the act at all; a role without a row may do nothing."""
    return act in ALLOWED.get(principal.role, frozenset())


def is_owner(principal: Principal, owner_id: str) -> bool:
    """Whether this principal *is* the owner, not merely somebody who may act for it: a reviewer who was
    given exactly this owner. `any_owner` does not make anybody an owner."""
    return principal.role is Role.REVIEWER and not principal.any_owner and owner_id in principal.owners


def may_rule_on(principal: Principal, item: PendingMemory) -> bool:
    """Whether this principal may approve or reject this item: its owner, and not who submitted it."""
    return (
        is_allowed(principal, Act.REVIEW)
        and is_owner(principal, item.owner_id)
        and principal.id != item.submitted_by
    )
