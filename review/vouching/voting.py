"""Several people who must agree. Runs as the functions of `review.acts` do, under the owner's lock, so that two votes
come one after the other; what it takes is asked anew each time (`review.vouching.owner_rules`)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import Connection

from vouchgate.ingest.claims.decision import ValidationResult
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.people import Person, Principal
from vouchgate.ingest.claims.standing_rulings import RulingTerms
from vouchgate.ingest.claims.waiting import PendingMemory
from vouchgate.ingest.rules import Rule
from vouchgate.ingest.scoring.sampling import NOTHING
from vouchgate.review import record
from vouchgate.review.answers import ApprovalRefused, Objected, Voted
from vouchgate.review.vouching.four_eyes import CODE
from vouchgate.review.vouching.owner_rules import OwnerRules, Required, facts_of, risk_of
from vouchgate.storage.errors import StorageError
from vouchgate.storage.identity import persons, tokens
from vouchgate.storage.queue import pending, proposers, votes
from vouchgate.storage.queue.votes import Vote

_UNNAMED = "More than one person must approve this, and it is not known who is behind your token."
_OWN = "You are the person behind the agent that proposed this, or stand in for them, so your approval does not count."
_EDITED = (
    "More than one person must approve this, and they approve one text: reject it, and have it sent again."
)
_RULING = (
    "The owner's rules have a line for claims that this standing ruling may store: “{rule}”. %s "
    "Narrow it to claims that the line is not about, by their type for instance, or rule on each."
)
_RULING_VOTES = _RULING % "More than one person must approve those."
_RULING_ASKED = _RULING % "Others are asked about those."
# As what waits for a reason that such a ruling outranks: `uncovered`, `ungrounded`.
_STORED_BY_RULINGS = (risk_of(Rule.UNCOVERED), risk_of(Rule.UNGROUNDED))
_DIFFER = "{name} approved it and said otherwise of what it conflicts with. Object to it, and vote again."


@dataclass(frozen=True, slots=True)
class Ballot:
    """An approval that is asked for, and what it takes."""

    principal: Principal
    required: Required
    note: str | None
    supersede: bool | None
    edited: bool
    now: datetime


def required_for(
    connection: Connection,
    rules: OwnerRules,
    answer: ValidationResult,
    *,
    owner_id: str,
    submitted_by: str,
    now: datetime,
) -> Required:
    """What it takes to approve a claim of this principal that was decided so, and who stands in by now."""
    required = rules.required(facts_of(answer, _names_of(connection, submitted_by)))
    found = proposers.rulers(connection, owner_id, now) if required.asked else []
    return replace(
        required, stand_ins=tuple((one.name, one.absent) for one in found if one.absent in required.asked)
    )


def ruling_refusal(
    connection: Connection,
    rules: OwnerRules,
    terms: RulingTerms,
    principal: Principal,
    *,
    owner_id: str,
    now: datetime,
) -> ApprovalRefused | None:
    """What the rules say against this principal alone having stored whatever claim meets these terms."""
    known: dict[str, Collection[str]] = {"owner": (owner_id,)}
    if terms.agent is not None:
        known["agent"] = _names_of(connection, terms.agent)
    if terms.memory_type is not None:
        known["type"] = (terms.memory_type.value,)
    if terms.source is not None:
        known["source"] = (terms.source.value,)
    if terms.kind == NOTHING:
        known["path"] = ()
    for required in rules.possible(known, {"risk": _STORED_BY_RULINGS}):
        if required.approvals > 1:
            return ApprovalRefused("ruling_votes", _RULING_VOTES.format(rule=required.rule))
        if not_asked(connection, required, principal, owner_id, now):
            return ApprovalRefused("not_asked", _RULING_ASKED.format(rule=required.rule))
    return None


def _names_of(connection: Connection, submitted_by: str) -> set[str]:
    """What rules may call who sent a claim."""
    names = tokens.names(connection, {submitted_by})
    person_id = proposers.persons_of(connection, {submitted_by}).get(submitted_by)
    person = None if person_id is None else persons.find(connection, person_id)
    return {submitted_by, *names.values(), *(() if person is None else (person.name,))}


def cast(connection: Connection, item: PendingMemory, ballot: Ballot) -> Voted | ApprovalRefused | list[Vote]:
    """Counts an approval. When it is the last that was missing: the votes that the ruling rests on, this one included
    and not written yet (see `seal`); empty where one approval is enough."""
    required, who = ballot.required, ballot.principal
    person = _person_of(connection, who)
    if barred := not_asked(connection, required, who, item.owner_id, ballot.now):
        return ApprovalRefused("not_asked", barred)
    seats = _seats(connection, item.owner_id, required, person, ballot.now)
    if required.approvals == 1:
        return []
    if person is None:
        return ApprovalRefused(CODE, _UNNAMED)
    refused = _refusal(connection, item, ballot, person)
    return refused or _count(connection, item, ballot, person, seats)


def not_asked(
    connection: Connection, required: Required, principal: Principal, owner_id: str, now: datetime
) -> str | None:
    """Why this principal's approval does not count for anybody who is asked; None when it does, or all are asked."""
    if not required.asked or _seats(connection, owner_id, required, _person_of(connection, principal), now):
        return None
    return f"By the owner's rules this is for others to approve: {', '.join(required.asked)}."


def _person_of(connection: Connection, principal: Principal) -> Person | None:
    person_id = proposers.persons_of(connection, {principal.id}).get(principal.id, principal.person)
    return None if person_id is None else persons.find(connection, person_id)


