"""Where stores behind the gate fetch what they are to be told, and say what came of it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from pydantic import Field

from vouchgate.api.base import (
    MAX_PAGE,
    JsonRoute,
    caller,
    not_found,
    owners_in_scope,
    problem_responses,
)
from vouchgate.api.problems import ProblemError
from vouchgate.gate import deliveries as acts
from vouchgate.gate.deliveries import LeaseNotHeld, NotDeadLetter, NotServed, Outdated
from vouchgate.ingest.claims.leased import Delivery
from vouchgate.ingest.claims.people import Principal
from vouchgate.review.rules import Act, is_owner
from vouchgate.server.state import service_of
from vouchgate.storage.outgoing import deliveries
from vouchgate.storage.outgoing.deliveries import (
    DeliveryFilter,
    DeliveryRecord,
    DeliveryState,
)
from vouchgate.storage.outgoing.streams import MOST
from vouchgate.wire import OwnerId, SinkName, Text, Wire, WireOut

router = APIRouter(prefix="/v1/deliveries", route_class=JsonRoute, tags=["deliveries"])

MemoryReader = Annotated[Principal, Depends(caller(Act.READ_MEMORY))]
Deliverer = Annotated[Principal, Depends(caller(Act.DELIVER))]
RetryingOwner = Annotated[Principal, Depends(caller(Act.RETRY_DELIVERY))]
LeaseToken = Annotated[Text, Field(min_length=1, max_length=100)]


class LeaseIn(Wire):
    """Whose deliveries are asked for; without `user_id`, those of every owner that the token acts for."""

    sink: SinkName
    user_id: OwnerId | None = None
    most: Annotated[int, Field(ge=1, le=MOST, strict=True)] = 20


class DoneIn(Wire):
    """The sink has it."""

    lease: LeaseToken


class FailedIn(Wire):
    """A try came to nothing. `final`: no other one can do better."""

    lease: LeaseToken
    error: Annotated[Text, Field(max_length=8192, description="The owner is shown its first 500 characters.")]
    final: Annotated[bool, Field(strict=True)] = False


class LeaseOut(WireOut):
    """What was leased, in order per owner; empty when nothing is due, or somebody else is at it."""

    deliveries: list[Delivery]


class DeliveryPage(WireOut):
    """Deliveries, the newest of an owner first; `next` is the `after` of the following page, null on the
    last."""

    items: list[DeliveryRecord]
    next: str | None


@router.post("/lease", responses=problem_responses(body=True))
def lease_deliveries(request: Request, sent: LeaseIn, principal: Deliverer) -> LeaseOut:
    """The oldest deliveries to a sink that are due, for 60 seconds. A later one never comes before an earlier one of
    the same owner was delivered or given up. 403 `sink_of_another_token` when another token serves the sink."""
    owners = owners_in_scope(principal, sent.user_id)
    store, now = service_of(request).store, datetime.now(UTC)
    found = acts.lease_deliveries(store, sent.sink, owners, now, sent.most, token_id=principal.id)
    if isinstance(found, NotServed):
        raise _not_served(found)
    return LeaseOut(deliveries=[handed.told() for handed in found])


@router.post("/{delivery_id}/done", responses=problem_responses(404, 409, body=True))
def delivery_done(request: Request, delivery_id: str, sent: DoneIn, principal: Deliverer) -> DeliveryRecord:
    """The sink has it. What is left of the lease lasts another 60 seconds. Saying it again changes nothing."""
    owners, store = owners_in_scope(principal, None), service_of(request).store
    return _record_or_problem(
        acts.mark_done(store, owners, delivery_id, sent.lease, datetime.now(UTC), token_id=principal.id)
    )


@router.post("/{delivery_id}/failed", responses=problem_responses(404, 409, body=True))
def delivery_failed(
    request: Request, delivery_id: str, sent: FailedIn, principal: Deliverer
) -> DeliveryRecord:
    """A try came to nothing: it is due again later, and what was leased with it waits behind it. After the eighth, or
    with `final`, it is a dead letter, and what comes after it goes on."""
    return _record_or_problem(
        acts.mark_failed(
            service_of(request).store,
            owners_in_scope(principal, None),
            delivery_id,
            sent.lease,
            datetime.now(UTC),
            # A store's error may tell how to sign in to it.
            error=service_of(request).gate.examiner.mask_text(sent.error),
            final=sent.final,
            token_id=principal.id,
        )
    )


def _not_served(answer: NotServed) -> ProblemError:
    detail = (
        f"Another token serves the sink {answer.sink} of this owner; nothing was handed out or noted. "
        "The operator can hand it to this one: vouchgate delivery hand-over."
    )
    return ProblemError(403, "sink_of_another_token", detail)


def _record_or_problem(answer: DeliveryRecord | LeaseNotHeld | NotServed | None) -> DeliveryRecord:
    match answer:
        case DeliveryRecord():
            return answer
        case NotServed():
            raise _not_served(answer)
        case LeaseNotHeld():
            detail = "This lease does not hold the delivery, or does not any more; nothing was noted."
            current = answer.record.model_dump(mode="json")
            raise ProblemError(409, "lease_lost", detail, current=current)
        case None:
            raise not_found("delivery")


@router.get("", responses=problem_responses())
def list_deliveries(
    request: Request,
    principal: MemoryReader,
    *,
    user_id: Annotated[OwnerId | None, Query()] = None,
    sink: Annotated[str | None, Query(pattern=r"^[a-z0-9][a-z0-9._:-]{0,63}$")] = None,
    state: DeliveryState | None = None,
    memory_id: Annotated[str | None, Query(pattern=r"^mem_[0-9a-f]{32}$")] = None,
    after: Annotated[str | None, Query(max_length=300, pattern=r"^[0-9]{1,18}:[^\x00]*$")] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 50,
) -> DeliveryPage:
    """What stores behind the gate were told, or are to be, and where each of it stands."""
    number, _, owner = (after or "").partition(":")
    wanted = DeliveryFilter(
        owners=owners_in_scope(principal, user_id),
        sink=sink,
        state=state,
        memory_id=memory_id,
        after=(owner, int(number)) if after else None,
        limit=limit,
    )
    with service_of(request).store.read() as connection:
        found = deliveries.search(connection, wanted)
    last = f"{found[-1].seq}:{found[-1].owner_id}" if len(found) == limit else None
    return DeliveryPage(items=found, next=last)


@router.post("/{delivery_id}/retry", responses=problem_responses(404, 409))
def retry_delivery(request: Request, delivery_id: str, principal: RetryingOwner) -> DeliveryRecord:
    """Puts a dead letter back, to be tried as often as a new one. What was delivered since has overtaken it."""
    owners = frozenset(owner for owner in principal.owners if is_owner(principal, owner))
    store, now = service_of(request).store, datetime.now(UTC)
    answer = acts.retry(store, owners, delivery_id, actor=principal.id, now=now)
    match answer:
        case DeliveryRecord():
            return answer
        case NotDeadLetter():
            raise _not_now("not_dead", f"It is {answer.record.state.value}, no dead letter.", answer.record)
        case Outdated():
            detail = "The same place was told something later, which this one would undo."
            raise _not_now("outdated", detail, answer.record)
        case None:
            raise not_found("delivery")


def _not_now(code: str, detail: str, record: DeliveryRecord) -> ProblemError:
    return ProblemError(409, code, detail, current=record.model_dump(mode="json"))
