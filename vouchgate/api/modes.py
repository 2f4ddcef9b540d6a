"""What stands beside the policy: modes, and stops, which those who rule for an owner set and end."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from vouchgate.api.base import JsonRoute, caller, owner_refused, owners_in_scope, problem_responses
from vouchgate.api.problems import ProblemError
from vouchgate.gate.incoming import owner_for
from vouchgate.ingest.claims.modes import ModeSwitch
from vouchgate.ingest.claims.people import Principal, Role
from vouchgate.review.rules import Act
from vouchgate.review.trust import modes as acts
from vouchgate.server.state import service_of
from vouchgate.storage import modes
from vouchgate.storage.identity import persons
from vouchgate.storage.identity.memberships import UnknownOwner
from vouchgate.wire import OwnerId, Wire, WireOut

router = APIRouter(prefix="/v1", route_class=JsonRoute, tags=["operations"])


class ModeList(WireOut):
    """What was set for the service, and for the owners of the caller, as it stands."""

    items: list[ModeSwitch]


class StopIn(Wire):
    """A stop, or the end of one: of one `agent` (a token's id, or a person's id or name), else of all; for the owner
    that `user_id` names, which a token of one owner may leave out. An admin for any owner stops the whole service
    without it."""

    stopped: bool = True
    reason: str = Field(min_length=1, max_length=500)
    agent: str | None = Field(default=None, min_length=1, max_length=200)
    user_id: str | None = None


@router.get("/modes", responses=problem_responses())
def list_modes(
    request: Request,
    principal: Annotated[Principal, Depends(caller(Act.READ_TEAM))],
    user_id: Annotated[OwnerId | None, Query()] = None,
) -> ModeList:
    """Whether claims are held, only watched, or not taken at all, and since when."""
    scope = owners_in_scope(principal, user_id)
    with service_of(request).store.read() as connection:
        if scope is None:
            return ModeList(items=modes.everything(connection))
        return ModeList(
            items=[one for one in modes.in_force(connection, scope) if one.owner_id or not one.agent]
        )


@router.post("/stops", responses=problem_responses(body=True))
async def set_stop(
    request: Request, sent: StopIn, principal: Annotated[Principal, Depends(caller(Act.STOP))]
) -> ModeSwitch:
    """Stops what an agent, or every agent, sends for an owner, or ends that. It counts at once."""
    store = service_of(request).store
    owner_id = "" if principal.any_owner and sent.user_id is None else owner_for(principal, sent.user_id)
    if not acts.may_stop(principal, owner_id):
        raise ProblemError(403, "owner_not_allowed", acts.REFUSED)

    def work() -> ModeSwitch:
        who = ""
        if sent.agent:
            with store.read() as connection:
                who = persons.member_id(connection, sent.agent, Role.AGENT)
        wanted = ModeSwitch(
            owner_id=owner_id,
            agent=who,
            stopped=sent.stopped,
            reason=sent.reason,
            by=principal.id,
            since=datetime.now(UTC),
        )
        acts.switch(store, wanted, principal)
        return wanted

    try:
        return await run_in_threadpool(work)
    except UnknownOwner as error:
        raise owner_refused(unknown=True) from error
    except PermissionError as error:
        raise ProblemError(403, "owner_not_allowed", str(error)) from error
    except ValueError as error:
        raise ProblemError(422, "agent_unknown", str(error)) from error
