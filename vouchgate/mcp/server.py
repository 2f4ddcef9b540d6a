"""The MCP server: tool calls in, calls of the HTTP API out. It decides nothing and keeps nothing.

A claim that is queued or blocked is a result. Errors are what could not be asked or understood; then nothing is said
to be saved.
"""

from __future__ import annotations

import logging
from importlib.metadata import version
from typing import Any

import anyio
from mcp import MCPError
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
)
from pydantic import ValidationError

from vouchgate.client import (
    ApiError,
    AsyncClient,
    OddAnswer,
    OwnPending,
    Unreachable,
    Unsendable,
    VouchgateError,
)
from vouchgate.ingest.claims.decision import ValidationResult
from vouchgate.ingest.rules import Rule
from vouchgate.mcp import results as shown
from vouchgate.mcp.connection import GateConnection, TokenRefused
from vouchgate.mcp.tools import (
    BY_NAME,
    INSTRUCTIONS,
    TOOLS,
    Call,
    CheckClaim,
    ClaimArguments,
    CorroborateClaim,
    GateDocument,
    GetEvidence,
    ListMyPending,
    SaveMemory,
    SearchMemories,
    ToolResult,
)

log = logging.getLogger(__name__)

CALL_SECONDS = (
    50.0  # for a whole call: many MCP clients give up after 60 s, and would not hear what became of it
)
SOURCE = "ai_synthesis"  # whatever the token was granted: see `vouchgate.mcp.tools`
_MOST_FAULTS = 3
# After a claim that was not decided about, and after one of which that is not known.
_NOTHING = "Nothing was saved."
_UNKNOWN = "Do not count it as saved; nothing is stored twice if you send it again."

Request = ServerRequestContext[Any]  # Any: what the SDK's default lifespan gives