def _seats(
    connection: Connection, owner_id: str, required: Required, person: Person | None, now: datetime
) -> list[str]:
    """The ids of those whose approval this person's would be, and who are asked; their own first."""
    if person is None:
        return []
    found = proposers.rulers(connection, owner_id, now)
    named = {one.acts_for or one.id: one.absent or one.name for one in found if one.id == person.id}
    seats = [seat for seat, name in named.items() if not required.asked or name in required.asked]
    return sorted(seats, key=lambda seat: (seat != person.id, seat))


def counted(connection: Connection, item: PendingMemory, cast: Sequence[Vote], now: datetime) -> list[Vote]:
    """The approvals that count for an item as it is: of those who still may rule for its owner, in the same right, and
    have not come to stand in for the person behind the agent."""
    given = votes.standing(cast, item.version)
    if not given:
        return []
    found = {(one.id, one.acts_for) for one in proposers.rulers(connection, item.owner_id, now)}
    theirs = proposers.persons_of(connection, {item.submitted_by}).get(item.submitted_by)
    return [
        vote
        for vote in given
        if (vote.person_id, vote.acts_for) in found and (vote.person_id, theirs) not in found
    ]


def _count(
    connection: Connection, item: PendingMemory, ballot: Ballot, person: Person, seats: Sequence[str]
) -> Voted | ApprovalRefused | list[Vote]:
    required = ballot.required
    given = counted(connection, item, _cast(connection, item), ballot.now)
    free = [seat for seat in seats if seat not in {vote.seat for vote in given}]
    if not free or person.id in {vote.person_id for vote in given}:
        if len(given) >= required.approvals:  # the rules ask for fewer than they did
            return given
        return Voted(item, len(given), required.approvals)
    for other in given:
        if other.supersede is not ballot.supersede:
            return ApprovalRefused("votes_differ", _DIFFER.format(name=other.name or other.person_id))
    own = Vote(
        version=item.version,
        person_id=person.id,
        name=person.name,
        verdict="approve",
        by=ballot.principal.id,
        at=ballot.now,
        note=ballot.note,
        supersede=ballot.supersede,
        acts_for="" if free[0] == person.id else free[0],
    )
    given = [*given, own]
    if len(given) < required.approvals:
        _keep(connection, item, own)
        return Voted(item, len(given), required.approvals)
    return given


def _refusal(
    connection: Connection, item: PendingMemory, ballot: Ballot, person: Person
) -> ApprovalRefused | None:
    if ballot.edited:
        return ApprovalRefused("edit_votes", _EDITED)
    theirs = proposers.persons_of(connection, {item.submitted_by}).get(item.submitted_by)
    found = proposers.rulers(connection, item.owner_id, ballot.now)
    if person.id == theirs or any(one.id == person.id and one.acts_for == theirs for one in found):
        return ApprovalRefused(CODE, _OWN)
    return None


def seal(connection: Connection, item: PendingMemory, given: list[Vote]) -> None:
    """Keeps the last vote beside the others, once the item is approved on them."""
    known = votes.standing(_cast(connection, item), item.version)
    for vote in given:
        if vote not in known:
            _keep(connection, item, vote)


def evidence_of(given: list[Vote], required: Required) -> str | None:
    """What a ruling's log entry commits to of the votes that it rests on; None where one approval was enough."""
    if not given:
        return None
    return f"{len(given)} of {required.approvals}: " + ", ".join(
        f"{vote.person_id} {vote.by}" + (f" for {vote.acts_for}" if vote.acts_for else "") for vote in given
    )


def object_to(
    connection: Connection,
    item: PendingMemory,
    principal: Principal,
    required: Required,
    *,
    reason: str,
    now: datetime,
) -> Objected | None:
    """Returns an item to the queue that somebody approved: their votes do not count any more. None when nobody did;
    then a rejection ends its wait."""
    given = counted(connection, item, _cast(connection, item), now)
    if not given:
        return None
    person_id = proposers.persons_of(connection, {principal.id}).get(principal.id, principal.person)
    who = person_id or principal.id
    objection = Vote(
        version=item.version, person_id=who, verdict="object", by=principal.id, at=now, note=reason
    )  # in place of the approval of who changed their mind
    _keep(connection, item, objection)
    if not pending.renew(connection, item):
        raise StorageError(f"item {item.id} changed although its owner was locked")
    renewed = item.model_copy(update={"version": item.version + 1})
    return Objected(renewed, len(given), required.approvals)


def withdraw(connection: Connection, item: PendingMemory, principal: Principal, now: datetime) -> bool:
    """Takes this person's approval back while the item waits; False when there is none."""
    person_id = proposers.persons_of(connection, {principal.id}).get(principal.id, principal.person)
    if person_id is None:
        return False
    if not votes.withdraw(connection, item.owner_id, item.id, item.version, person_id):
        return False
    document = record.document(item=item.id, version=str(item.version), person=person_id)
    record.entry(
        connection, item.owner_id, Action.REVIEW_VOTE_WITHDRAWN, item.id, document, by=principal.id, now=now
    )
    return True


def _cast(connection: Connection, item: PendingMemory) -> list[Vote]:
    return votes.of_item(connection, item.owner_id, item.id)


def _keep(connection: Connection, item: PendingMemory, vote: Vote) -> None:
    votes.write(connection, item.owner_id, item.id, vote)
    action = Action.REVIEW_VOTED if vote.verdict == "approve" else Action.REVIEW_OBJECTED
    supersede = None if vote.supersede is None else str(vote.supersede)
    about = {"item": item.id, "version": str(vote.version), "person": vote.person_id, "verdict": vote.verdict}
    stead = {"acts_for": vote.acts_for} if vote.acts_for else {}
    document = record.document(2, **about, note=vote.note, supersede=supersede, **stead)
    record.entry(connection, item.owner_id, action, item.id, document, by=vote.by, now=vote.at)
