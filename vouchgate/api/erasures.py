"""Where an owner erases for good what came of a claim."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Request
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from vouchgate.api.base import JsonRoute, caller, erased_or_not_found, problem_responses
from vouchgate.api.problems import ProblemError
from vouchgate.ingest.claims.people import Principal
from vouchgate.review.ending.erasing import MOST_BASIS, EraseAsked, Erased, EraseRefused
from vouchgate.review.rules import Act
from vouchgate.server.state import service_of
from vouchgate.wire import Text, Wire, WireOut

router = APIRouter(prefix="/v1/erasures", route_class=JsonRoute, tags=["memories"])

Eraser = Annotated[Principal, Depends(caller(Act.ERASE))]


class ErasureIn(Wire):
    """On which legal basis, which is kept and so must not hold what is to go. `dry_run`: only say what would go."""

    basis: Annotated[Text, Field(min_length=1, max_length=MOST_BASIS)]
    dry_run: Annotated[bool, Field(strict=True)] = False


class ErasureOut(WireOut):
    """What went, by kind, and the ids of what is erased whole; or how many must ask for it. `in_free_pages`: copies may
    be in free pages of the database's files until these are written over, in the night at the latest."""

    status: Literal["erased", "dry_run", "asked"]
    erasure_id: str | None = None
    ids: tuple[str, ...] = ()
    counts: dict[str, int] = Field(default_factory=dict)
    in_free_pages: bool = False
    given: int = 1
    needed: int = 1


@router.post("/{item_id}", responses=problem_responses(404, 409, 410, body=True))
async def erase(request: Request, item_id: str, sent: ErasureIn, principal: Eraser) -> ErasureOut:
    """Erases a memory, an item of the queue or a decision with everything that came of its claim, for good. Where the
    owner's rules have several approve such a claim, as many must ask for this in the same words."""
    erasing = service_of(request).erasing
    answer = await run_in_threadpool(
        lambda: erasing.by_owner(principal, [item_id], sent.basis, datetime.now(UTC), dry_run=sent.dry_run)
    )
    match answer:
        case Erased(erasure_id, ids, counts, in_free_pages):
            status: Literal["erased", "dry_run"] = "dry_run" if sent.dry_run else "erased"
            named = None if sent.dry_run else erasure_id
            return ErasureOut(
                status=status, erasure_id=named, ids=ids, counts=counts, in_free_pages=in_free_pages
            )
        case EraseAsked(given, needed):
            return ErasureOut(status="asked", given=given, needed=needed)
        case EraseRefused(code, message):
            raise ProblemError(409, code, message)
        case _:
            raise await run_in_threadpool(erased_or_not_found, request, principal, item_id, "claim")
