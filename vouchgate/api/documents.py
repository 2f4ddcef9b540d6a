"""Where agents have whole documents checked: at once, or kept and checked when their turn comes."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import Field
from pydantic_core import from_json
from sqlalchemy import Connection

from vouchgate.api.base import (
    MAX_PAGE,
    JsonRequest,
    JsonRoute,
    caller,
    limit_rate,
    metrics_of,
    not_found,
    owner_refused,
    owners_in_scope,
    problem_responses,
    refuse_halted,
)
from vouchgate.api.claims import BatchOut, IdempotencyKey, submit_rows
from vouchgate.api.problems import ProblemError
from vouchgate.documents.gating import TakenDocument
from vouchgate.documents.offering import offered_claims
from vouchgate.documents.report import ReportJson
from vouchgate.gate.incoming import ClaimRefused, owner_for
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.people import Principal, Role
from vouchgate.review import record
from vouchgate.review.rules import Act
from vouchgate.server.state import service_of
from vouchgate.storage import ids
from vouchgate.storage.identity import owners
from vouchgate.storage.queue import documents
from vouchgate.storage.queue.documents import DocumentRecord, DocumentState, KeyUsed, TooMany
from vouchgate.wire import MAX_DOCUMENT_BODY_BYTES, DocumentIn, OfferIn, OwnerId, WireOut
from vouchgate.workers.documents import result_of


class DocumentRequest(JsonRequest):
    """A request with a document in it."""

    most_bytes = MAX_DOCUMENT_BODY_BYTES


class DocumentRoute(JsonRoute):
    """A route that documents come to."""

    request_class = DocumentRequest


router = APIRouter(prefix="/v1/documents", route_class=DocumentRoute, tags=["documents"])

Checker = Annotated[Principal, Depends(caller(Act.CHECK))]
Submitter = Annotated[Principal, Depends(caller(Act.SUBMIT))]
Reader = Annotated[Principal, Depends(caller(Act.READ_DOCUMENT))]
Deleter = Annotated[Principal, Depends(caller(Act.DELETE_DOCUMENT))]

_RETRY_SECONDS = 60  # until there may be room for another document
_SOON_SECONDS = 5  # until a report may be there


class DocumentListed(WireOut):
    """A document that was sent."""

    id: str
    owner_id: str
    state: DocumentState
    created_at: datetime
    done_at: datetime | None
    kept_until: Annotated[datetime | None, Field(description="Then it is forgotten, report and all.")]


class DocumentOut(DocumentListed):
    """A document that was sent, and the report once there is one."""

    report: ReportJson | None


class DocumentPage(WireOut):
    """Documents, newest first; `next` is the cursor of the following page, null on the last."""

    items: list[DocumentListed]
    next: str | None


class DocumentDeleted(WireOut):
    """The id of a document that is gone."""

    deleted: str


class OfferedOut(BatchOut):
    """What the gate said to each claim, in the order of the document; `fingerprints` are theirs."""

    fingerprints: list[str]


@router.post(
    "/check", responses=problem_responses(429, body=True), status_code=200, response_model=ReportJson
)
async def check_document(request: Request, sent: DocumentIn, principal: Checker) -> Response:
    """Holds every claim of a document against what it cites, at once. Nothing is kept."""
    owner_id, taken = await _take(request, sent, principal)
    documents_gate = service_of(request).documents
    report = await documents_gate.check(taken, owner_id)
    metrics_of(request).count_documents(Counter([result_of(report)]))
    written = await documents_gate.forms(report, owner_id, "report")
    return Response(written["report"], media_type="application/json")


@router.post(
    "",
    responses={
        **problem_responses(409, 429, body=True),
        202: {"description": "Kept; it is checked when its turn comes.", "model": DocumentOut},
    },
    status_code=202,
    response_model=DocumentOut,
)
async def send_document(
    request: Request,
    sent: DocumentIn,
    principal: Submitter,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Keeps a document to be checked. `Location` is where its state is, and then its report."""
    service, now = service_of(request), datetime.now(UTC)
    service.gate.examiner.refuse_secret("Idempotency-Key", idempotency_key)
    owner_id, taken = await _take(request, sent, principal)
    await refuse_halted(request, principal, owner_id)
    text, limits = taken.sent.model_dump_json(), service.policy.documents
    row = {
        "owner_id": owner_id,
        "id": ids.document_id(ids.new_id_suffix(now)),
        "submitted_by": principal.id,
        "created_at": now,
        "sent": text,
        "sent_digest": hashlib.sha256(text.encode()).hexdigest(),
        "idempotency_key": idempotency_key,
    }
    if principal.any_owner and not principal.new_owners:
        await asyncio.to_thread(_require_known, request, owner_id)
    writing = service.store.writer.run([owner_id], lambda c: documents.add(c, row, limits))
    match await asyncio.wrap_future(writing):
        case KeyUsed():
            detail = "This Idempotency-Key came with another document before. Use a new key."
            raise ProblemError(409, "idempotency_key_reused", detail)
        case TooMany(what, limit):
            said = "wait to be checked" if what == "waiting" else "are kept"
            detail = f"So many documents of this owner {said} already: {limit}. Send it again later."
            headers = {"Retry-After": str(_RETRY_SECONDS)}
            raise ProblemError(429, f"too_many_documents_{what}", detail, headers=headers)
        case documents.Added(document_id, repeated):
            headers = {"Location": f"/v1/documents/{document_id}"}
            if repeated:
                headers["Idempotency-Replayed"] = "true"
            found = await asyncio.to_thread(_record, request, document_id, principal)
            service.document_worker.job.wake()
            return _answer(found, 202, headers)


