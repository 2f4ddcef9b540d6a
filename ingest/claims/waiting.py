"""What waits for its owner, and what is looked at again."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import Field, JsonValue

from vouchgate.ingest.claims.claim import GivenText, GivenTime, MemoryType, Source
from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.ingest.rules import Rule


class ReviewStatus(StrEnum):
    """Where a pending memory stands. EXPIRED is not REJECTED: nobody decided. Nor is LET_GO: a reviewer ended its wait
    because it cannot be decided well, and says nothing of whether it is so."""

    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"
    EXPIRED = "expired"
    LET_GO = "let_go"
    PROMOTED = "promoted"  # its citation verified when it was checked again; nobody had to decide


class Lane(StrEnum):
    """Whose places in the queue an item takes: those of its agent, or those kept for imports."""

    AGENT = "agent"
    IMPORT = "import"


class PendingMemory(Frozen):
    """A queued claim. `version` rises by one with every change; an act must name the version it saw."""

    id: str
    owner_id: str
    memory_type: MemoryType
    content: str
    source: Source
    reason: str
    status: ReviewStatus
    version: int
    seen: int  # how often the same claim was submitted while this one waited, the first included
    created_at: datetime
    expires_at: datetime
    decision_id: str
    submitted_by: str
    conflicting_memory_id: str | None = None
    decided_at: datetime | None = None
    decided_by: str | None = None
    note: str | None = None  # the reviewer's note, or the reason of a rejection
    memory_id: str | None = None  # the memory it became
    validity_horizon: datetime | None = None
    rule: Rule  # that queued it
    cited: str | None = None  # the key of the first thing it cites: what items are grouped by
    priority_at: datetime  # the earlier, the sooner it is shown; see `ingest.scoring.priority`
    rejected_before: str | None = None  # the item of the same words that its owner rejected lately
    # `DeliveryTarget.name` of what is to go: this item asks for a removal, and approving it stores nothing.
    removal_of: str | None = Field(default=None, exclude_if=lambda found: found is None)
    lane: Lane = Field(default=Lane.AGENT, exclude_if=lambda lane: lane is Lane.AGENT)
    snoozed_until: GivenTime = None  # not listed until then
    assigned_to: GivenText = None  # a principal who is to rule on it; anybody who may still can
    viewer: GivenText = None  # the principal who said last that they look at it; it keeps nobody away
    viewing_until: GivenTime = None
    question: GivenText = None  # what a reviewer asked its agent; kept once it was answered
    sent_back_at: GivenTime = None  # it is the agent's turn since then, and it is not listed
    asked_decision: GivenText = None  # the decision that stood when the question was asked
    metadata: dict[str, JsonValue] = Field(default_factory=dict)


class SpotVerdict(StrEnum):
    """What an owner says of a memory that a rule stored."""

    RIGHT = "right"
    WRONG = "wrong"
    CANNOT_TELL = "cannot_tell"


class SpotCheck(Frozen):
    """A memory that was drawn at random from what rules store as INFERENCE, for its owner to say whether it is right.
    `verdict` None: nobody has said so yet."""

    owner_id: str
    memory_id: str
    rule: Rule  # that stored it
    agent: str | None = None  # principal id of who sent it
    kind: str | None = None  # of the first thing it cites, and its publisher
    publisher: str | None = None
    created_at: datetime
    verdict: SpotVerdict | None = None
    decided_at: datetime | None = None
    decided_by: str | None = None  # principal id of the reviewer
