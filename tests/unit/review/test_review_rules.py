"""Who may do what, every role and every act; and that no agent can ever rule on a claim."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vouchgate.ingest.claims.claim import MemoryType, Source
from vouchgate.ingest.claims.people import Principal, Role
from vouchgate.ingest.claims.waiting import PendingMemory, ReviewStatus
from vouchgate.review.rules import ALLOWED, Act, is_allowed, is_owner, may_rule_on

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)

YES, NO = True, False
TABLE: dict[Act, dict[Role, bool]] = {
    #                   agent,            recorder,            reviewer,            auditor,            admin
    Act.SUBMIT: {Role.AGENT: YES, Role.RECORDER: NO, Role.REVIEWER: NO, Role.AUDITOR: NO, Role.ADMIN: NO},
    Act.CHECK: {Role.AGENT: YES, Role.RECORDER: NO, Role.REVIEWER: NO, Role.AUDITOR: NO, Role.ADMIN: NO},
    Act.READ_MEMORY: {
        Role.AGENT: YES,
        Role.RECORDER: NO,
        Role.REVIEWER: YES,
        Role.AUDITOR: YES,
        Role.ADMIN: YES,
    },
    Act.READ_DECISION: {
        Role.AGENT: YES,
        Role.RECORDER: NO,
        Role.REVIEWER: YES,
        Role.AUDITOR: YES,
        Role.ADMIN: YES,
    },
    Act.READ_DOCUMENT: {
        Role.AGENT: YES,
        Role.RECORDER: NO,
        Role.REVIEWER: YES,
        Role.AUDITOR: YES,
        Role.ADMIN: YES,
    },
    Act.READ_EVENTS: {
        Role.AGENT: NO,
        Role.RECORDER: NO,
        Role.REVIEWER: NO,
        Role.AUDITOR: YES,
        Role.ADMIN: YES,
    },
    Act.READ_REVIEWS: {
        Role.AGENT: NO,
        Role.RECORDER: NO,
        Role.REVIEWER: YES,
        Role.AUDITOR: NO,
        Role.ADMIN: NO,
    },
    Act.READ_RULINGS: {
        Role.AGENT: NO,
        Role.RECORDER: NO,
        Role.REVIEWER: YES,
        Role.AUDITOR: YES,
        Role.ADMIN: NO,
    },
    Act.REVIEW: {Role.AGENT: NO, Role.RECORDER: NO, Role.REVIEWER: YES, Role.AUDITOR: NO, Role.ADMIN: NO},
    Act.RETRACT: {Role.AGENT: NO, Role.RECORDER: NO, Role.REVIEWER: YES, Role.AUDITOR: NO, Role.ADMIN: NO},
    Act.READ_OWN_PENDING: {
        Role.AGENT: YES,
        Role.RECORDER: NO,
        Role.REVIEWER: NO,
        Role.AUDITOR: NO,
        Role.ADMIN: NO,
    },
    Act.DELIVER: {Role.AGENT: YES, Role.RECORDER: NO, Role.REVIEWER: NO, Role.AUDITOR: NO, Role.ADMIN: NO},
    Act.RETRY_DELIVERY: {
        Role.AGENT: NO,
        Role.RECORDER: NO,
        Role.REVIEWER: YES,
        Role.AUDITOR: NO,
        Role.ADMIN: NO,
    },
    Act.READ_SELF: {
        Role.AGENT: YES,
        Role.RECORDER: YES,
        Role.REVIEWER: YES,
        Role.AUDITOR: YES,
        Role.ADMIN: YES,
    },
}
TABLE[Act.DELETE_DOCUMENT] = dict.fromkeys(Role, NO) | {Role.AGENT: YES, Role.REVIEWER: YES}
TABLE[Act.READ_TEAM] = dict.fromkeys(Role, YES) | {Role.AGENT: NO, Role.RECORDER: NO}
TABLE[Act.MANAGE_TEAM] = dict.fromkeys(Role, NO) | {Role.ADMIN: YES}
TABLE[Act.LET_STAND_IN] = dict.fromkeys(Role, NO) | {Role.ADMIN: YES, Role.REVIEWER: YES}
TABLE[Act.STOP] = TABLE[Act.LET_STAND_IN]
TABLE[Act.READ_IMPACT] = TABLE[Act.READ_TEAM]
TABLE[Act.RECORD] = dict.fromkeys(Role, NO) | {Role.RECORDER: YES}
TABLE[Act.CLEAR] = TABLE[Act.ERASE] = dict.fromkeys(Role, NO) | {Role.REVIEWER: YES}

PRINCIPALS = st.builds(
    Principal,
    id=st.sampled_from(["p1", "p2", "p3"]),
    name=st.just("anybody"),
    role=st.sampled_from(Role),
    owners=st.frozensets(st.sampled_from(["ann", "bob", ""])),
    any_owner=st.booleans(),
    sources=st.frozensets(st.sampled_from(Source)),
)


def item(owner_id: str, submitted_by: str) -> PendingMemory:
    """A waiting item of this owner."""
    return PendingMemory(
        id="rev_1",
        owner_id=owner_id,
        memory_type=MemoryType.FACT,
        content="The nightly export leaves at four.",
        source=Source.AI_SYNTHESIS,
        reason="Ungrounded assertion needs verification",
        status=ReviewStatus.PENDING,
        version=1,
        seen=1,
        created_at=NOW,
        expires_at=NOW,
        decision_id="dec_1",
        rule="ungrounded",
        priority_at=NOW,
        submitted_by=submitted_by,
    )


def test_the_table_here_names_every_act_and_role() -> None:
    assert set(TABLE) == set(Act)
    assert all(set(row) == set(Role) for row in TABLE.values())
    assert set(ALLOWED) == set(Role)


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("act", Act)
def test_every_role_and_act(role: Role, act: Act) -> None:
    principal = Principal(id="p", name="n", role=role, owners=frozenset({"ann"}))
    assert is_allowed(principal, act) is TABLE[act][role]


# One principal in fifty is its own submitter and may rule otherwise: chance alone may miss it.
@example(Principal(id="p1", name="n", role=Role.REVIEWER, owners=frozenset({"ann"})), "ann", "p1")
@given(PRINCIPALS, st.sampled_from(["ann", "bob", ""]), st.sampled_from(["p1", "p2", "p3"]))
def test_only_the_owners_reviewer_rules_and_never_the_submitter(
    principal: Principal, owner_id: str, submitted_by: str
) -> None:
    allowed = may_rule_on(principal, item(owner_id, submitted_by))
    assert allowed == (
        principal.role is Role.REVIEWER
        and not principal.any_owner
        and owner_id in principal.owners
        and principal.id != submitted_by
    )


@given(PRINCIPALS)
def test_who_may_submit_may_not_rule(principal: Principal) -> None:
    assert not (is_allowed(principal, Act.SUBMIT) and is_allowed(principal, Act.REVIEW))
    assert not (
        is_allowed(principal, Act.SUBMIT) and any(is_owner(principal, owner) for owner in ("ann", "bob"))
    )
