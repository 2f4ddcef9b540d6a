"""What happened, as the log has it."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from vouchgate.ingest.claims.frozen import Frozen


class Action(StrEnum):
    """What the log can say happened."""

    CLAIM_STORED = "claim.stored"
    CLAIM_QUEUED = "claim.queued"
    CLAIM_REPEATED = "claim.repeated"  # a repeat of a pending item
    CLAIM_BLOCKED = "claim.blocked"
    CLAIM_PROMOTED = "claim.promoted"  # a pending item whose citation verified when it was checked again
    CLAIM_RECHECKED = "claim.rechecked"  # a pending item whose citation turned out otherwise: a new decision
    REVIEW_APPROVED = "review.approved"
    REVIEW_EDITED = "review.edited"  # the decision on the text an owner approves in place of the agent's
    REVIEW_REJECTED = "review.rejected"
    REVIEW_VOTED = "review.voted"  # an approval of one of several who must agree
    REVIEW_OBJECTED = "review.objected"  # the approvals that there were do not count any more
    REVIEW_VOTE_WITHDRAWN = "review.vote_withdrawn"
    REVIEW_EXPIRED = "review.expired"
    REVIEW_LET_GO = "review.let_go"  # a reviewer ended the wait of what cannot be decided well
    REVIEW_SNOOZED = "review.snoozed"
    REVIEW_ASSIGNED = "review.assigned"  # to a reviewer, or to nobody any more
    REVIEW_SENT_BACK = "review.sent_back"  # to its agent, with a question
    REVIEW_RESUMED = "review.resumed"  # snoozed or sent back, and taken into the list again
    CLAIM_ANSWERED = "claim.answered"  # the agent's answer to a question: a new decision
    REVIEW_UNDONE = "review.undone"  # an approval or a rejection taken back: the item waits again
    MEMORY_SUPERSEDED = "memory.superseded"
    MEMORY_RETRACTED = "memory.retracted"
    MEMORY_EXPIRED = "memory.expired"
    MEMORY_RESTORED = "memory.restored"  # in force again: the approval that replaced it was taken back
    MEMORY_STALE = "memory.stale"  # a source of it went away or changed
    MEMORY_FRESH = "memory.fresh"  # its sources are again as they were
    MEMORY_CONFIRMED = "memory.confirmed"  # its owner says that it still holds
    MEMORY_RELABELLED = "memory.relabelled"  # judged again, its label or confidence promised too much
    MEMORY_ERASE_ASKED = "memory.erase_asked"  # by one of several who must ask for it
    MEMORY_ERASED = (
        "memory.erased"  # the texts of all that came of a claim; or what another's decision showed of them
    )
    SPOT_CHECK_RIGHT = "spot_check.right"  # its owner's word on a memory that was drawn
    SPOT_CHECK_WRONG = "spot_check.wrong"
    SPOT_CHECK_CANNOT_TELL = "spot_check.cannot_tell"
    PUBLISHER_TRUSTED = "publisher.trusted"  # an owner's word on a publisher, for their own memories
    PUBLISHER_BANNED = "publisher.banned"
    PUBLISHER_CLEARED = "publisher.cleared"  # that word taken back
    RECORD_KEPT = "record.kept"  # what a user said or a tool returned, put down by a recorder
    AUDIT_CLEARED = "audit.cleared"  # rows of an audited memory, taken out of what goes to the gate
    AUDIT_KEPT = "audit.kept"  # rows of one that were found wrongly, says its owner
    AUDIT_UNDONE = "audit.undone"  # either of these taken back
    DOCUMENT_DELETED = "document.deleted"  # one that was sent to be checked, with its report
    STANDING_RULING_CONFIRMED = (
        "standing_ruling.confirmed"  # an owner's: claims like one are ruled on by themselves
    )
    STANDING_RULING_ENDED = "standing_ruling.ended"  # taken back, and what became of what it did
    CLAIM_LET_THROUGH = (
        "claim.let_through"  # would have been held; stored unvouched, because the gate only observes
    )
    POLICY_IN_FORCE = "policy.in_force"  # the service began under another policy than before
    OWNER_RULES_IN_FORCE = "owner_rules.in_force"  # the same of its file of owner rules
    MODE_SET = "mode.set"  # of the service, an owner or an agent
    STOPPED = "stop.set"  # nothing more is taken of an agent, for an owner, or at all
    RESUMED = "stop.ended"
    TOKEN_CREATED = "token.created"  # noqa: S105  (an action, not a password)
    TOKEN_REVOKED = "token.revoked"  # noqa: S105
    TOKEN_ASSIGNED = "token.assigned"  # noqa: S105  (it is a person's from now on)
    OWNER_CREATED = "owner.created"
    PERSON_CREATED = "person.created"
    PERSON_ENDED = "person.ended"
    IDENTITY_LINKED = "identity.linked"  # what a person signs in with elsewhere
    IDENTITY_UNLINKED = "identity.unlinked"
    MEMBERSHIP_GRANTED = "membership.granted"
    MEMBERSHIP_ENDED = "membership.ended"
    STAND_IN_GRANTED = "stand_in.granted"  # somebody rules in the stead of another, until a date
    STAND_IN_ENDED = "stand_in.ended"  # before that date
    LINK_CREATED = "link.created"  # a link that signs a reviewer in, once
    SESSION_STARTED = "session.started"
    SESSION_ENDED = "session.ended"
    WEBHOOK_CREATED = "webhook.created"
    WEBHOOK_REMOVED = "webhook.removed"
    MAIL_CREATED = "mail.created"  # an address gets a digest
    MAIL_REMOVED = "mail.removed"
    SINK_CREATED = "sink.created"  # a webhook that gets every memory of its owner
    SINK_REMOVED = "sink.removed"
    SINK_HANDED_OVER = "sink.handed_over"  # another token serves it, by the operator's word
    DELIVERY_RETRIED = "delivery.retried"  # a dead letter put back
    LOG_KEY_ADDED = "log_key.added"  # the log is signed with it from now on
    LOG_KEY_RETIRED = "log_key.retired"
    DELIVERY_DROPPED = "delivery.dropped"  # a dead letter given up for good
    AUDIT_READ = "audit.read"  # what an auditor asked to see


class Promise(Frozen):
    """The gate's word, signed, that an entry of its log is on disk and will be in its tree: number `seq` of the owner
    with this pseudonym, whose digest is `digest`. One signature is for all entries of a commit: `hashes` (base64) lead
    from this one, number `index` of them, to the root that `note` is signed over."""

    owner: str
    seq: int
    digest: str
    index: int
    hashes: tuple[str, ...]
    note: str


class LogEntry(Frozen):
    """One line of the append-only log. It holds digests, not text, so text can be erased without breaking it.

    Entries are numbered and hash-chained per owner: `digest` covers every other field and `previous`,
    the digest of the entry before (64 zeros for the first). The chain of owner `""` is the service's own.
    """

    owner_id: str
    seq: int
    at: datetime
    actor: str
    action: Action
    subject_id: str
    # A commitment to what the entry is about: the evidence, the note, the token's grant
    # (storage.log.chain.Document.commitment).
    content_digest: str
    previous: str
    digest: str
