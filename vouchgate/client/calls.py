"""What is asked: the requests of the HTTP API, as values. Pure. Those from `save` on are methods of both clients, with
the names, arguments and docstrings that they have here."""

from __future__ import annotations

import inspect
import json
import re
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from inspect import isawaitable, iscoroutine, iscoroutinefunction
from typing import TypedDict, TypeVar, Unpack

from vouchgate.client import answers
from vouchgate.client.errors import ApiError, Unsendable
from vouchgate.client.models import (
    DeliveryState,
    DocumentReport,
    OwnPending,
    Page,
    Receipt,
    Record,
    Who,
)
from vouchgate.client.steps import Call, HttpReply, Parameters, Value
from vouchgate.ingest.claims.decision import Evidence, ValidationResult
from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.ingest.claims.impact import Impact
from vouchgate.ingest.claims.leased import HAND_OVER, Delivery
from vouchgate.ingest.claims.memory import Memory
from vouchgate.ingest.corroboration.history import Corroborated

VERDICTS = frozenset({200, 201, 202, 409, 422})
_KEY = re.compile(r"[\x21-\x7e]([\x20-\x7e]{0,253}[\x21-\x7e])?")  # as docs/api.md has it
_ID = re.compile(r"[A-Za-z0-9_-]{1,200}")

ClaimMapping = Mapping[str, object]
T = TypeVar("T")


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
    citations: Iterable[str | Mapping[str, str]] | None
    validity_horizon: datetime | str | None  # without a zone it is read as UTC
    metadata: Mapping[str, object] | None
    delivery: Mapping[str, object] | None  # {"sink", "place"}, and "op" and "data"


class SaveOptions(ClaimOptions, total=False):
    """What may be said of a claim that is to be kept."""

    idempotency_key: str | None
    hand_over: bool  # of one claim: its delivery is wanted with the answer


def claim_of(content: str, options: ClaimOptions | SaveOptions) -> tuple[ClaimMapping, str | None]:
    """The body of a submit, and the key it is sent with. What says nothing is left out, so that an older service
    takes it too. Raises TypeError for what is no text: it might be one that changes."""
    if not isinstance(content, str):
        raise TypeError(f"the claim must be a text, not {type(content).__name__}")
    said: dict[str, object] = {"memory_type": "fact", "source": "ai_synthesis", **options}
    key, _ = said.pop("idempotency_key", None), said.pop("hand_over", None)
    if "citations" in said:
        said["citations"] = listed(options["citations"], "citations") or None
    claim = {name: value for name, value in said.items() if value is not None}
    return {"content": content, **claim}, None if key is None else str(key)


def listed(given: Iterable[T] | None, what: str) -> list[T]:
    """What was given, in a list. Raises TypeError for a text or a mapping, which would be taken for its letters or
    names."""
    if isinstance(given, str | bytes | Mapping):
        raise TypeError(f"{what} must be a list, not {type(given).__name__}")
    return list(given or ())


def refuse_awaitable(given: object, what: str) -> None:
    """Raises TypeError for a coroutine function, and for what is to be awaited: it would never run."""
    if iscoroutine(given):
        given.close()
    if iscoroutinefunction(given) or isawaitable(given):
        raise TypeError(f"{what} is called and not awaited: give a plain function, or use AsyncClient")


def dress(method: Callable[..., object], call: Callable[..., Call[object]]) -> None:
    """Gives a client's method the name, the docstring and the signature of the call that it makes."""
    signature = inspect.signature(call)
    me = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    method.__name__, method.__qualname__, method.__doc__ = call.__name__, call.__qualname__, call.__doc__
    vars(method)["__signature__"] = signature.replace(
        parameters=[me, *signature.parameters.values()],
        return_annotation=str(signature.return_annotation).removeprefix("Call[").removesuffix("]"),
    )


def without_none(parameters: Parameters) -> Parameters:
    """What says something. Raises Unsendable for what no request can hold."""
    as_json(parameters)
    return {name: value for name, value in parameters.items() if value is not None}


def path_id(value: object, what: str) -> str:
    """An id that can stand in a path. Any other names nothing, and is answered as an unknown one would be; so is None,
    the `queue_id` of what does not wait."""
    if not isinstance(value, str):
        raise ApiError(404, "not_found", f"There is no such {what}: an id is a text, not {value!r:.50}.")
    if not _ID.fullmatch(value):
        raise ApiError(404, "not_found", f"There is no such {what}.")
    return value


