"""The policy: every threshold, list and switch a decision depends on, as one validated document."""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import Field, PrivateAttr, model_validator

from vouchgate.ingest.claims.citation import CitationName
from vouchgate.ingest.claims.claim import MemoryType, Source
from vouchgate.ingest.claims.decision import Confidence, Tier
from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.ingest.claims.trust import OwnPublishers
from vouchgate.ingest.hedges.lexicon import Lexicon
from vouchgate.ingest.language.value_words import ValueWords
from vouchgate.ingest.scoring.reputation import Reputation, SiteGroup

# The built-in ceilings: matching was measured to be linear up to here, so a policy may only lower them.
MAX_CONTENT_CHARACTERS = 8192
MAX_METADATA_BYTES = 4096
MAX_CITATIONS = 20
MAX_BATCH_CLAIMS = 500
MAX_DOCUMENT_BYTES = 1_000_000  # over the API
MAX_RECORD_CHARACTERS = 32_768

Share = Annotated[float, Field(ge=0, le=1)]
Days = Annotated[float, Field(gt=0, le=36_500)]


class Limits(Frozen):
    """Sizes of what is accepted. A claim over one of them is refused, never checked in part."""

    content_characters: int = Field(ge=1, le=MAX_CONTENT_CHARACTERS)
    metadata_bytes: int = Field(ge=2, le=MAX_METADATA_BYTES)
    citations: int = Field(ge=0, le=MAX_CITATIONS)
    batch_claims: int = Field(ge=1, le=MAX_BATCH_CLAIMS)
    claims_per_minute: int = Field(ge=0)

    @property
    def most_rows(self) -> int:
        """How many claims one batch may have: never more than its token may send in a minute."""
        return min(self.batch_claims, self.claims_per_minute or self.batch_claims)


class HeadStart(Frozen):
    """How many days of waiting a reason counts for in the order of the queue; see `ingest.scoring.priority`."""

    conflict: float = Field(ge=0, le=365)
    citation: float = Field(ge=0, le=365)
    hedge: float = Field(ge=0, le=365)


class QueueLimits(Frozen):
    """How many claims may wait, and for how long; how long an act can be taken back, and a rejection is
    remembered. None is no limit of that kind, as in policies of before there was one: imports then have the places
    that agents have."""

    per_agent: int | None = Field(default=None, ge=1, exclude_if=lambda most: most is None)
    per_owner: int = Field(ge=1)
    per_token: int | None = Field(default=None, ge=1, exclude_if=lambda most: most is None)
    total: int = Field(ge=1)
    imports_per_owner: int | None = Field(default=None, ge=1, exclude_if=lambda most: most is None)
    imports_total: int | None = Field(default=None, ge=1, exclude_if=lambda most: most is None)
    expire_days: int = Field(ge=1, le=3650)
    retry_after_seconds: int = Field(ge=1)
    undo_minutes: float = Field(ge=0, le=60 * 24 * 7)  # 0: nothing can be taken back
    rejected_days: int = Field(ge=0, le=3650)
    head_start_days: HeadStart


class ScoreWeights(Frozen):
    """Weights of the source score, design section 3; they must sum to 1."""

    reachable: Share
    reputation: Share
    freshness: Share
    judgement: Share

    @model_validator(mode="after")
    def _sums_to_one(self) -> Self:
        total = self.reachable + self.reputation + self.freshness + self.judgement
        if abs(total - 1) > 1e-9:
            raise ValueError(f"the four weights must sum to 1, not {total:g}")
        return self


class WebPolicy(Frozen):
    """How the service behaves towards the hosts that claims cite."""

    extra_ports: tuple[Annotated[int, Field(ge=1, le=65535)], ...]  # besides 80, 443, 8080 and 8443
    per_host: int = Field(ge=1, le=16)  # requests to one host at once
    spacing_seconds: float = Field(ge=0, le=60)  # between the starts of two of them


class Remember(Frozen):
    """How long a reading of something outside the repositories is used again; what is unknown is never kept."""

    found_hours: float = Field(gt=0, le=24 * 365)
    missing_minutes: float = Field(gt=0, le=60 * 24)


class Recheck(Frozen):
    """When what could not be found out is asked again, and how often stored memories' sources are."""

    first_seconds: float = Field(gt=0, le=86_400)
    growth: float = Field(ge=1, le=10)  # each wait is so many times the one before
    attempts: int = Field(ge=0, le=20)  # then it is left to the owner
    memory_days: float = Field(gt=0, le=3650)
    # The first check of a memory that rests on a page of a publisher nobody listed is at random within so many days, if
    # that is sooner. 0: there is none but the others.
    second_look_days: float = Field(default=0, ge=0, le=3650, exclude_if=lambda days: days == 0)


