"""What is asked: the requests of the HTTP API, as values. Pure."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TypedDict

from vouchgate.client import answers
from vouchgate.client.errors import ApiError, Unsendable
from vouchgate.client.models import Delivery, DeliveryState, OwnPending, Page, Who
from vouchgate.client.steps import Call, HttpReply, Parameters, Value
from vouchgate.ingest.claims.types import Evidence, Frozen, Memory, ValidationResult

VERDICTS = frozenset({200, 201, 202, 409, 422})
_KEY = re.compile(r"[\x21-\x7e]([\x20-\x7e]{0,253}[\x21-\x7e])?")  # as docs/api.md has it
_ID = re.compile(r"[A-Za-z0-9_-]{1,200}")

ClaimMapping = Mapping[str, object]


def new_key() -> str:
    """An Idempotency-Key nobody else uses."""
    return str(uuid.uuid4())


def checked_key(key: str | None) -> str:
    """The key given, or a new one. Raises Unsendable when it cannot be one."""
    if key is None:
        return new_key()
    if not _KEY.fullmatch(key):
        raise Unsendable("An Idempotency-Key is 1 to 255 visible ASCII characters")
    return key


def as_json(value: object) -> bytes:
    """UTF-8 JSON text. Raises Unsendable for what none can hold, without telling what it was."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain)
        return text.encode()
    except UnicodeEncodeError:
        raise Unsendable("The text holds half of a surrogate pair, which is no character") from None
    except (TypeError, ValueError, RecursionError) as error:
        what = "is nested too deeply" if isinstance(error, RecursionError) else "cannot be written as JSON"
        raise Unsendable(f"What is to be sent {what}") from None


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError


class ClaimOptions(TypedDict, total=False):
    """What may be said of a claim beside its text. See docs/api.md."""

    memory_type: str  # `fact` unless said
    source: str  # `ai_synthesis` unless said; any other must be granted to the token
    user_id: str | None  # the owner; may be left out when the token acts for one
    citations: Iterable[str | Mapping[str, str]]
    validity_horizon: datetime | str | None  # without a zone it is read as UTC
    metadata: Mapping[str, object] | None
    delivery: Mapping[str, object] | None  # {"sink", "place"}, and "op" and "data"


class SaveOptions(ClaimOptions, total=False):
    """What may be said of a claim that is to be kept."""

    idempotency_key: str | None


def claim_of(content: str, options: ClaimOptions | SaveOptions) -> tuple[ClaimMapping, str | None]:
    """The body of a submit, and the key it is sent with. What says nothing is left out, so that an older service
    takes it too. Raises TypeError for what is no text: it might be one that changes."""
    if not isinstance(content, str):
        raise TypeError(f"the claim must be a text, not {type(content).__name__}")
    said: dict[str, object] = {"memory_type": "fact", "source": "ai_synthesis", **options}
    key = said.pop("idempotency_key", None)
    if "citations" in said:
        said["citations"] = list(options["citations"]) or None
    claim = {name: value for name, value in said.items() if value is not None}
    return {"content": content, **claim}, None if key is None else str(key)


def submit(content: str, options: SaveOptions) -> Call[ValidationResult]:
    """Sends a claim to be kept."""
    claim, key = claim_of(content, options)
    body = as_json(claim)
    return Call("POST", "/v1/claims", answers.submitted, VERDICTS, body=body, key=checked_key(key))


def check(content: str, options: ClaimOptions) -> Call[ValidationResult]:
    """Asks what a submit would answer."""
    claim, _ = claim_of(content, options)
    return Call("POST", "/v1/claims/check", answers.verdict, body=as_json(claim))


def _without_none(parameters: Parameters) -> Parameters:
    as_json(parameters)  # raises for what no request can hold
    return {name: value for name, value in parameters.items() if value is not None}


def _id(value: str, what: str) -> str:
    """An id that can stand in a path. Any other names nothing, and is answered as an unknown one would be."""
    if not _ID.fullmatch(value):
        raise ApiError(404, "not_found", f"There is no such {what}.")
    return value


def memories(
    q: str | None,
    user_id: str | None,
    limit: int | None,
    after: str | None,
    filters: Mapping[str, Value | Sequence[Value]],
) -> Call[Page[Memory]]:
    """A page of memories. `q` is a substring of their text."""
    named: Parameters = {"text": q, "user_id": user_id, "limit": limit, "after": after, **filters}
    return Call("GET", "/v1/memories", answers.body_reader(Page[Memory]), parameters=_without_none(named))


def memory(memory_id: str) -> Call[Memory]:
    """One memory."""
    return Call("GET", f"/v1/memories/{_id(memory_id, 'memory')}", answers.body_reader(Memory))


def evidence(memory_id: str) -> Call[Evidence]:
    """What the decision that let a memory in rests on."""
    path = f"/v1/memories/{_id(memory_id, 'memory')}/evidence"
    return Call("GET", path, answers.body_reader(Evidence))


def decision(decision_id: str) -> Call[ValidationResult]:
    """A decision as it was answered."""
    return Call("GET", f"/v1/decisions/{_id(decision_id, 'decision')}", answers.verdict)


def pending(status: str, user_id: str | None, limit: int | None, after: str | None) -> Call[Page[OwnPending]]:
    """A page of this token's own queued claims."""
    named = {"status": status, "user_id": user_id, "limit": limit, "after": after}
    return Call(
        "GET", "/v1/claims/pending", answers.body_reader(Page[OwnPending]), parameters=_without_none(named)
    )


def whoami() -> Call[Who]:
    """Whose this token is."""
    return Call("GET", "/v1/whoami", answers.body_reader(Who))


def lease(sink: str, most: int, user_id: str | None) -> Call[list[Delivery]]:
    """Takes the oldest deliveries that are due."""
    body = {"sink": sink, "most": most} | ({} if user_id is None else {"user_id": user_id})
    return Call("POST", "/v1/deliveries/lease", _leased, body=as_json(body))


class _Leased(Frozen):
    deliveries: list[Delivery]


_LEASED = answers.body_reader(_Leased)


def _leased(answer: HttpReply) -> list[Delivery]:
    return _LEASED(answer).deliveries


def report_delivered(delivery: Delivery) -> Call[None]:
    """Tells that a delivery was applied."""
    path = f"/v1/deliveries/{_id(delivery.id, 'delivery')}/done"
    return Call("POST", path, _nothing, body=as_json({"lease": delivery.lease}))


class _Noted(Frozen):
    state: str


_NOTED = answers.body_reader(_Noted)


def report_failed(delivery: Delivery, error: str, *, final: bool) -> Call[bool]:
    """Tells that a delivery was not applied, and why. The answer says whether it was given up."""
    path = f"/v1/deliveries/{_id(delivery.id, 'delivery')}/failed"
    body = as_json({"lease": delivery.lease, "error": error, "final": final})
    return Call("POST", path, lambda answer: _NOTED(answer).state == "dead", body=body)


def _nothing(_: HttpReply) -> None:
    return None


def deliveries(parameters: Parameters) -> Call[Page[DeliveryState]]:
    """A page of deliveries and where they stand."""
    return Call(
        "GET",
        "/v1/deliveries",
        answers.body_reader(Page[DeliveryState]),
        parameters=_without_none(parameters),
    )