@router.get("", responses=problem_responses())
def list_documents(
    request: Request,
    principal: Reader,
    *,
    user_id: Annotated[OwnerId | None, Query()] = None,
    after: Annotated[str | None, Query(pattern=r"^doc_[0-9a-f]{32}$")] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 50,
) -> DocumentPage:
    """Documents of the owners this token acts for; of an agent, those that it sent."""
    own = _own(principal, user_id)
    with service_of(request).store.read() as connection:
        found = documents.listing(connection, **own, after=after, limit=limit)
    items = [DocumentListed(**asdict(each)) for each in found]
    return DocumentPage(items=items, next=items[-1].id if len(items) == limit else None)


@router.delete("/{document_id}", responses=problem_responses(404))
async def delete_document(request: Request, document_id: str, principal: Deleter) -> DocumentDeleted:
    """Deletes a document, whether it was checked or waits: its text, and its report in every form. That it was is in
    the log."""
    found = await asyncio.to_thread(_record, request, document_id, principal)
    now = datetime.now(UTC)

    def work(connection: Connection) -> bool:
        sent = documents.remove(connection, found.owner_id, document_id)
        if sent is not None:
            document = record.document(sent=sent)
            action = Action.DOCUMENT_DELETED
            record.entry(connection, found.owner_id, action, document_id, document, by=principal.id, now=now)
        return sent is not None

    writing = service_of(request).store.writer.run([found.owner_id], work)
    if not await asyncio.wrap_future(writing):
        raise not_found("document")
    return DocumentDeleted(deleted=document_id)


@router.get("/{document_id}", responses=problem_responses(404), response_model=DocumentOut)
def get_document(request: Request, document_id: str, principal: Reader) -> Response:
    """Where a document stands, and its report once it was checked."""
    return _answer(_record(request, document_id, principal))


@router.get(
    "/{document_id}/report.html",
    response_class=Response,
    responses={
        **problem_responses(404, 409),
        200: {
            "content": {"text/html": {"schema": {"type": "string"}}},
            "description": "The report as a page",
        },
    },
)
def get_page(request: Request, document_id: str, principal: Reader) -> Response:
    """The report as one HTML file: the document, its claims coloured, and what their sources say."""
    page = _rendered(request, document_id, "html", principal)
    from vouchgate.documents.formats import html  # noqa: PLC0415  (with its templates, which few ask for)

    # Nothing on the page is from elsewhere, whatever the document or its sources say.
    policy = f"{html.POLICY}; frame-ancestors 'none'; sandbox allow-scripts allow-popups"
    headers = {"Content-Security-Policy": policy, "Referrer-Policy": "no-referrer"}
    return Response(page, headers=headers, media_type="text/html; charset=utf-8")


