"""What visitors say about an item without ruling on it, and letting go of one: one form, with a button for each."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from urllib.parse import urlsplit

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import QueryParams
from starlette.responses import Response

from vouchgate.review.attending import attention
from vouchgate.review.attending.attention import Attended, AttentionAnswer, NotPossible
from vouchgate.server.state import service_of
from vouchgate.web.items import version_of
from vouchgate.web.listing import listing_of
from vouchgate.web.pages import PageProblem
from vouchgate.web.queue import MOST_REASON, redirect_with_result
from vouchgate.web.session import Form, SignedIn, form, own_path, see_other
from vouchgate.web.told import ActResult, describe_result

router = APIRouter(include_in_schema=False)

_SNOOZES = {"1d": timedelta(days=1), "3d": timedelta(days=3), "7d": timedelta(days=7)}


@router.post("/review/items/{item_id}/attend")
async def attend(request: Request, visitor: SignedIn, item_id: str) -> Response:
    """Does what the button says; on to the next claim where this one left the list."""
    (fields, visitor), service = await form(request, visitor), service_of(request)
    said, now = fields.get("say", ""), datetime.now(UTC)
    act = _act(said, fields, now)
    answer = await run_in_threadpool(act, service.queue, visitor.principal, item_id)
    match answer:
        case Attended():
            back = own_path(fields.get("back"))
            listing = listing_of(QueryParams(urlsplit(back).query))
            here = listing.href(f"/review/items/{item_id}")
            if said.startswith(("look", "assign")):
                return see_other(request, here)  # which shows it
            away = here if said == "resume" else own_path(fields.get("next") or back)
            return redirect_with_result(request, away, ActResult(item_id, said, "", True, 200))
        case NotPossible():
            raise PageProblem(409, answer.message)
        case _:
            result = describe_result(item_id, answer, service.policy)
            raise PageProblem(result.status, result.message)


def _act(said: str, fields: Form, now: datetime) -> Callable[..., AttentionAnswer]:
    if said.startswith("snooze-") and said[7:] in _SNOOZES:
        return partial(attention.snooze, until=now + _SNOOZES[said[7:]], now=now)
    if said == "assign":
        return partial(attention.assign, to=fields.get("to", "").strip(), now=now)
    if said == "send-back":
        question = fields.get("question", "")
        return partial(attention.send_back, version=version_of(fields), question=question, now=now)
    if said == "let-go":
        reason = fields.get("why", "").strip() or "it cannot be decided well"
        return partial(attention.let_go_one, version=version_of(fields), reason=reason[:MOST_REASON], now=now)
    plain: dict[str, Callable[..., AttentionAnswer]] = {
        "resume": attention.resume,
        "look": attention.look,
        "assign-me": partial(attention.assign, to="me"),
        "assign-nobody": partial(attention.assign, to="nobody"),
        "look-stop": partial(attention.look, stop=True),
    }
    if said not in plain:
        raise PageProblem(422, "This form asks for nothing that can be done here.")
    return partial(plain[said], now=now)
