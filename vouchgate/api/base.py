"""What every route shares: reading a body, knowing the caller, and documenting answers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import Depends, Request, Response
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from pydantic_core import from_json
from starlette.concurrency import run_in_threadpool

from vouchgate.api.problems import MEDIA_TYPE, ProblemError
from vouchgate.gate.incoming import owner_for
from vouchgate.ingest.claims.people import Principal, Role
from vouchgate.ingest.language.spelling import did_you_mean
from vouchgate.review.rules import Act, is_allowed
from vouchgate.server.auth import Authenticator, RateLimit
from vouchgate.server.metrics import Metrics
from vouchgate.server.state import service_of
from vouchgate.storage import modes
from vouchgate.storage.erasing import tombstones
from vouchgate.storage.log.reads import note_read
from vouchgate.storage.modes import Halted
from vouchgate.wire import MAX_BODY_BYTES

MAX_PAGE = 200
# What a stopped agent does.
STOPPED = "Do not send anything again: tell the user that somebody stopped this, and who can look into it."

bearer = HTTPBearer(auto_error=False, description="`vg_…`, from `vouchgate token create`.")


class JsonRequest(Request):
    """Bounds the body, and parses JSON strictly: no NaN, no unpaired surrogates, bounded depth. A fault is
    the sender's, a 400."""

    most_bytes = MAX_BODY_BYTES

    async def body(self) -> bytes:
        if not hasattr(self, "_body"):
            chunks: list[bytes] = []
            size = 0
            if int(self.headers.get("content-length") or 0) > self.most_bytes:
                raise _too_large(self.most_bytes)
            async for chunk in self.stream():
                size += len(chunk)
                if size > self.most_bytes:
                    raise _too_large(self.most_bytes)
                chunks.append(chunk)
            self._body = b"".join(chunks)
        return self._body

    async def json(self) -> Any:
        if not hasattr(self, "_parsed"):
            try:
                self._parsed = from_json(await self.body(), allow_inf_nan=False)
            except ValueError as error:
                raise ProblemError(400, "malformed_json", f"The body is not valid JSON: {error}") from error
        return self._parsed


def _too_large(most: int) -> ProblemError:
    detail = f"The body is over {most} bytes."
    return ProblemError(413, "body_too_large", detail, headers={"Connection": "close"})


def require_json(request: Request) -> None:
    """Raises 415 when the body does not say that it is JSON."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise ProblemError(415, "not_json", "Send the body with `Content-Type: application/json`.")


class JsonRoute(APIRoute):
    """A route whose requests are `JsonRequest`s. A body must say that it is JSON."""

    request_class = JsonRequest

    def get_route_handler(self) -> Callable[[Request], Any]:
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            if self.body_field is not None:
                require_json(request)
            answer: Response = await handler(self.request_class(request.scope, request.receive))
            return answer

        return handle


def metrics_of(request: Request) -> Metrics:
    """The service's counters."""
    metrics: Metrics = request.app.state.metrics
    return metrics


def limit_rate(
    request: Request, principal: Principal, claims: int = 1, *, taken: int = 0, of_records: bool = False
) -> None:
    """Raises 429 with Retry-After when the principal sends more claims, or records, than the policy allows. `taken` of
    them were counted before."""
    state, policy = request.app.state, service_of(request).policy
    limit: RateLimit = state.record_rate_limit if of_records else state.rate_limit
    most = policy.records.per_minute if of_records else policy.limits.claims_per_minute
    seconds = limit.wait(principal.id, claims, taken=taken)
    if seconds > 0:
        raise ProblemError(
            429,
            "rate_limited",
            f"This token may send {most} {'records' if of_records else 'claims'} a minute.",
            headers={"Retry-After": str(int(seconds) + 1)},
        )


def token_needed() -> ProblemError:
    """The answer to a request without a token that holds."""
    return ProblemError(
        401,
        "token_needed",
        "Send `Authorization: Bearer vg_…` with a token that is known, not revoked and not expired.",
        headers={"WWW-Authenticate": "Bearer"},
    )


def caller(act: Act) -> Callable[..., Any]:
    """A dependency: the principal that calls, which must be one who may do `act`. 401 and 403 otherwise."""

    async def known(request: Request, _: Annotated[Any, Depends(bearer)]) -> Principal:
        return await principal_of(request, act)

    return known


async def principal_of(request: Request, act: Act, *, remembered: bool = False) -> Principal:
    """The principal that calls; see `caller`. With `remembered` the token may have been revoked meanwhile:
    only for what rechecks it before it writes."""
    authenticator: Authenticator = request.app.state.authenticator
    look_up = authenticator.cached_principal if remembered else authenticator.principal
    principal = await look_up(request.headers.get("authorization"))
    if principal is None:
        raise token_needed()
    if not is_allowed(principal, act):
        raise ProblemError(403, "role_not_allowed", f"The role {principal.role.value} may not do this.")
    if request.scope["query_string"]:
        _refuse_unknown_query(request)
    if principal.role is Role.AUDITOR:
        store, path = service_of(request).store, request.url.path
        await run_in_threadpool(lambda: note_read(store, principal, path, now=datetime.now(UTC)))
    return principal


