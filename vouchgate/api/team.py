"""Where an admin says who acts for an owner, and everybody sees who their token makes them. Owners and other admins are
the operator's to make."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request
from pydantic import AwareDatetime, Field

from vouchgate.api.base import JsonRoute, caller, owner_refused, owners_in_scope, problem_responses
from vouchgate.api.problems import ProblemError
from vouchgate.gate.incoming import owner_for
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.people import Membership, Person, Principal, Role
from vouchgate.review.rules import Act
from vouchgate.server.state import service_of
from vouchgate.storage.identity import memberships, persons, tokens
from vouchgate.wire import OwnerId, Text, Wire, WireOut

router = APIRouter(prefix="/v1", route_class=JsonRoute, tags=["team"])

TeamReader = Annotated[Principal, Depends(caller(Act.READ_TEAM))]
TeamAdmin = Annotated[Principal, Depends(caller(Act.MANAGE_TEAM))]
Anybody = Annotated[Principal, Depends(caller(Act.READ_SELF))]
StandInGiver = Annotated[Principal, Depends(caller(Act.LET_STAND_IN))]
Who = Annotated[Text, Field(min_length=1, max_length=64)]  # a person's name or id, or a token's id
GivenRole = Literal[Role.AGENT, Role.RECORDER, Role.REVIEWER, Role.AUDITOR]  # no call makes an admin


class MemberOut(Membership):
    """A role for an owner, with what the person or token who has it is called. `acts_for` and `until`: it is in the
    stead of that person, called `absent`, and until then; left out where it is in their own right."""

    name: str | None
    absent: str | None = Field(default=None, exclude_if=lambda name: name is None)


class MemberList(WireOut):
    """Who has which role, by owner."""

    items: list[MemberOut]


class MemberIn(Wire):
    """A person or token, and the role it is to have. `user_id` may be left out by a token of one owner."""

    member: Who
    role: GivenRole
    user_id: OwnerId | None = None


class StandInIn(Wire):
    """Who is to rule `until` then in the stead of `acts_for`, both by name or id. A reviewer says so of none but
    themselves, and may leave that out."""

    member: Who
    until: AwareDatetime
    acts_for: Who | None = None
    user_id: OwnerId | None = None


class MemberChanged(WireOut):
    """Whether that changed anything."""

    changed: bool


class PersonIn(Wire):
    """What a person is to be called."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]


class PersonList(WireOut):
    """Everybody, by name, those who ended too."""

    items: list[Person]


@router.get("/members", responses=problem_responses())
def list_members(
    request: Request, principal: TeamReader, user_id: Annotated[OwnerId | None, Query()] = None
) -> MemberList:
    """Who has which role for the owners that the caller acts for. Tokens for any owner are not among them."""
    with service_of(request).store.read() as connection:
        found = memberships.of_owners(connection, owners_in_scope(principal, user_id), datetime.now(UTC))
        names = {one.id: one.name for one in persons.listing(connection)}
        names |= tokens.names(connection, {one.member_id for one in found} - names.keys())
    return MemberList(
        items=[
            MemberOut(**dict(one), name=names.get(one.member_id), absent=names.get(one.acts_for))
            for one in found
        ]
    )


@router.post("/members", responses=problem_responses(body=True))
def grant_membership(request: Request, sent: MemberIn, principal: TeamAdmin) -> MemberChanged:
    """Gives a person, or a single token, a role for an owner, from now on."""
    wanted = _membership(request, principal, sent.member, sent.role, sent.user_id)
    try:
        return MemberChanged(changed=memberships.grant(service_of(request).store, wanted, actor=principal.id))
    except memberships.UnknownOwner as error:
        raise owner_refused(unknown=True) from error


@router.delete("/members", responses=problem_responses())
def end_membership(
    request: Request,
    principal: TeamAdmin,
    member: Annotated[Who, Query()],
    role: GivenRole,
    user_id: Annotated[OwnerId | None, Query()] = None,
) -> MemberChanged:
    """Takes a role for an owner back, at once."""
    wanted = _membership(request, principal, member, role, user_id)
    store = service_of(request).store
    return MemberChanged(changed=memberships.end(store, wanted, actor=principal.id, now=wanted.since))