class Freshness(Frozen):
    """After how many days without confirmation a memory is stale, by the kind of its sources and by its own; the least
    that is named counts, and without one it never is."""

    sources: dict[CitationName, Days] = Field(default_factory=dict)
    claims: dict[MemoryType, Days] = Field(default_factory=dict)


class JudgePolicy(Frozen):
    """The optional judge; where it is and which models it has is a setting."""

    enabled: bool
    seconds: float = Field(gt=0, le=60)  # for one question
    questions_per_day: int = Field(ge=0)


class EntailmentPolicy(Frozen):
    """The optional entailment model; where it is, is a setting."""

    enabled: bool = False
    # The probability of "entailment" from which what a source only speaks of counts as stated. 0: it never does.
    lifts_from: Share = 0.0


class EchoPolicy(Frozen):
    """When a claim that comes again is an echo, and what becomes of it."""

    count: int = Field(default=3, ge=2, le=1_000_000)  # submissions from which on it is one
    action: Literal["report", "queue", "block"] = "report"


PersonalDataAction = Literal["queue", "mask", "allow"]


class PersonalDataPolicy(Frozen):
    """What becomes of a claim that holds personal data, by kind: it waits for its owner, goes on with a mask in place
    of the data, or goes on as it is, as before there were these; see `ingest.checks.personal`."""

    payment_card: PersonalDataAction = "allow"
    us_social_security: PersonalDataAction = "allow"
    iban: PersonalDataAction = "allow"
    phone: PersonalDataAction = "allow"
    mail: PersonalDataAction = "allow"

    def kinds(self, action: PersonalDataAction) -> frozenset[str]:
        """The kinds of which this becomes."""
        return frozenset(kind for kind, does in self if does == action)


class SpotChecks(Frozen):
    """Of what rules store as INFERENCE, the share that owners are asked about afterwards; see
    `ingest.scoring.sampling`."""

    rate: Share = 0.0
    # The share while the sender, the kind of what is cited or its publisher is not shown to be right in `known_at`: is
    # new, or was wrong lately. None: it is as ever.
    new_rate: Share | None = Field(default=None, exclude_if=lambda rate: rate is None)
    known_at: Share = Field(default=0.8, exclude_if=lambda share: share == 0.8)


class StandingRulingLimits(Frozen):
    """What standing rulings of owners may do; see `ingest.claims.standing_rulings`."""

    store: bool = True  # False: they reject only
    confidence: Literal[Confidence.MEDIUM, Confidence.LOW] = Confidence.MEDIUM  # of what they store
    spot_checks: Share = 0.2  # of what they store, if the rate of all is not higher
    days: int = Field(default=180, ge=1, le=3650)  # that one lasts at most


class SourceTexts(Frozen):
    """How long the whole texts of sources are kept beside the decisions that rest on them."""

    days: int = Field(default=0, ge=0, le=36_500)  # 0: none is kept


class Retention(Frozen):
    """After how many days texts are erased that nobody needs any more; 0: never. See `review.ending.erasing`."""

    rejected_days: int = Field(default=0, ge=0, le=36_500)  # claims that their owner rejected
    blocked_days: int = Field(default=0, ge=0, le=36_500)  # and those that were never let in
    idempotency_days: int = Field(
        default=0, ge=0, le=36_500
    )  # keys of answers; a claim sent again is then a new one


class HitWeights(Frozen):
    """What the vote of a kind of publisher weighs, in tenths of a primary source."""

    primary: int = Field(default=10, ge=0, le=10)  # peer-reviewed, institutions, makers about what they make
    wire: int = Field(default=8, ge=0, le=10)  # news agencies, from which others copy
    secondary: int = Field(default=6, ge=0, le=10)  # newspapers, the trade press
    unlisted: int = Field(default=4, ge=0, le=10)
    visitors: int = Field(default=2, ge=0, le=10)  # what users write on somebody else's site

    def of(self, group: SiteGroup) -> int:
        """The weight of a group of the table of reputations."""
        if group in (SiteGroup.PEER_REVIEWED, SiteGroup.PRIMARY):
            return self.primary
        if group is SiteGroup.BANNED:
            return 0
        by_group = {SiteGroup.SECONDARY: self.secondary, SiteGroup.SHORTENER: self.visitors}
        return by_group.get(group, self.unlisted)


class SearchBudget(Frozen):
    """What may be spent on looking for evidence."""

    looks: int = Field(ge=0)  # queries along a path
    pages: int = Field(ge=0)  # that a search names, and that are fetched
    seconds: float = Field(ge=0)