@router.get(
    "/{document_id}/report.sarif",
    response_class=Response,
    responses={
        **problem_responses(404, 409),
        200: {"content": {"application/sarif+json": {"schema": {}}}, "description": "SARIF 2.1.0"},
    },
)
def get_sarif(request: Request, document_id: str, principal: Reader) -> Response:
    """The report as SARIF."""
    text = _rendered(request, document_id, "sarif", principal)
    return Response(text, media_type="application/sarif+json")


@router.post(
    "/{document_id}/claims",
    responses=problem_responses(404, 409, 429, body=True),
    status_code=200,
    response_model=OfferedOut,
)
async def offer_claims(
    request: Request,
    document_id: str,
    sent: OfferIn,
    principal: Submitter,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Sends verified claims of a document through the gate, each with its citations and as `ai_synthesis` of who calls.
    The gate decides about each as about any other; an Idempotency-Key holds as for a batch."""
    found = await asyncio.to_thread(_record, request, document_id, principal)
    if found.report is None:
        raise _not_there(found.state)
    report = found.report  # beside the event loop: it may have megabytes
    offered = await asyncio.to_thread(lambda: offered_claims(from_json(report), sent, found.owner_id))
    if unknown := [name for name in sent.fingerprints or () if name not in offered]:
        raise ClaimRefused("not_verified", f"no verified claim of the document is {unknown[0]}")
    rows = await submit_rows(request, principal, list(offered.values()), idempotency_key)
    named = ",".join(f'"{name}"' for name in offered)
    body = f'{{"results":[{",".join(rows)}],"fingerprints":[{named}]}}'
    return Response(body, media_type="application/json")


async def _take(request: Request, sent: DocumentIn, principal: Principal) -> tuple[str, TakenDocument]:
    """Whose document it is, and what is in it. It counts as one claim, and as one more for each source."""
    owner_id = owner_for(principal, sent.user_id)
    limit_rate(request, principal)
    taken = await service_of(request).documents.take(sent, owner_id)
    if taken.cited:
        limit_rate(request, principal, 1 + len(taken.cited), taken=1)
    return owner_id, taken


def _require_known(request: Request, owner_id: str) -> None:
    """Raises ProblemError for an owner that nobody has made."""
    with service_of(request).store.read() as connection:
        if not owners.is_known(connection, owner_id):
            raise owner_refused(unknown=True)


def _own(principal: Principal, user_id: str | None = None) -> dict[str, Any]:
    """Of which documents this principal may know: an agent of those that it sent."""
    by = principal.id if principal.role is Role.AGENT else None
    return {"owners": owners_in_scope(principal, user_id), "submitted_by": by}


def _record(request: Request, document_id: str, principal: Principal) -> DocumentRecord:
    with service_of(request).store.read() as connection:
        found = documents.get(connection, document_id, **_own(principal))
    if found is None:
        raise not_found("document")
    return found


def _answer(found: DocumentRecord, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """The report is told as it was written, which may have been by an older version."""
    fields = {name: getattr(found, name) for name in DocumentOut.model_fields if name != "report"}
    told = DocumentOut(**fields, report=None).model_dump_json(exclude={"report"})
    body = f'{told[:-1]},"report":{found.report or "null"}}}'
    return Response(body, status, headers, media_type="application/json")


def _rendered(
    request: Request, document_id: str, form: Literal["html", "sarif"], principal: Principal
) -> str:
    with service_of(request).store.read() as connection:
        found = documents.rendered(connection, document_id, form, **_own(principal))
    if found is None:
        raise not_found("document")
    state, text = found
    if text is None:
        raise _not_there(state)
    return text


def _not_there(state: DocumentState) -> ProblemError:
    if state is DocumentState.GIVEN_UP:
        detail = "The document could not be checked: every try of it failed. There is no report."
        return ProblemError(409, "given_up", detail)
    headers = {"Retry-After": str(_SOON_SECONDS)}
    return ProblemError(409, "not_checked_yet", "The document waits to be checked.", headers=headers)