def save(content: str, **options: Unpack[SaveOptions]) -> Call[ValidationResult]:
    """Sends a claim to be kept. `options` are `memory_type` (`"fact"` unless said), `source` (`"ai_synthesis"`),
    `user_id`, `citations`, `validity_horizon`, `metadata`, `delivery`, `hand_over` and `idempotency_key`.

    `delivery` says where it is written once it is a memory: `{"sink", "place"}`, with `"op"` and `"data"`. With
    `hand_over` the verdict on what is stored has it as `delivery`, for `deliver`, unless something waits before it. The
    same `idempotency_key` with the same claim is decided once, however often it is sent; without one a new key is made,
    which holds for the tries of this call.
    """
    claim, key = claim_of(content, options)
    body, prefer = as_json(claim), HAND_OVER if options.get("hand_over") else None
    return Call(
        "POST", "/v1/claims", answers.submitted, VERDICTS, body=body, key=checked_key(key), prefer=prefer
    )


def check(content: str, **options: Unpack[ClaimOptions]) -> Call[ValidationResult]:
    """What `save` would answer now. Nothing is kept."""
    claim, _ = claim_of(content, options)
    return Call("POST", "/v1/claims/check", answers.verdict, body=as_json(claim))


def corroborate(
    claim: str,
    sources: Sequence[Mapping[str, object]],
    *,
    as_of: datetime | str | None = None,
    window_days: int | None = None,
) -> Call[Corroborated]:
    """What sources that you found say of a claim together: each is `{"text"}`, and `"id"`, `"url"`, `"title"`,
    `"published"`. Advice about what you brought; nothing is kept of it, and none of it vouches for a memory."""
    said = {"claim": claim, "sources": listed(sources, "sources"), "as_of": as_of, "window_days": window_days}
    body = as_json({name: value for name, value in said.items() if value is not None})
    return Call("POST", "/v1/claims/corroborate", answers.body_reader(Corroborated), body=body)


def check_document(
    content: str,
    *,
    name: str = "document.md",
    format: str | None = None,  # noqa: A002  (the name that the API has)
    only_marked: bool = False,
    allow_no_claims: bool = False,
    fail_on: Sequence[str] | None = None,
    user_id: str | None = None,
) -> Call[DocumentReport]:
    """Holds every claim of a document against what it cites. Nothing is kept. `name` says what format it has, where
    `format` (`"markdown"`, `"rst"`, `"html"`, `"text"`) does not, and where in the repository its links to files begin.
    See docs/api.md for the rest."""
    said: dict[str, object] = {"content": content, "name": name, "format": format, "user_id": user_id}
    said |= {"only_marked": only_marked, "allow_no_claims": allow_no_claims}
    said |= {} if fail_on is None else {"fail_on": listed(fail_on, "fail_on")}
    body = as_json({each: value for each, value in said.items() if value is not None})
    return Call("POST", "/v1/documents/check", answers.document_report, body=body)


def record(
    text: str,
    *,
    who: str,
    kind: str = "turn",
    conversation: str | None = None,
    time: datetime | str | None = None,
    user_id: str | None = None,
    idempotency_key: str | None = None,
) -> Call[Record]:
    """Puts down what a user said (`"turn"`; `who` said it), or a tool returned (`"tool_output"`; `who` is the tool's
    name), for claims of the same owner to cite. For the host's own token, of the role `recorder`: no agent records.
    `time` is now unless said, and without a zone read as UTC."""
    said: dict[str, object] = {"text": text, "kind": kind, "who": who, "conversation": conversation}
    said |= {"time": time, "user_id": user_id}
    body = as_json({name: value for name, value in said.items() if value is not None})
    key, kept = checked_key(idempotency_key), frozenset({201})
    return Call("POST", "/v1/records", answers.body_reader(Record), kept, body=body, key=key)


def recorded_text(output: object) -> str:
    """What a tool returned, as a text: JSON unless it is one, and what no JSON can hold as Python shows it."""
    try:
        return output if isinstance(output, str) else as_json(output).decode()
    except Unsendable:
        return str(output)


def memories(
    *,
    q: str | None = None,
    user_id: str | None = None,
    limit: int | None = None,
    after: str | None = None,
    **filters: Value | Sequence[Value],
) -> Call[Page[Memory]]:
    """A page of memories, newest first; with `q`, a question or words, one of those that answer it, best first.
    `filters` are those of the API, such as `memory_type`, `label`, `source`, `source_id`, `agent`, `created_from`,
    `as_of`, `status`; `text` is a substring."""
    named: Parameters = {"q": q, "user_id": user_id, "limit": limit, "after": after, **filters}
    return Call("GET", "/v1/memories", answers.body_reader(Page[Memory]), parameters=without_none(named))


def impact(
    source: str, *, user_id: str | None = None, limit: int | None = None, after: str | None = None
) -> Call[Impact]:
    """What rests on a source, in any spelling, and what was done since; for a reviewer, an auditor or an admin."""
    named: Parameters = {"source": source, "user_id": user_id, "limit": limit, "after": after}
    return Call("GET", "/v1/impact", answers.body_reader(Impact), parameters=without_none(named))