class SearchBudgets(Frozen):
    """What one claim, all claims of one owner, and all claims of one run may spend."""

    claim: SearchBudget = SearchBudget(looks=8, pages=12, seconds=60)
    owner: SearchBudget = SearchBudget(looks=400, pages=600, seconds=1800)
    run: SearchBudget = SearchBudget(looks=2000, pages=3000, seconds=7200)


class CorroborationPolicy(Frozen):
    """When several sources together decide a claim; see `ingest.corroboration.decision`."""

    weights: HitWeights = HitWeights()
    enough: int = Field(default=16, ge=1)  # tenths: two primary sources, or two agencies, or three newspapers
    oppose: int = Field(default=8, ge=1)  # tenths of the other side from which on nothing is decided
    voices: int = Field(default=2, ge=2)  # independent sources that a decision needs at least
    fact_weight: int = Field(
        default=6, ge=0, le=10
    )  # tenths a voice has at least that makes a FACT with another
    # What becomes of a claim that cites nothing, which independent sources state that the gate found.
    independent: Literal["store", "queue"] = Field(default="queue", exclude_if=lambda does: does == "queue")
    paths: tuple[str, ...] = (
        "corpus",
        "repository",
        "official_api",
        "web_search",
    )  # in the order they are tried
    wire: tuple[str, ...] = ("afp.com", "ap.org", "apnews.com", "dpa.com", "reuters.com")
    budget: SearchBudgets = Field(
        default=SearchBudgets(), exclude_if=lambda budget: budget == SearchBudgets()
    )


class DocumentPolicy(Frozen):
    """What whole documents must come to; the score of their sources is held against `confidence_floor`."""

    unverified: int = Field(default=1, ge=0)  # claims that cite nothing, or are stated only in part, at most
    verified: int = Field(default=3, ge=0)  # claims that must be verified at least, or all there are
    # Of documents that come over the API. Beyond any of these one is refused whole: nothing is checked in part.
    bytes: int = Field(default=1_000_000, ge=1, le=MAX_DOCUMENT_BYTES)
    claims: int = Field(default=2000, ge=1, le=10_000)
    citations: int = Field(default=300, ge=1, le=2000)  # different things that it cites
    waiting: int = Field(default=20, ge=1, le=1000)  # of one owner, not yet checked
    kept: int = Field(default=1000, ge=1, le=100_000)  # of one owner, those that wait among them
    days: float = Field(default=7, gt=0, le=3650)  # for which a report is kept


class RecordsPolicy(Frozen):
    """What is kept of what users say and tools return, and whose output vouches; see `storage.claims.records`."""

    characters: int = Field(default=MAX_RECORD_CHARACTERS, ge=1, le=MAX_RECORD_CHARACTERS)  # of one
    per_minute: int = Field(default=600, ge=0)  # of one token; 0: no limit
    kept: int = Field(default=10_000, ge=1, le=100_000)  # of one owner; they are counted for each new one
    days: float = Field(default=90, gt=0, le=3650)  # for which the text is kept
    # Tools whose output no agent can steer, by the names under which hosts record them.
    tools: tuple[Annotated[str, Field(min_length=1, max_length=128)], ...] = ()
    # Those that read back what agents remember, whatever `tools` says; `*` stands for anything, case does not count.
    memory_tools: tuple[str, ...] = ("*memor*", "*recall*", "*remember*", "*vouchgate*")


