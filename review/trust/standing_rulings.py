"""Standing rulings of owners: proposed from a claim, previewed on what was decided lately, confirmed by a
person who does not run the agent, for a time. Taking one back is `review.trust.taking_back`.

Rights are those of the review queue: a reviewer's, on what is the reviewer's own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property

from pydantic import ValidationError
from sqlalchemy import Connection

from vouchgate.ingest.checks.hedge import HedgeDetector
from vouchgate.ingest.claims.citation import CitationType
from vouchgate.ingest.claims.decision import ValidationResult
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.memory import MemoryStatus
from vouchgate.ingest.claims.people import Principal
from vouchgate.ingest.claims.source import SourceReading
from vouchgate.ingest.claims.standing_rulings import RulingDraft, RulingTerms, StandingRuling, template_of
from vouchgate.ingest.claims.trust import AppliedRuling, RulingVerdict
from vouchgate.ingest.claims.waiting import PendingMemory, ReviewStatus
from vouchgate.ingest.pipeline import remake
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.rules import Rule
from vouchgate.ingest.scoring.sampling import cited_first
from vouchgate.review import record
from vouchgate.review.acts import SERVICE
from vouchgate.review.answers import NotFound
from vouchgate.review.reading import own_owners, parse_decision
from vouchgate.review.rules import Act
from vouchgate.review.vouching import four_eyes, voting
from vouchgate.review.vouching.owner_rules import NO_RULES, OwnerRules
from vouchgate.storage import ids
from vouchgate.storage.claims import decisions, memories, standing_rulings
from vouchgate.storage.claims.standing_rulings import RulingCounts
from vouchgate.storage.queue import pending, proposers
from vouchgate.storage.queue.pending import QueueFilter
from vouchgate.storage.store import Store

MOST = 100  # rulings of one owner in force
DAYS = 90  # that a preview looks back, and that a standing ruling lasts unless its owner says otherwise
MOST_LOOKED_AT = 2000  # decisions, the newest: some two seconds
MOST_SHOWN = 20  # claims of a preview
MOST_NAME = 120  # characters


class Ruled(StrEnum):
    """What a person said of a claim, held against what a standing ruling would have done with it."""

    SAME = "same"
    OTHERWISE = "otherwise"
    NOBODY = "nobody"  # it waits, or its time was over


@dataclass(frozen=True, slots=True)
class Proposal:
    """A standing ruling that the ruling on a claim suggests: every term that fits the claim, of which some will do, and
    what was done with the claim; None while nobody ruled on it."""

    item_id: str
    owner_id: str
    content: str
    terms: RulingTerms
    verdict: RulingVerdict | None


@dataclass(frozen=True, slots=True)
class Seen:
    """A claim that a standing ruling would have decided."""

    content: str
    decision_id: str
    ruled: Ruled


@dataclass(frozen=True, slots=True)
class RulingPreview:
    """What a standing ruling would have done in the last DAYS: of `looked_at` decisions (`cut`: there were more) it
    `would` have decided so many, of which people ruled the same, otherwise, or not at all. Of these a few are `shown`,
    those that were ruled otherwise first."""

    looked_at: int
    cut: bool
    would: int
    same: int
    otherwise: int
    nobody: int
    shown: tuple[Seen, ...]


@dataclass(frozen=True, slots=True)
class RulingRefused:
    """The standing ruling was not confirmed. `code` is one of: `four_eyes`, `no_name`, `not_asked`, `ruling_votes`,
    `too_many_standing_rulings`, `too_long`, `standing_rulings_store_nothing`; `message` is for the reviewer."""

    code: str
    message: str


class StandingRulings:
    """The standing rulings of owners under one policy."""

    def __init__(self, store: Store, policy: Policy, rules: OwnerRules = NO_RULES) -> None:
        self.store = store
        self.policy = policy
        self.rules = rules

    @cached_property
    def detector(self) -> HedgeDetector:
        """Of the policy's hedges; made for the first proposal, since it takes as long as a claim or two."""
        return HedgeDetector(self.policy.lexicon)

    def listing(self, principal: Principal) -> list[tuple[StandingRuling, RulingCounts]]:
        """Every standing ruling the reviewer's owners ever had, the newest first, with what it did; none for any other
        principal."""
        with self.store.read() as connection:
            owners = sorted(own_owners(principal, Act.READ_REVIEWS))
            return [each for owner_id in owners for each in standing_rulings.listing(connection, owner_id)]

    def propose(self, principal: Principal, item_id: str) -> Proposal | NotFound:
        """What a standing ruling could be about that does with claims like this one what was done with it."""
        owners = own_owners(principal, Act.READ_REVIEWS)
        with self.store.read() as connection:
            item = pending.get(connection, item_id, owners=owners)
            found = None if item is None else decisions.get(connection, item.decision_id, owners=owners)
        kept = parse_decision(found)
        if item is None or kept is None or item.removal_of is not None:
            return NotFound()
        said = {ReviewStatus.APPROVED: RulingVerdict.STORE, ReviewStatus.REJECTED: RulingVerdict.REJECT}
        sources = kept.evidence.sources
        kind, publisher = cited_first(sources)
        terms = {
            "agent": item.submitted_by,
            "source": item.source,
            "memory_type": item.memory_type,
            "kind": kind,
            "path": _path_of(sources),
            "publisher": publisher,
            "template": template_of(kept.evidence.claim.stated),
        }
        try:
            offered = RulingTerms.model_validate(terms)
        except ValidationError as error:  # an address or a path that a stranger made up
            odd = {each["loc"][0] for each in error.errors()}
            offered = RulingTerms.model_validate({name: terms[name] for name in terms if name not in odd})
        return Proposal(item.id, item.owner_id, item.content, offered, said.get(item.status))

    def preview(
        self, principal: Principal, owner_id: str, draft: RulingDraft, now: datetime
    ) -> RulingPreview:
        """What the standing ruling would have stored or rejected, and what was ruled otherwise. Raises PermissionError
        for who is not the owner's reviewer."""
        _refuse_others(principal, owner_id)
        since, owners, found = now - timedelta(days=DAYS), frozenset({owner_id}), list[Seen]()
        with self.store.read() as connection:
            made = decisions.since(connection, owner_id, since, agent=draft.terms.agent, most=MOST_LOOKED_AT)
            for agent, text in made:
                kept = parse_decision(text) if agent not in (SERVICE, principal.id) else None
                if kept is None or not draft.is_about(kept.evidence.claim, agent, kept.evidence.sources):
                    continue
                if self._decides(draft, kept):
                    ruled = _ruled(connection, draft.verdict, kept, owners, now)
                    found.append(Seen(kept.evidence.claim.content, str(kept.decision_id), ruled))
        counts = Counter(each.ruled for each in found)
        found.sort(key=lambda each: each.ruled is not Ruled.OTHERWISE)
        return RulingPreview(
            looked_at=len(made),
            cut=len(made) == MOST_LOOKED_AT,
            would=len(found),
            same=counts[Ruled.SAME],
            otherwise=counts[Ruled.OTHERWISE],
            nobody=counts[Ruled.NOBODY],
            shown=tuple(found[:MOST_SHOWN]),
        )

    def _decides(self, draft: RulingDraft, kept: ValidationResult) -> bool:
        """Whether the standing ruling would have decided a claim, on what was known when it came."""
        ruling = AppliedRuling(id="", name="", verdict=draft.verdict)
        try:
            examined = remake(kept, self.policy.heeding(kept.evidence.publishers), self.detector)
        except ValueError:  # a decision of before, whose evidence lacks what is asked now
            return False
        return examined.knowing(standing_ruling=ruling).decide().rule is Rule.STANDING_RULING

    def waiting(
        self, principal: Principal, ruling_id: str, now: datetime
    ) -> tuple[StandingRuling, list[PendingMemory]] | NotFound:
        """A standing ruling of the reviewer's own that is in force, and what is listed that it would have decided, the
        most pressing first, of as many as a page has. It rules on none of them: the reviewer may."""
        with self.store.read() as connection:
            mine = own_owners(principal, Act.REVIEW)
            every = [one for owner in sorted(mine) for one in standing_rulings.in_force(connection, owner)]
            ruling = next((one for one in every if one.id == ruling_id and now < one.until), None)
            if ruling is None:
                return NotFound()
            owners, found = frozenset({ruling.owner_id}), list[PendingMemory]()
            wanted = QueueFilter(owners=owners, sender=ruling.terms.agent, limit=MOST, now=now)
            for item in pending.search(connection, wanted):
                kept = parse_decision(decisions.get(connection, item.decision_id, owners=owners))
                if kept is None or item.removal_of is not None:
                    continue
                about = ruling.is_about(kept.evidence.claim, item.submitted_by, kept.evidence.sources)
                if about and self._decides(ruling, kept):
                    found.append(item)
        return ruling, found

    def confirm(
        self,
        principal: Principal,
        owner_id: str,
        draft: RulingDraft,
        *,
        name: str,
        days: int,
        now: datetime,
        item_id: str | None = None,
    ) -> StandingRuling | RulingRefused:
        """Notes and logs a standing ruling, which counts for what is decided from now on, for so many days. Raises as
        `preview`."""
        _refuse_others(principal, owner_id)
        limits = self.policy.standing_rulings
        if not name.strip() or not name.isprintable():
            return RulingRefused("no_name", "A standing ruling is called something, in printable characters.")
        if days > limits.days:
            return RulingRefused(
                "too_long", f"The policy lets a standing ruling last {limits.days} days at most."
            )
        if draft.verdict is RulingVerdict.STORE and not limits.store:
            return RulingRefused(
                "standing_rulings_store_nothing",
                "The policy lets no standing ruling of an owner store anything.",
            )
        ruling = StandingRuling(
            id=ids.ruling_id(ids.new_id_suffix(now)),
            owner_id=owner_id,
            name=name,
            verdict=draft.verdict,
            terms=draft.terms,
            created_at=now,
            until=now + timedelta(days=days),
            confirmed_by=principal.id,
            item_id=item_id,
        )

        def work(connection: Connection) -> StandingRuling | RulingRefused:
            if not proposers.may_still_rule(connection, principal, owner_id, now):
                return RulingRefused(four_eyes.CODE, four_eyes.ENDED)
            if draft.terms.agent is not None and (
                barred := four_eyes.find_problem(
                    connection, principal, draft.terms.agent, owner_id, policy=self.policy, now=now
                )
            ):
                return RulingRefused(four_eyes.CODE, barred)
            if draft.verdict is RulingVerdict.STORE and (
                others := voting.ruling_refusal(
                    connection, self.rules, draft.terms, principal, owner_id=owner_id, now=now
                )
            ):
                return RulingRefused(others.code, others.message)
            if item_id is not None and pending.get(connection, item_id, owners=frozenset({owner_id})) is None:
                return RulingRefused("unknown_item", "The owner has no item of that id.")
            if sum(now < each.until for each in standing_rulings.in_force(connection, owner_id)) >= MOST:
                return RulingRefused(
                    "too_many_standing_rulings",
                    f"There are {MOST} standing rulings already; take one back first.",
                )
            standing_rulings.put(connection, ruling)
            said = record.document(ruling=ruling.model_dump_json())
            record.entry(
                connection,
                owner_id,
                Action.STANDING_RULING_CONFIRMED,
                ruling.id,
                said,
                by=principal.id,
                now=now,
            )
            return ruling

        return self.store.writer.run([owner_id], work).result()


def _path_of(sources: Sequence[SourceReading]) -> str | None:
    """The file that is cited first, without its lines."""
    files = (CitationType.PATH, CitationType.CORPUS)
    keys = [source.citation.key for source in sources if source.citation.type in files]
    return keys[0].partition(":")[2].partition("#")[0].partition("@")[0] if keys else None


def _ruled(
    connection: Connection,
    verdict: RulingVerdict,
    kept: ValidationResult,
    owners: frozenset[str],
    now: datetime,
) -> Ruled:
    item = pending.get(connection, kept.queue_id or "", owners=owners)
    stored = memories.get(connection, (item and item.memory_id) or kept.memory_id or "", now, owners=owners)
    if stored is not None:  # what was retracted since was not to be stored
        kept_out = stored.status is MemoryStatus.RETRACTED
    elif item is not None and item.status is ReviewStatus.REJECTED:
        kept_out = True
    else:
        return Ruled.NOBODY
    return Ruled.SAME if kept_out is (verdict is RulingVerdict.REJECT) else Ruled.OTHERWISE


def _refuse_others(principal: Principal, owner_id: str) -> None:
    if owner_id not in own_owners(principal, Act.REVIEW):
        raise PermissionError("only its owner makes standing rulings")