def _refuse_unknown_query(request: Request) -> None:
    """A misspelt filter that is ignored would answer with too much, so it is an error."""
    route: APIRoute = request.scope["route"]
    known = {parameter.alias for parameter in route.dependant.query_params}
    unknown = [name for name in request.query_params if name not in known]
    if unknown:
        expected = ", ".join(sorted(known)) or "none"
        raise ProblemError(
            422,
            "unknown_parameter",
            f"There is no query parameter {unknown[0][:50]!a} here{did_you_mean(unknown[0], known)}; "
            f"known are: {expected}.",
        )


def owners_in_scope(principal: Principal, user_id: str | None) -> frozenset[str] | None:
    """The owners a read is limited to: the one asked for, else all of the principal's; None is every owner.

    Raises ClaimRefused (403) when the principal may not act for the one asked for.
    """
    if user_id is not None:
        return frozenset({owner_for(principal, user_id)})
    return None if principal.any_owner else principal.owners


def narrowed(principal: Principal, user_id: str | None) -> Principal:
    """The same, but for the owner that `user_id` names only, if it names one. Raises ClaimRefused (403) for one that it
    may not act for."""
    if user_id is None:
        return principal
    return principal.model_copy(update={"owners": frozenset({owner_for(principal, user_id)})})


def owner_refused(*, unknown: bool) -> ProblemError:
    """The answer to a principal that may not write for the owner it names."""
    if unknown:
        detail = "There is no such owner. Whoever runs the service makes one with `vouchgate owners create`."
        return ProblemError(403, "owner_unknown", detail)
    return ProblemError(403, "owner_not_allowed", "This token does not act for that user_id any more.")


def halted_problem(found: Halted) -> ProblemError:
    """The answer to a write while nothing is taken."""
    if found.read_only:
        return ProblemError(503, "read_only", found.sentence)
    return ProblemError(403, "stopped", found.sentence, next_step=STOPPED)


async def refuse_halted(request: Request, principal: Principal, owner_id: str) -> None:
    """Raises the problem of what is sent for an owner while nothing is taken of this principal."""

    def look() -> Halted | None:
        with service_of(request).store.read() as connection:
            return modes.halted(connection, owner_id, {principal.id, principal.person or principal.id})

    found = await run_in_threadpool(look)
    if found is not None:
        raise halted_problem(found)


def not_found(what: str) -> ProblemError:
    """The same answer for an unknown id and for one of another owner."""
    return ProblemError(404, "not_found", f"There is no such {what}.")


def erased_or_not_found(request: Request, principal: Principal, item_id: str, what: str) -> ProblemError:
    """As `not_found`, but for what was erased: then when that was and, for whoever is no agent, on which ground."""
    with service_of(request).store.read() as connection:
        stone = tombstones.find(connection, item_id, owners=owners_in_scope(principal, None))
    if stone is None:
        return not_found(what)
    shown: dict[str, Any] = {"erased_at": stone.at.isoformat()}
    if principal.role is not Role.AGENT:
        shown |= {"erasure_id": stone.erasure_id, "basis": stone.basis, "erased_by": stone.by}
    return ProblemError(410, "erased", f"This {what} was erased on {stone.at:%Y-%m-%d}.", **shown)


# Why a route answers with a problem document, for the OpenAPI description. Sentences for one status may be
# replaced by the route that knows better.
_WHY = {
    400: "The body is not JSON.",
    401: "No token, or one that is unknown, revoked or expired.",
    403: "The token's role, or the owners it acts for, do not allow this.",
    404: "There is no such thing for this token.",
    409: "It cannot be done as things stand; `code` says why.",
    410: "It was erased.",
    413: "The body is too large.",
    415: "The body is not sent as application/json.",
    422: "The request does not have the shape that is described here; `errors` says where.",
    429: "Too much: the queue is full, or the token's rate is used up.",
    500: "A fault of the service.",
    503: "The database did not take this now; `detail` says whether something may have been kept.",
}
_ALWAYS = (401, 403, 422, 500, 503)
_WITH_BODY = (400, 413, 415)
_RETRY_AFTER = {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}}}


def problem_response(status: int) -> dict[str, Any]:
    """OpenAPI description of the problem document with this status."""
    answer: dict[str, Any] = {
        "description": _WHY[status],
        # The schema itself is put into the document by the batch answers, which hold problems as models.
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    if status in (429, 503):
        answer["headers"] = _RETRY_AFTER
    return answer


def problem_responses(*statuses: int, body: bool = False) -> dict[int | str, dict[str, Any]]:
    """OpenAPI descriptions of the problem documents that a route can answer with: `statuses`, those of every
    route, and those of a route that reads a body."""
    every = {*statuses, *_ALWAYS, *(_WITH_BODY if body else ())}
    return {status: problem_response(status) for status in sorted(every)}