def memory(memory_id: str) -> Call[Memory]:
    """One memory, whatever its status."""
    return Call("GET", f"/v1/memories/{path_id(memory_id, 'memory')}", answers.body_reader(Memory))


def evidence(memory_id: str) -> Call[Evidence]:
    """What the decision that let a memory in rests on."""
    path = f"/v1/memories/{path_id(memory_id, 'memory')}/evidence"
    return Call("GET", path, answers.body_reader(Evidence))


def decision(decision_id: str) -> Call[ValidationResult]:
    """A decision as it was answered."""
    return Call("GET", f"/v1/decisions/{path_id(decision_id, 'decision')}", answers.verdict)


def receipt(decision_id: str) -> Call[Receipt]:
    """The proof that the log is bound to a decision; without one where it is not there yet, which takes two seconds, or
    as long as witnesses take."""
    path = f"/v1/receipts/{path_id(decision_id, 'decision')}"
    return Call("GET", path, answers.body_reader(Receipt), frozenset({200, 202}))


def pending(
    *,
    status: str = "pending",
    user_id: str | None = None,
    limit: int | None = None,
    after: str | None = None,
) -> Call[Page[OwnPending]]:
    """A page of the claims that this token sent and that were queued."""
    named = {"status": status, "user_id": user_id, "limit": limit, "after": after}
    return Call(
        "GET", "/v1/claims/pending", answers.body_reader(Page[OwnPending]), parameters=without_none(named)
    )


def pending_claim(queue_id: str) -> Call[OwnPending]:
    """One of them, with what its owner asks, if anything."""
    return Call("GET", f"/v1/claims/pending/{path_id(queue_id, 'claim')}", answers.body_reader(OwnPending))


def answer(
    queue_id: str, *, content: str | None = None, citations: Iterable[str | Mapping[str, str]] = ()
) -> Call[ValidationResult]:
    """Answers what the owner asks of a claim that was sent back: the claim in other words, or with other citations.
    Sent again, it is given the decision that fell."""
    said = {"content": content, "citations": listed(citations, "citations")}
    body = as_json({name: value for name, value in said.items() if value})
    path = f"/v1/claims/pending/{path_id(queue_id, 'claim')}/answer"
    return Call("POST", path, answers.submitted, VERDICTS, body=body)


def whoami() -> Call[Who]:
    """Whose this token is: its role, and the owners and sources it was given."""
    return Call("GET", "/v1/whoami", answers.body_reader(Who))


class _Leased(Frozen):
    deliveries: list[Delivery]


_LEASED = answers.body_reader(_Leased)


def lease_deliveries(sink: str, *, most: int = 20, user_id: str | None = None) -> Call[list[Delivery]]:
    """Takes the oldest deliveries of a sink that are due, in order, for 60 seconds; empty when nothing is due or
    another holds them."""
    body = {"sink": sink, "most": most} | ({} if user_id is None else {"user_id": user_id})
    return Call("POST", "/v1/deliveries/lease", lambda answer: _LEASED(answer).deliveries, body=as_json(body))


def delivery_done(delivery: Delivery) -> Call[None]:
    """Says that it was applied."""
    path = f"/v1/deliveries/{path_id(delivery.id, 'delivery')}/done"
    return Call("POST", path, _nothing, body=as_json({"lease": delivery.lease}))


class _Noted(Frozen):
    state: str


_NOTED = answers.body_reader(_Noted)


def delivery_failed(delivery: Delivery, error: str, *, final: bool = False) -> Call[None]:
    """Says that it was not applied, and why; with `final` it is not tried again."""
    told = report_failed(delivery, error, final=final)
    return Call(told.method, told.path, _nothing, body=told.body)


def report_failed(delivery: Delivery, error: str, *, final: bool) -> Call[bool]:
    """As `delivery_failed`. The answer says whether it was given up."""
    path = f"/v1/deliveries/{path_id(delivery.id, 'delivery')}/failed"
    body = as_json({"lease": delivery.lease, "error": error, "final": final})
    return Call("POST", path, lambda answer: _NOTED(answer).state == "dead", body=body)


def _nothing(_: HttpReply) -> None:
    return None


def deliveries(
    *,
    user_id: str | None = None,
    sink: str | None = None,
    state: str | None = None,
    memory_id: str | None = None,
    limit: int | None = None,
    after: str | None = None,
) -> Call[Page[DeliveryState]]:
    """A page of deliveries and where they stand: `waiting`, `delivered` or `dead`."""
    named = {"user_id": user_id, "sink": sink, "state": state, "memory_id": memory_id, "limit": limit}
    return Call(
        "GET",
        "/v1/deliveries",
        answers.body_reader(Page[DeliveryState]),
        parameters=without_none({**named, "after": after}),
    )
