"""Where a program sees whom its token makes it, before it relies on that."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends
from pydantic import BaseModel, Field

from vouchgate.api.base import JsonRoute, caller, problem_responses
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.people import Principal, Role
from vouchgate.review.rules import Act

router = APIRouter(prefix="/v1", route_class=JsonRoute, tags=["operations"])

Anybody = Annotated[Principal, Depends(caller(Act.READ_SELF))]


class WhoOut(BaseModel):
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
