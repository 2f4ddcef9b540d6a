"""The log for outsiders: its head and its hashes for everybody, receipts for whoever may read a decision."""

from __future__ import annotations

import re

from fastapi import APIRouter, Request, Response
from starlette.responses import JSONResponse, PlainTextResponse

from vouchgate.api.base import (
    JsonRoute,
    not_found,
    owners_in_scope,
    problem_response,
    problem_responses,
)
from vouchgate.api.claims import DecisionReader
from vouchgate.api.problems import ProblemError
from vouchgate.ingest.transparency.verifier import (
    HASH_BYTES,
    tile_path,
    tile_width,
)
from vouchgate.review.withheld import metadata, private_pages
from vouchgate.server.state import service_of
from vouchgate.storage.claims import decisions
from vouchgate.storage.log import tree
from vouchgate.wire import WireOut

public_router = APIRouter(prefix="/log", tags=["log"])
router = APIRouter(prefix="/v1", route_class=JsonRoute, tags=["log"])

# What was once in a tile stays: a partial one is the beginning of every later one.
FOR_EVER = {"Cache-Control": "public, max-age=31536000, immutable"}
_PATH = re.compile(r"((?:x\d{3}/)*)(\d{3})(?:\.p/([1-9]\d{0,2}))?", re.ASCII)
SOON = {"Retry-After": "1"}


class ReceiptOut(WireOut):
    """Why the log is bound to a decision: the bytes of the leaf (base64), the salt of its commitment to the answer
    (hex; null once it was erased, and for whoever is not shown all of the answer), and the proof (tlog-proof)."""

    leaf: str
    salt: str | None
    proof: str


@public_router.get(
    "/checkpoint",
    response_class=PlainTextResponse,
    responses={200: {"description": "A signed note (C2SP tlog-checkpoint)."}, 503: problem_response(503)},
)
def checkpoint(request: Request) -> Response:
    """How many entries the log has, and the root over them, signed."""
    with service_of(request).store.browse() as connection:
        last = tree.last_checkpoint(connection, published=True)
    if last is None:
        detail = "The log was not signed yet. If it is not in a moment, the service has no key for it."
        raise ProblemError(503, "not_signed", detail, headers=SOON)
    return PlainTextResponse(last[1], headers={"Cache-Control": "no-cache"})


@public_router.get(
    "/tile/{level}/{path:path}",
    response_class=Response,
    responses={
        200: {"content": {"application/octet-stream": {}}, "description": "Hashes (C2SP tlog-tiles)."},
        **{status: problem_response(status) for status in (404, 422, 503)},
    },
)
def tile(request: Request, level: str, path: str) -> Response:
    """A tile of hashes, as far as the newest checkpoint goes. There are no tiles of entries: those are for whoever may
    read them."""
    found = _PATH.fullmatch(path) if len(path) <= 40 and re.fullmatch(r"\d{1,2}", level, re.ASCII) else None
    if found is None:
        raise not_found("tile")
    number, width = int(found[1].replace("x", "").replace("/", "") + found[2]), int(found[3] or 256)
    with service_of(request).store.browse() as connection:
        last = tree.last_checkpoint(connection, published=True)
        there = 0 if last is None else tile_width(int(level), number, last[0])
        hashes = tree.tile(connection, int(level), number) if width <= there else b""
    if not hashes or tile_path(int(level), number, width) != f"tile/{level}/{path}":
        raise not_found("tile")
    return Response(hashes[: width * HASH_BYTES], headers=FOR_EVER, media_type="application/octet-stream")


@router.get(
    "/receipts/{decision_id}",
    responses={
        **problem_responses(404),
        202: {
            "description": "It is not in a published checkpoint yet: ask again after `Retry-After` seconds."
        },
    },
    response_model=ReceiptOut,
)
def get_receipt(request: Request, decision_id: str, principal: DecisionReader) -> Response:
    """The proof that the log is bound to a decision, for whoever may read that. It is there within two seconds, or when
    enough witnesses have seen it."""
    owners = owners_in_scope(principal, None)
    with service_of(request).store.browse() as connection:
        answer = decisions.get(connection, decision_id, owners=owners)
        found = tree.receipt(connection, decision_id, owners=owners)
    if found is None and answer is None:
        raise not_found("decision")
    if found is None:
        return JSONResponse({"leaf": None, "salt": None, "proof": None}, 202, SOON)
    shown = (
        answer is not None
        and metadata.json_for(principal, private_pages.json_for(principal, answer)) == answer
    )
    return JSONResponse(found.fields(salted=shown))
