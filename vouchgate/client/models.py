"""What the client gives back, where `ingest.claims` has no type for it already.

The types forbid unknown fields, as every domain type does; the client reads answers with unknown fields left out
(`answers.read`), because a service that is newer than its clients may add some.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Generic, NamedTuple, TypeVar

from pydantic import Field, JsonValue

from vouchgate.client.errors import ApiError, Halted, QueueFull
from vouchgate.ingest.claims.claim import MemoryType, Source
from vouchgate.ingest.claims.decision import Looked, RejectedBefore, Suggested
from vouchgate.ingest.claims.delivery import DeliveryOp
from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.ingest.claims.likeness import SimilarMemory
from vouchgate.ingest.claims.memory import Memory
from vouchgate.ingest.claims.people import Role
from vouchgate.ingest.claims.waiting import PendingMemory, ReviewStatus

T = TypeVar("T")

MOST_SHOWN = 500  # characters of the service's sentence in an error
_KINDS: Mapping[str, type[ApiError]] = {"queue_full": QueueFull, "read_only": Halted, "stopped": Halted}


class Page(Frozen, Generic[T]):
    """One page of a listing. `next` is the `after` of the following page, None on the last."""

    items: tuple[T, ...]
    # `GET /v1/memories` calls it `next`. Never left out: a page that does not say is no page.
    next: str | None


class Problem(Frozen):
    """Why one row of a batch was not decided; the other rows were. `code` is a stable word, `detail` a sentence,
    `retry_after` the seconds after which it can be sent again."""

    status: int
    code: str
    detail: str
    next_step: str = Field(default="", exclude_if=lambda step: not step)  # what an agent does now
    retry_after: float | None = Field(default=None, exclude_if=lambda seconds: seconds is None)

    def error(self) -> ApiError:
        """What `save` raises for it."""
        kind = _KINDS.get(self.code, ApiError)
        code, detail, step = (text[:MOST_SHOWN] for text in (self.code, self.detail, self.next_step))
        return kind(self.status, code, detail, retry_after=self.retry_after, next_step=step)


class OwnPending(Frozen):
    """A claim of this token's that was queued, and what became of it."""

    queue_id: str
    content: str
    memory_type: MemoryType
    reason: str  # why it was queued
    status: ReviewStatus
    seen: int  # how often the same claim was sent while it waited, the first time included
    created_at: datetime
    decided_at: datetime | None = None
    note: str | None = None  # the reviewer's note, or the reason of a rejection
    memory_id: str | None = None  # the memory it became
    question: str | None = None  # what its owner asks of the agent; None while nothing is asked
    next_step: str | None = None  # what the agent does about that


class Review(PendingMemory):
    """An item of the queue, with what a reviewer wants to know of it; docs/api.md says what each means. `similar` None:
    not looked for, or not known. `needed` is how many must approve it, `priority` why it stands where it does."""

    similar: tuple[SimilarMemory, ...] | None = None
    suggested: tuple[Suggested, ...] = ()
    looked: tuple[Looked, ...] = ()
    priority: tuple[str, ...] = ()
    needed: int = 1
    rejection: RejectedBefore | None = None
    undo_until: datetime | None = None


class Ruling(Frozen):
    """What an act came to: the item as it now is, the `memory` it became, if it did. `given` of the `needed` approvals
    are there where it waits for more; both None elsewhere."""

    item: PendingMemory
    memory: Memory | None = None
    given: int | None = None
    needed: int | None = None


class HandedOver(Frozen):
    """How far an audit is handed over: `taken` of its rows are at the service."""

    id: str
    taken: int


class Receipt(Frozen):
    """The proof that the log is bound to a decision, for `vouchgate-verify`; all None as long as it is not in a
    published checkpoint. `leaf` is base64; `salt` is hex, and None where it was erased or may not be shown."""

    leaf: str | None
    salt: str | None
    proof: str | None


class Who(Frozen):
    """Whom the service takes the caller for."""

    id: str
    name: str
    role: Role
    owners: tuple[str, ...]  # it may act for; with `any_owner`, for every one
    any_owner: bool
    sources: tuple[Source, ...]  # it may assert


class Record(Frozen):
    """What a user said or a tool returned, as the service keeps it: `digest` is the SHA-256 of the kept text in hex,
    `masked` whether that has masks in place of credentials."""

    id: str
    kind: str
    time: datetime
    conversation: str | None = None
    who: str
    digest: str
    masked: bool
    kept_until: datetime | None = None
    cite: str  # as a claim cites it

    def append_to(self, text: str) -> str:
        """The text, and in a line at its end how it is cited: for a model, which can cite only what it reads."""
        return f"{text}\n({self.cite})"


class DocumentSource(Frozen):
    """What a claim of a document cites, as it was read. `quotation` is the place that decides, if one does."""

    cited: str
    state: str  # found, missing, or why it could not be read
    detail: str
    address: str = ""  # where it was read in the end
    stance: str | None = None
    quotation: str = ""


class DocumentClaim(Frozen):
    """A claim of a document: VERIFIED, PARTIAL, FALSE, BROKEN_CITATION, UNCITED, UNKNOWN or EXEMPT. `missing` are words
    that no source of it has."""

    verdict: str
    message: str
    missing: tuple[str, ...]
    line: int
    text: str
    fingerprint: str
    sources: tuple[DocumentSource, ...]


class CheckedDocument(Frozen):
    """A document, claim by claim in its order."""

    file: str
    claims: tuple[DocumentClaim, ...]


class DocumentReport(Frozen):
    """Whether documents hold up against what they cite, and `reasons` where not. `status` is 0, 1, or 3 where something
    could not be found out."""

    passed: bool
    status: int
    reasons: tuple[str, ...]
    counts: dict[str, int]
    at: datetime
    policy_digest: str
    documents: tuple[CheckedDocument, ...]


class DeliveryState(Frozen):
    """Where a delivery stands: `waiting` (also between two tries), `delivered`, `dead` (given up), or `skipped` (not
    needed any more). A text and not an enumeration: a newer service may know one more."""

    id: str
    owner_id: str
    sink: str
    place: str
    op: DeliveryOp
    state: str
    attempts: int
    memory_id: str | None = None
    memory_type: MemoryType | None = None
    content: str | None = None
    data: dict[str, JsonValue] = Field(default_factory=dict)
    created_at: datetime | None = None
    due_at: datetime | None = None
    delivered_at: datetime | None = None
    last_error: str | None = None


class Delivered(NamedTuple):
    """How many deliveries were applied, failed (and are tried again later), and were given up."""

    done: int
    failed: int
    dead: int