@router.post("/stand-ins", responses=problem_responses(body=True))
def let_stand_in(request: Request, sent: StandInIn, principal: StandInGiver) -> MemberChanged:
    """Lets a person rule for an owner in the stead of another, from now on and until a time of the next 90 days."""
    wanted = _stand_in(request, principal, sent.member, sent.acts_for, sent.user_id)
    if principal.role is Role.REVIEWER and wanted.acts_for != principal.person:
        raise ProblemError(403, "not_your_stead", "A reviewer has somebody stand in for themselves only.")
    try:
        memberships.let_stand_in(
            service_of(request).store,
            wanted.model_copy(update={"until": sent.until}),
            actor=principal.id,
        )
    except ValueError as error:
        raise ProblemError(422, "stand_in_refused", str(error)) from error
    return MemberChanged(changed=True)


@router.delete("/stand-ins", responses=problem_responses())
def end_stand_in(
    request: Request,
    principal: StandInGiver,
    member: Annotated[Who, Query()],
    acts_for: Annotated[Who | None, Query()] = None,
    user_id: Annotated[OwnerId | None, Query()] = None,
) -> MemberChanged:
    """Ends that before its time. Of reviewers, either of the two may."""
    wanted = _stand_in(request, principal, member, acts_for, user_id)
    if principal.role is Role.REVIEWER and principal.person not in (wanted.acts_for, wanted.member_id):
        raise ProblemError(403, "not_your_stead", "A reviewer ends this for themselves only.")
    store = service_of(request).store
    return MemberChanged(changed=memberships.end(store, wanted, actor=principal.id, now=wanted.since))


@router.get("/persons", responses=problem_responses())
def list_persons(request: Request, principal: TeamAdmin) -> PersonList:
    """The people behind tokens and sessions."""
    with service_of(request).store.read() as connection:
        return PersonList(items=persons.listing(connection))


@router.post("/persons", responses=problem_responses(409, body=True))
def create_person(request: Request, sent: PersonIn, principal: TeamAdmin) -> Person:
    """Makes a person, who has no right at all yet."""
    try:
        return persons.create(service_of(request).store, sent.name, actor=principal.id, now=datetime.now(UTC))
    except ValueError as error:
        raise ProblemError(409, "person_refused", str(error)) from error


def _stand_in(
    request: Request, principal: Principal, who: str, absent: str | None, user_id: str | None
) -> Membership:
    """Raises ProblemError and ClaimRefused for what cannot be."""
    owner_id = owner_for(principal, user_id)
    with service_of(request).store.read() as connection:
        found = [persons.find(connection, name or "") for name in (who, absent or principal.person)]
    ids = [one.id for one in found if one is not None]
    if len(ids) != len(found):
        raise ProblemError(422, "member_refused", "There is no such person, or nobody in whose stead it is.")
    now = datetime.now(UTC)
    return Membership(owner_id=owner_id, member_id=ids[0], role=Role.REVIEWER, since=now, acts_for=ids[1])


def _membership(
    request: Request, principal: Principal, who: str, role: Role, user_id: str | None
) -> Membership:
    """Raises ProblemError and ClaimRefused for what cannot be."""
    owner_id = owner_for(principal, user_id)
    try:
        with service_of(request).store.read() as connection:
            member_id = persons.member_id(connection, who, role)
    except ValueError as error:
        raise ProblemError(422, "member_refused", str(error)) from error
    return Membership(owner_id=owner_id, member_id=member_id, role=role, since=datetime.now(UTC))


class WhoOut(WireOut):
    """Who the service takes the caller for. `owners` it may act for, every one when `any_owner` is true, and with
    `new_owners` those that nobody has made yet. `person`: the id of who is behind the token, left out where
    that is not known."""

    id: str
    name: str
    role: Role
    owners: list[str]
    any_owner: bool
    new_owners: bool = Field(exclude_if=lambda may: not may)
    person: str | None = Field(exclude_if=lambda found: found is None)
    sources: list[Source]


@router.get("/whoami", responses=problem_responses())
async def whoami(principal: Anybody) -> WhoOut:
    """Who this token makes the caller: so that a program can see that it was given the right one."""
    return WhoOut(
        id=principal.id,
        name=principal.name,
        role=principal.role,
        owners=sorted(principal.owners),
        any_owner=principal.any_owner,
        new_owners=principal.new_owners,
        person=principal.person,
        sources=sorted(principal.sources),
    )
