"""What an act on the queue can come to. A refusal is an answer, never an exception."""

from __future__ import annotations

from dataclasses import dataclass

from vouchgate.ingest.claims.memory import Memory
from vouchgate.ingest.claims.waiting import PendingMemory


@dataclass(frozen=True, slots=True)
class Approved:
    """The item is a memory now. `superseded` is the id of the memory it replaced, if it replaced one."""

    item: PendingMemory
    memory: Memory
    superseded: str | None


@dataclass(frozen=True, slots=True)
class Removed:
    """The item asked for a removal, and its owner agrees. `memory` is what was retracted; None when the gate never
    had what is to go."""

    item: PendingMemory
    memory: Memory | None


@dataclass(frozen=True, slots=True)
class Voted:
    """The approval counts, and the item waits for others: `given` of `needed` are there."""

    item: PendingMemory
    given: int
    needed: int


@dataclass(frozen=True, slots=True)
class Objected:
    """The item waits on, in its next version, in which it is `needed` times to be approved anew: the `voided` approvals
    that it had count no more."""

    item: PendingMemory
    voided: int
    needed: int


@dataclass(frozen=True, slots=True)
class Rejected:
    """The item will not be stored."""

    item: PendingMemory


@dataclass(frozen=True, slots=True)
class NotFound:
    """There is no such thing *for this principal*: another owner's id gives this answer too."""


@dataclass(frozen=True, slots=True)
class ItemChanged:
    """The item changed since the version that was named; `current` is how it stands."""

    current: PendingMemory


@dataclass(frozen=True, slots=True)
class AlreadyDecided:
    """The item does not wait any more: approved, rejected, expired, let go or promoted, as `current` says."""

    current: PendingMemory


@dataclass(frozen=True, slots=True)
class ApprovalRefused:
    """It cannot be approved, or a memory be confirmed, as asked; what it is about stays as it was.

    `code` is one of: `four_eyes` (the person behind the agent that proposed it does not vouch for it),
    `duplicate`, `conflict_unresolved`, `dedup_unavailable`, `no_longer_valid`, `edit_secret`,
    `edit_hedged`, `edit_citation_refuted`, `one_place` (keeping both cannot be done: a place of a sink holds one
    memory), `not_asked`, `edit_votes`, `votes_differ` (of several who must agree), `removal_edited`, `other_memory`
    (what is to go is not what was there when it was asked
    for). `message` is for the reviewer and says what can be done.
    """

    code: str
    message: str
    conflicting_memory_id: str | None = None


@dataclass(frozen=True, slots=True)
class Undone:
    """The item waits again. Of an approval: the memory `retracted` was taken back, and the memory `restored`,
    which it had replaced, is in force again."""

    item: PendingMemory
    retracted: str | None = None
    restored: str | None = None


@dataclass(frozen=True, slots=True)
class NotUndoable:
    """The decision stands; nothing was changed.

    `code` is one of: `four_eyes` (as of an approval),
    `waiting` (it waits: there is nothing to take back), `not_reviewed` (nobody decided),
    `too_late`, `expired` (its time to wait is over), `memory_gone` (what was stored is not in force any more),
    `duplicate` (the same claim was stored or queued meanwhile: `same_as`), `dedup_unavailable`, `queue_full`,
    `not_embedded` (a vector is needed and could not be made), `removal` (what was removed may be gone for good),
    `place_taken` (what it replaced would be written over another memory in a store behind the gate).
    `message` is for the reviewer.
    """

    code: str
    message: str
    current: PendingMemory
    same_as: str | None = None


@dataclass(frozen=True, slots=True)
class Retracted:
    """The memory is withdrawn."""

    memory: Memory


@dataclass(frozen=True, slots=True)
class AlreadyGone:
    """The memory had been superseded or retracted before."""

    memory: Memory
