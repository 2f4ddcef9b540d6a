"""Where an owner hands over what an audit found in a memory, to clear it on its page."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from pydantic import Field
from sqlalchemy import Connection, insert

from vouchgate.api.base import JsonRoute, caller, problem_responses
from vouchgate.api.problems import ProblemError
from vouchgate.gate.examiner import Examiner
from vouchgate.gate.incoming import owner_for
from vouchgate.importing.labels import NAME_CHARACTERS, RowLabel
from vouchgate.ingest.claims.people import Principal, Role
from vouchgate.review.audit import clearing
from vouchgate.review.rules import Act
from vouchgate.server.state import service_of
from vouchgate.storage.identity import tokens
from vouchgate.storage.queue import audits
from vouchgate.wire import ClaimIn, Content, OwnerId, Reason, Text, Wire, WireOut

router = APIRouter(prefix="/v1/memory-audits", route_class=JsonRoute, tags=["audit"])

MOST_ROWS = 200  # of a request
MOST_KEPT = 300_000  # of all audits of an owner: some 500 MB
KEPT = timedelta(days=30)
Name = Annotated[Text, Field(min_length=1, max_length=NAME_CHARACTERS)]


class AuditedRowIn(ClaimIn):
    """A line of the report `rows.jsonl`, and what the claim has beside its text. Its `source` counts for nothing."""

    content: Annotated[Content, Field(alias="text")]
    row: int | Name
    label: RowLabel
    other_row: int | Name | None = None
    reason: Reason


class MemoryAuditIn(Wire):
    """Rows of an audit behind its first `after`, of `total`; `digest` is the sha256, in hex, of all of them. The same
    audit, handed over again, goes on where it stopped."""

    name: Name
    digest: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    total: Annotated[int, Field(ge=1, le=MOST_KEPT)]
    user_id: OwnerId | None = None
    after: Annotated[int, Field(ge=0)] = 0
    rows: Annotated[tuple[AuditedRowIn, ...], Field(max_length=MOST_ROWS)] = ()


class MemoryAuditOut(WireOut):
    """An audit, and how many of its rows are here: where to go on."""

    id: str
    taken: int


@router.post("", responses=problem_responses(429, body=True), status_code=200)
def hand_over(
    request: Request, sent: MemoryAuditIn, principal: Annotated[Principal, Depends(caller(Act.CLEAR))]
) -> MemoryAuditOut:
    """Keeps rows of an audit for 30 days, for its owner's page. A request that comes twice adds nothing. What is left
    of them will go to the gate as an agent of its own, behind whom is who handed them over."""
    service, now, owner_id = service_of(request), datetime.now(UTC), owner_for(principal, sent.user_id)
    store, examiner, audit_id = service.store, service.gate.examiner, f"aud_{sent.digest[:32]}"
    examiner.refuse_secret("name", sent.name)
    kept = {each.id: each.total for each in clearing.listing(store, principal) if each.owner_id == owner_id}
    rows = [_row(examiner, row) for row in sent.rows[: kept.get(audit_id, sent.total) - sent.after]]
    if audit_id not in kept:
        if sum(kept.values()) + sent.total > MOST_KEPT:
            detail = f"The audits of an owner have {MOST_KEPT:,} rows at most, and are kept for 30 days."
            raise ProblemError(429, "too_many_audits", detail)
        about = {"id": audit_id, "owner_id": owner_id, "name": sent.name, "total": sent.total}
        about |= {"created_at": now, "kept_until": now + KEPT}

        def add(connection: Connection, token_id: str) -> None:
            connection.execute(insert(audits.AUDIT), [{**about, "token_id": token_id}])

        called = "audit of " + "".join(filter(str.isprintable, sent.name))[:100]
        tokens.create(store, role=Role.AGENT, name=called, owners=[owner_id], person=principal.person,
                      expires_at=now + KEPT, actor=principal.id, now=now, also=add)  # fmt: skip
    taking = partial(audits.take, owner_id=owner_id, audit_id=audit_id, rows=rows, after=sent.after)
    return MemoryAuditOut(id=audit_id, taken=store.writer.run([owner_id], taking).result())


def _row(examiner: Examiner, sent: AuditedRowIn) -> dict[str, object]:
    """As it is kept: without credentials, and without personal data that the policy masks. Raises ClaimRefused."""
    kept, *_ = examiner.mask_claim(sent)
    beside = {"memory_type", "citations", "validity_horizon", "metadata"}
    claim = kept.model_dump(mode="json", include=beside, exclude_defaults=True)
    about = {"name": str(sent.row), "other": None if sent.other_row is None else str(sent.other_row)}
    about |= {"label": sent.label.value, "reason": examiner.mask_text(sent.reason)}
    return {**about, "text": kept.content, "claim": claim}