def build_server(door: GateConnection) -> Server[Any]:
    """The server whose tools go through this door."""

    async def list_tools(_: Request, __: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[offered.to_tool() for offered in TOOLS])

    async def call_tool(context: Request, params: CallToolRequestParams) -> CallToolResult:
        return await answer_call(door, bearer_of(context), params.name, params.arguments or {})

    return Server(
        "vouchgate",
        version=version("vouchgate"),
        title="Vouchgate",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def bearer_of(context: Request) -> str | None:
    """The token that came with the HTTP request; None over stdio, where there is none."""
    headers = getattr(context.request, "headers", None)
    return None if headers is None else bearer(headers.get("authorization"))


def bearer(authorization: str | None) -> str | None:
    """The token in an Authorization header; None when there is none that could be one."""
    scheme, _, token = (authorization or "").partition(" ")
    token = token.strip()
    usable = scheme.lower() == "bearer" and 0 < len(token) <= 200 and token.isascii() and token.isprintable()
    return token if usable and " " not in token else None


async def answer_call(
    door: GateConnection, brought: str | None, name: str, arguments: dict[str, Any]
) -> CallToolResult:
    """The result of a tool call. Raises MCPError when there is no such tool."""
    offered = BY_NAME.get(name)
    if offered is None:
        raise MCPError(INVALID_PARAMS, f"There is no such tool; there are {', '.join(BY_NAME)}.")
    try:
        call = offered.arguments.model_validate(arguments)
        with anyio.fail_after(CALL_SECONDS):
            async with door.client(brought) as client:
                result, meta = await send_call(client, call)
    except Exception as error:  # noqa: BLE001  (the last line of defence: an error never looks like something saved)
        refusal = _refusal(error)
        sentence = _unknown_outcome(name, error) if refusal is None else refusal
        if not offered.reads_only:
            sentence += f" {_UNKNOWN if refusal is None else _NOTHING}"
        return CallToolResult(content=[TextContent(text=sentence)], is_error=True)
    text = result.model_dump_json(exclude_none=True)
    return CallToolResult(
        content=[TextContent(text=text)], structured_content=result.model_dump(mode="json"), _meta=meta
    )


async def send_call(client: AsyncClient, call: Call) -> tuple[ToolResult, dict[str, Any] | None]:
    """What the gate says to a call, and what of it is for programs. Raises VouchgateError."""
    match call:
        case SaveMemory() | CheckClaim():
            verdict, told = await _send_claim(client, call)
            return told, shown.decision_metadata(verdict)
        case CorroborateClaim():
            sources = [each.model_dump(mode="json", exclude_defaults=True) for each in call.sources]
            return shown.corroborated_result(
                await client.corroborate(call.claim, sources, as_of=call.as_of)
            ), None
        case GateDocument():
            report = await client.check_document(
                call.content, name=call.name, only_marked=call.only_marked, user_id=call.user_id
            )
            return shown.gated_result(report), None
        case SearchMemories():
            named = {"memory_type", "label", "source_id", "as_of"}
            filters = call.model_dump(mode="json", include=named, exclude_none=True)
            page = await client.memories(
                q=call.query, user_id=call.user_id, limit=call.limit, after=call.cursor, **filters
            )
            return shown.memories_result(page), None
        case GetEvidence():
            memory = await client.memory(call.memory_id)
            return shown.evidence_result(memory, await client.evidence(call.memory_id)), None
        case ListMyPending():
            items = await client.pending(
                status=call.status.value, user_id=call.user_id, limit=call.limit, after=call.cursor
            )
            return shown.pending_result(items), None


async def _send_claim(
    client: AsyncClient, call: SaveMemory | CheckClaim
) -> tuple[ValidationResult, ToolResult]:
    if isinstance(call, SaveMemory) and call.answers is not None:
        verdict = await client.answer(call.answers, content=call.content, citations=_citations(call))
        return verdict, shown.saved_result(verdict)
    saves = isinstance(call, SaveMemory)
    verdict = await (client.save if saves else client.check)(
        call.content,
        memory_type=call.memory_type,
        source=SOURCE,
        user_id=call.user_id,
        citations=_citations(call),
    )
    if not saves:
        return verdict, shown.checked_result(verdict)
    return verdict, shown.saved_result(verdict, await _asked(client, verdict))


def _citations(call: ClaimArguments) -> list[str | dict[str, Any]]:
    return [each if isinstance(each, str) else each.model_dump() for each in call.citations]


async def _asked(client: AsyncClient, verdict: ValidationResult) -> OwnPending | None:
    """The waiting claim that a claim repeats: its owner may ask the agent something. None where it is another's, or
    cannot be read: the verdict stands by itself."""
    if verdict.rule != Rule.ALREADY_PENDING or verdict.queue_id is None:
        return None
    try:
        return await client.pending_claim(verdict.queue_id)
    except VouchgateError:
        return None


def _faults(error: ValidationError) -> str:
    """What is wrong with the arguments, without the values: they may be huge or hostile."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    told = "; ".join(
        f"{'.'.join(map(str, fault['loc']))[:100]}: {fault['msg'][:200]}" for fault in found[:_MOST_FAULTS]
    )
    return f"The arguments cannot be used: {told}."


def _refusal(error: Exception) -> str | None:
    """Why the gate kept nothing, where that is known. For a model, and whoever reads over its shoulder."""
    match error:
        case ValidationError():
            return _faults(error)
        case TokenRefused():
            return f"The token cannot be used: {error}."
        case ApiError(status=401):
            return "The gate does not know this token any more; whoever set it up has to give another."
        case ApiError() if error.status < 500:
            step = f" {shown.visible_text(error.next_step, 500)}" if error.next_step else ""
            return f"{_sentence(error.detail)}{step}"
        case Unsendable():
            return _sentence(str(error))
    return None


def _unknown_outcome(name: str, error: Exception) -> str:
    """What happened, where nobody knows what the gate kept."""
    match error:
        case TimeoutError():
            return f"The gate gave no answer within {CALL_SECONDS:g} seconds."
        case Unreachable():
            log.warning("the gate gave no answer: %s", error)
            return "The memory gate cannot be reached. Try again later."
        case OddAnswer():
            log.warning("an odd answer instead of the gate's: %s", error)
            return "What answers in place of the memory gate cannot be understood."
        case ApiError():
            log.warning("the gate cannot answer: %s", error)
            return _sentence(error.detail)
    log.error("a call of %s failed", name, exc_info=error)
    return "Something went wrong in this server; its log has the cause."


def _sentence(detail: str) -> str:
    """What the gate says, as a sentence."""
    shown_detail = shown.visible_text(detail.removeprefix("body."), 500)
    return shown_detail if shown_detail.endswith((".", "…")) else f"{shown_detail}."