class Policy(Frozen):
    """The document in force. Two policies with one digest decide alike. What came to it later has a default, which is
    left out of the document, so that those kept before have the digest that they had."""

    preset: Literal["balanced", "strict", "review_all"]
    confidence_floor: Share
    # What becomes of a claim whose sources speak of every statement and say nothing else, but are not shown to say it;
    # and of one that rests on a page of a publisher nobody listed.
    spoken_of: Literal["store", "queue"] = Field(default="queue", exclude_if=lambda does: does == "queue")
    # Where that is "store": the share of an agent's claims that must be shown to be right, or else they wait. 0: none.
    spoken_of_floor: Share = Field(default=0.0, exclude_if=lambda floor: floor == 0)
    unlisted_pages: Literal["store", "queue"] = Field(
        default="queue", exclude_if=lambda does: does == "queue"
    )
    # Of policies of before statements were held against sources: only a decision made by one of these asks for it.
    require_relevance: bool | None = Field(default=None, exclude_if=lambda required: required is None)
    trusted_sources: tuple[Source, ...]
    auto_approve_ai_synthesis: bool
    missing_citation_tier: Literal[Tier.QUEUED, Tier.BLOCKED]
    duplicate_threshold: float = Field(gt=0.5, le=1)
    dedup_method: Literal["jaccard", "vector"]
    vector_threshold: float = Field(gt=0.5, le=1)
    vector_model: str = Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")
    banned_domains: tuple[str, ...]
    official_domains: tuple[str, ...]
    deadline_seconds: float = Field(gt=0, le=120)
    stated_in_conversation: dict[MemoryType, tuple[Source, ...]]
    limits: Limits
    queue: QueueLimits
    score: ScoreWeights
    web: WebPolicy
    remember: Remember
    recheck: Recheck
    freshness: Freshness = Field(default=Freshness(), exclude_if=lambda rules: rules == Freshness())
    judge: JudgePolicy
    entailment: EntailmentPolicy = Field(
        default=EntailmentPolicy(), exclude_if=lambda rules: rules == EntailmentPolicy()
    )
    echo: EchoPolicy = EchoPolicy()  # the default is for documents that were kept before there was one
    personal_data: PersonalDataPolicy = Field(
        default=PersonalDataPolicy(), exclude_if=lambda does: does == PersonalDataPolicy()
    )
    source_texts: SourceTexts = Field(default=SourceTexts(), exclude_if=lambda texts: texts == SourceTexts())
    retention: Retention = Field(default=Retention(), exclude_if=lambda days: days == Retention())
    spot_checks: SpotChecks = Field(default=SpotChecks(), exclude_if=lambda checks: checks == SpotChecks())
    standing_rulings: StandingRulingLimits = Field(
        default=StandingRulingLimits(), exclude_if=lambda limits: limits == StandingRulingLimits()
    )
    # Where claims that cite nothing are looked up; "local" is the corpora, then the repositories; "network" is these,
    # then official interfaces and web searches.
    harvest: Literal["network", "local", "repositories", "off"] = Field(
        default="off", exclude_if=lambda where: where == "off"
    )
    corroboration: CorroborationPolicy = Field(
        default=CorroborationPolicy(), exclude_if=lambda rules: rules == CorroborationPolicy()
    )
    documents: DocumentPolicy = Field(
        default=DocumentPolicy(), exclude_if=lambda rules: rules == DocumentPolicy()
    )
    records: RecordsPolicy = Field(default=RecordsPolicy(), exclude_if=lambda rules: rules == RecordsPolicy())
    # Whether the person behind an agent may vouch for what it proposed: "off" they may; "teams" not while somebody else
    # is known to rule for the owner; "always" not at all, and both must be known.
    four_eyes: Literal["off", "teams", "always"] = Field(
        default="teams", exclude_if=lambda rule: rule == "teams"
    )
    reputation: Reputation
    values: ValueWords
    lexicon: Lexicon
    _publishers: OwnPublishers = PrivateAttr(default=OwnPublishers())

    @model_validator(mode="after")
    def _no_self_trust(self) -> Self:
        listed = [
            *self.trusted_sources,
            *(s for sources in self.stated_in_conversation.values() for s in sources),
        ]
        if Source.AI_SYNTHESIS in listed:
            raise ValueError("ai_synthesis can never be a trusted source: the model would vouch for itself")
        return self

    @cached_property
    def threshold(self) -> Fraction:
        """`duplicate_threshold` as the exact fraction that was written: 0.92 is 23/25."""
        return Fraction(str(self.duplicate_threshold))

    @property
    def publishers(self) -> OwnPublishers:
        """What the owner of the claim in hand says of publishers."""
        return self._publishers

    def heeding(self, publishers: OwnPublishers) -> Policy:
        """This policy with an owner's word on publishers laid over it. That is no part of the document: document and
        digest stay the operator's, and the word is kept in the evidence of what it decided."""
        if publishers == self._publishers:
            return self
        own = self.model_copy()
        own._publishers = publishers
        return own

    @property
    def banned(self) -> frozenset[str]:
        """Every domain and account that is never support, whichever list names it."""
        own = self._publishers.banned
        return self.banned_for_all.union(own) if own else self.banned_for_all

    @cached_property
    def banned_for_all(self) -> frozenset[str]:
        """The same without what an owner said."""
        listed = (*self.banned_domains, *self.reputation.sites.get(SiteGroup.BANNED, ()))
        return frozenset(entry.lower().removeprefix(".") for entry in listed)

    @cached_property
    def digest(self) -> str:
        """sha256 hex of the canonical JSON of the whole document."""
        return hashlib.sha256(self.document.encode()).hexdigest()

    @cached_property
    def document(self) -> str:
        """Canonical JSON: what is stored beside the decisions, and read back by a replay."""
        return canonical_json(self.model_dump(mode="json"))


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no spaces: equal values give equal text."""
    return _CANONICAL.encode(value)
