"""Where owners trust and ban publishers, for their own memories."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from pydantic import AfterValidator, Field
from starlette.concurrency import run_in_threadpool

from vouchgate.api.base import JsonRoute, caller, narrowed, problem_responses
from vouchgate.api.problems import ProblemError
from vouchgate.gate.incoming import owner_for
from vouchgate.ingest.claims.people import Principal
from vouchgate.ingest.claims.trust import PublisherTrust, Trust
from vouchgate.ingest.scoring.reputation import parse_publisher
from vouchgate.review.answers import ApprovalRefused
from vouchgate.review.rules import Act
from vouchgate.review.trust import publishers
from vouchgate.review.trust.backtest import Backtest
from vouchgate.review.trust.publishers import DAYS, MOST, MOST_DAYS, REFUSED, TooManyPublishers
from vouchgate.server.state import service_of
from vouchgate.wire import OwnerId, Wire, WireOut

router = APIRouter(prefix="/v1/publishers", route_class=JsonRoute, tags=["reviews"])

ReviewReader = Annotated[Principal, Depends(caller(Act.READ_REVIEWS))]
Reviewer = Annotated[Principal, Depends(caller(Act.REVIEW))]
Publisher = Annotated[str, AfterValidator(parse_publisher)]


class PublisherList(WireOut):
    """All that the owner says of publishers now, by name."""

    items: list[PublisherTrust]


class PublisherTrustIn(Wire):
    """An owner's word on a publisher, for so many days from now. `user_id` may be left out by a token of one owner."""

    publisher: Publisher
    trust: Trust
    days: int = Field(default=DAYS, ge=1, le=MOST_DAYS)
    user_id: str | None = None


class PublisherPreview(WireOut):
    """How many waiting claims cite a publisher, how many of them would have been stored had their owner trusted it, and
    how many of the newest memories rest on it. At most 200 of each are looked at. Of the `last` decisions, at most 500,
    those that cite it are made again as if the owner had trusted it then, and as if they had banned it."""

    waiting: int
    would_store: int
    memories: int
    last: int
    if_trusted: Backtest
    if_banned: Backtest


class PublisherCleared(WireOut):
    """Whether the owner had said anything of it."""

    cleared: bool


@router.get("", responses=problem_responses())
def list_publishers(
    request: Request, principal: ReviewReader, user_id: Annotated[OwnerId | None, Query()] = None
) -> PublisherList:
    """The publishers that the owner trusts or bans."""
    found = publishers.listing(service_of(request).store, narrowed(principal, user_id), datetime.now(UTC))
    return PublisherList(items=list(found))


@router.get("/preview", responses=problem_responses())
def preview_publisher(
    request: Request,
    publisher: Annotated[Publisher, Query()],
    principal: Reviewer,
    user_id: str | None = None,
) -> PublisherPreview:
    """What an owner's word on a publisher would bear on. Nothing is changed."""
    service, owner_id = service_of(request), _own(principal, user_id)
    seen = publishers.preview(
        service.store,
        principal,
        owner_id,
        publisher,
        policy=service.policy,
        detector=service.gate.examiner.detector,
        now=datetime.now(UTC),
    )
    return PublisherPreview(
        waiting=seen.waiting,
        would_store=seen.would_store,
        memories=seen.memories,
        last=seen.last,
        if_trusted=seen.trusted,
        if_banned=seen.banned,
    )


@router.post("", responses=problem_responses(409, body=True))
async def decide_publisher(request: Request, sent: PublisherTrustIn, principal: Reviewer) -> PublisherTrust:
    """Trusts or bans a publisher for the owner, in place of what was said of it before. It counts for claims that are
    examined from now on, and for memories when their sources are read again."""
    service, owner_id, now = service_of(request), _own(principal, sent.user_id), datetime.now(UTC)
    decide = partial(publishers.decide, service.store, principal, owner_id, sent.publisher, sent.trust)
    with _refusing():
        said = await run_in_threadpool(decide, days=sent.days, policy=service.policy, now=now)
    if isinstance(said, TooManyPublishers):
        detail = f"The owner says something of {MOST} publishers already; take one back first."
        raise ProblemError(409, "too_many_publishers", detail)
    if isinstance(said, ApprovalRefused):
        raise ProblemError(409, said.code, said.message)
    return said


@router.delete("", responses=problem_responses())
async def clear_publisher(
    request: Request,
    publisher: Annotated[Publisher, Query()],
    principal: Reviewer,
    user_id: str | None = None,
) -> PublisherCleared:
    """Takes the owner's word on a publisher back."""
    store, owner_id = service_of(request).store, _own(principal, user_id)
    with _refusing():
        cleared = await run_in_threadpool(
            publishers.clear, store, principal, owner_id, publisher, datetime.now(UTC)
        )
    return PublisherCleared(cleared=cleared)


def _own(principal: Principal, user_id: str | None) -> str:
    """The owner that the reviewer is. Raises ClaimRefused, and ProblemError for one that they only may act for."""
    owner_id = owner_for(principal, user_id)
    with _refusing():
        if not publishers.may_decide(principal, owner_id):
            raise PermissionError(REFUSED)
    return owner_id


@contextmanager
def _refusing() -> Iterator[None]:
    """Makes a problem of what is not the reviewer's, or not any more."""
    try:
        yield
    except PermissionError as error:
        raise ProblemError(403, "owner_not_allowed", str(error)) from error
