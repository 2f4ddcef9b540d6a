"""The words of the service as types. All are frozen; rows and wire models are separate types. One page although
it is long, because they explain one another and are read together.

Nothing here knows a clock, a network or a database: times and ids come in as values.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, WithJsonSchema, model_validator

from vouchgate.ingest.rules import CHANGE_REASON, Rule, RuleName


class Frozen(BaseModel):
    """Base of every domain type: immutable, and an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class MemoryType(StrEnum):
    """What kind of thing the claim is."""

    FACT = "fact"
    DECISION = "decision"
    PREFERENCE = "preference"
    PROCEDURE = "procedure"


class Source(StrEnum):
    """Where the caller says the claim comes from. Every one but AI_SYNTHESIS must be granted to the token."""

    USER = "user"
    DOCUMENTATION = "documentation"
    ADR = "adr"
    COMMIT = "commit"
    MANUAL = "manual"
    CONVERSATION = "conversation"
    CHAT = "chat"
    AI_SYNTHESIS = "ai_synthesis"


class Role(StrEnum):
    """What a principal is for. Only REVIEWER may approve or reject."""

    AGENT = "agent"
    RECORDER = "recorder"  # puts down what users said and tools returned; neither claims nor rules
    REVIEWER = "reviewer"
    AUDITOR = "auditor"
    ADMIN = "admin"


class Principal(Frozen):
    """Who calls. `owners` are the owners it may act for; `any_owner` lifts that limit to every owner there is, and
    `new_owners` to those that nobody has made yet. `person` is the id of the person behind it, if that is known."""

    id: str
    name: str
    role: Role
    owners: frozenset[str] = frozenset()
    any_owner: bool = False
    sources: frozenset[Source] = frozenset()
    new_owners: bool = False
    person: str | None = None

    def may_act_for(self, owner_id: str) -> bool:
        """Whether this principal may see or write this owner's data at all."""
        return self.any_owner or owner_id in self.owners


class Person(Frozen):
    """Somebody behind tokens and sessions. Commands and rules call them by `name`, which no two share who are there."""

    id: str
    name: str
    created_at: datetime
    ended_at: datetime | None = None


class Membership(Frozen):
    """The role that a person, or a single token, has for an owner: in their own right, or, `until` a time, in the stead
    of the person whose id `acts_for` is."""

    owner_id: str
    member_id: str  # of a person or a token
    role: Role
    since: datetime
    acts_for: str = Field(default="", exclude_if=lambda absent: not absent)
    until: datetime | None = Field(default=None, exclude_if=lambda end: end is None)


class Verdict(StrEnum):
    """What a check concluded. UNKNOWN means it could not be found out: never a PASS, never a FAIL."""

    PASS = "PASS"  # noqa: S105  (a verdict, not a password)
    DOUBT = "DOUBT"
    FAIL = "FAIL"
    UNKNOWN = "UNKNOWN"


class HedgeCategory(StrEnum):
    """Kinds of hedge. The first three block, the last two send to review."""

    PERSONAL_SPECULATION = "personal_speculation"
    ADMITTED_UNCERTAINTY = "admitted_uncertainty"
    UNDECIDED_SUGGESTION = "undecided_suggestion"
    TECHNICAL_HEDGE = "technical_hedge"
    APPROXIMATION = "approximation"


BLOCKING_HEDGES = frozenset(
    {
        HedgeCategory.PERSONAL_SPECULATION,
        HedgeCategory.ADMITTED_UNCERTAINTY,
        HedgeCategory.UNDECIDED_SUGGESTION,
    }
)


class HedgeAction(StrEnum):
    """What the hedges in a text call for; BLOCK wins over REVIEW."""

    BLOCK = "block"
    REVIEW = "review"
    CONTINUE = "continue"


class HedgeMatch(Frozen):
    """One hedge. `text` is `sent_text[start:end]`: offsets are characters of the text as sent."""

    category: HedgeCategory
    text: str
    start: int
    end: int


class CitationType(StrEnum):
    """What kind of thing is cited."""

    ADR = "adr"
    COMMIT = "commit"
    URL = "url"
    ISSUE = "issue"
    DOI = "doi"
    ARXIV = "arxiv"
    RFC = "rfc"
    PEP = "pep"
    CVE = "cve"
    PATH = "path"
    CORPUS = "corpus"


# What is looked up in the git repositories, and nowhere else.
IN_REPOSITORIES = frozenset({CitationType.ADR, CitationType.COMMIT, CitationType.PATH})
# What lies where the operator keeps it, and is read anew each time.
KEPT_BY_OPERATOR = IN_REPOSITORIES | {CitationType.CORPUS}

# One of ours, or a kind that an installation added (`ingest.citations.kinds`).
CitationName = Annotated[
    CitationType | Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,31}$")],
    Field(union_mode="left_to_right"),
    WithJsonSchema({"type": "string", "examples": [each.value for each in CitationType]}),
]


class Citation(Frozen):
    """A reference found in the text (start and end are set) or given beside it (both are None).

    `value` is the exact substring of the text as sent; `key` is its canonical form, equal for two
    spellings of one thing (`ADR-003` and `adr 3` are both `adr:3`).
    """

    type: CitationName
    value: str
    key: str
    start: int | None = None
    end: int | None = None
    # Words that the caller says stand in it; only of one given beside the text.
    quote: str = Field(default="", exclude_if=lambda quote: not quote)
    # The gate found it for a claim that cites nothing; only of one that is not in the text.
    harvested: bool = Field(default=False, exclude_if=lambda harvested: not harvested)

    @property
    def name(self) -> str:
        """What sentences call it: as the claim wrote it, but for the bare number of a record."""
        bare = self.type is CitationType.ADR and self.value.isdecimal()
        return f"ADR-{int(self.value):03d}" if bare else self.value


EXCERPT_CHARACTERS = 2000
LINKS = 50  # of Found.links; of a page that links to more sites the rest is not known
TEXT_CHARACTERS = 200_000  # of a source's text; what is longer is cut, and `Found.cut` says so


class Standing(StrEnum):
    """What a source that was found is worth as support. Only IN_FORCE supports a claim."""

    IN_FORCE = "in_force"
    PROPOSED = "proposed"  # an ADR nobody has accepted yet
    SUPERSEDED = "superseded"
    REJECTED = "rejected"
    DEPRECATED = "deprecated"
    REVERTED = "reverted"  # a later commit undoes it
    DETACHED = "detached"  # a commit that no branch and no tag reaches
    # It is on another branch or under a tag than the protected ref of its repository, where the agent may write.
    NOT_MERGED = "not_merged"
    MEMORY = "memory"  # a file in which agents keep what they remember, which would vouch for itself
    HINT = "hint"  # it lies where nobody keeps agents from writing: a place to look, never evidence
    AMBIGUOUS = "ambiguous"  # more than one thing answers to this name


JUDGE_QUOTE_CHARACTERS = 500


class Judged(Frozen):
    """What an optional judge, a language model, said of one source when asked one narrow question about it."""

    kind: Literal["judged"] = "judged"
    model: str  # as configured
    contains: Literal["yes", "partly", "no"]  # does the source contain the claim
    attributed: Literal["yes", "no"]  # does it say so itself, and not somebody whom it quotes to refute
    # The source's own words for that: they were looked up in its title and excerpt, and a "yes" has some.
    quote: str = Field(default="", max_length=JUDGE_QUOTE_CHARACTERS)
    took_ms: float | None = None


class NotJudged(Frozen):
    """The judge was to be asked and gave no answer that counts. `code`: `timeout`, `budget` (the day's questions
    are used up), `not_asked` (there was enough against the claim), `odd_answer`, `error`, or a code of
    Unreachable. Not the same as a no."""

    kind: Literal["not_judged"] = "not_judged"
    model: str  # as configured; empty where none is
    code: str
    detail: str
    took_ms: float | None = None


Judgement = Annotated[Judged | NotJudged, Field(discriminator="kind")]


# Whether it was read, or came by, an address that is not public, which the operator opened to citations. Agents are
# told that it is there and whether it holds, and no word of it (`review.private_pages`).
Private = Annotated[bool, Field(exclude_if=lambda private: not private)]


Form = Literal["page", "record", "commit", "file"]


class Stance(StrEnum):
    """What a source does to a statement."""

    STATES = "states"
    REFUTES = "refutes"
    SPEAKS = "speaks"  # of the same thing, and is not shown to say it
    SILENT = "silent"
    UNKNOWN = "unknown"


class Held(Frozen):
    """One statement of a claim held against one source. `start` and `end` are offsets in the claim, `place` in the
    source's text: where it comes nearest to saying it."""

    start: int
    end: int
    stance: Stance
    score: float  # 0 to 1: how surely a person would say that the source says it
    missing: tuple[str, ...] = ()  # words of the statement that the nearest place has not
    # Those that make it another statement, and that the source has nowhere: numbers, names, identifiers, universals.
    uncovered: tuple[str, ...] = ()
    place: tuple[int, int] | None = None
    why: str = ""  # what keeps the source from stating it, or the rule by which it refutes it


class PackedText(Frozen):
    """A source's text as it is kept: `body` is what `ingest.support.texts` makes of it."""

    digest: str  # sha256 hex of the text
    body: bytes


class Quoted(Frozen):
    """One quotation of a claim, looked up in one source. `number` counts the claim's quotations
    (`ingest.support.quotation.quotations_of`), `place` is in the source's text."""

    number: int
    # `stitched`: put together from two places; `unread`: it may stand in what was not read.
    found: Literal["there", "title", "stitched", "missing", "unread"]
    place: tuple[int, int] | None = None
    # The part of a record that it stands in, when that is not its own word: its options, its context, its status.
    part: str = Field(default="", exclude_if=lambda part: not part)


class Found(Frozen):
    """The cited thing was read. `standing` says whether it still holds."""

    kind: Literal["found"] = "found"
    citation: Citation
    # `ADR-003`, `commit:a1b2c3d`, `issue:owner/repo#12`, the final URL, of a private page the one that was cited
    # What sentences call it where that is not its id: a record as the claim wrote its number.
    called: str = Field(default="", exclude_if=lambda name: not name)
    source_id: str
    standing: Standing
    detail: str  # one sentence for a human: what was found, and where
    title: str = ""
    excerpt: str = ""  # at most EXCERPT_CHARACTERS of its text: what the claim was held against
    digest: str = ""  # sha256 hex of the content read
    dated: datetime | None = None  # what the page says of itself, else its Last-Modified
    successor: str | None = None  # what replaced it, when `standing` says so
    # May make a FACT alone: the grounding repository's own record, or a path that the operator marked.
    official: bool = False
    site: str = ""  # whose page it is (`ingest.scoring.sites.site_of`); empty for what lives in a repository
    cut: bool = False  # its text went on past what is read of one, so that nobody knows what else it says
    links: tuple[str, ...] = ()  # the other sites its text links to, sorted, at most LINKS
    status: int | None = None  # the HTTP status it was answered with
    judgement: Judgement | None = None  # None: no judge was asked
    took_ms: float | None = None  # how long reading it took
    private: Private = False
    # What kind of text it is: a page; an architecture decision record, whose text has its headings, lists and tables;
    # the message of a commit; a file of the repository, or lines of one.
    form: Form = Field(default="page", exclude_if=lambda form: form == "page")
    project: str = Field(default="", exclude_if=lambda name: not name)  # whose repository it is in, by name
    # Records in force that say they change this one, such as `ADR-013`, and their texts, which count as `text` does.
    amended_by: tuple[str, ...] = Field(default=(), exclude_if=lambda ids: not ids)
    later: str = Field(default="", exclude=True, repr=False)
    # Every statement of the claim held against the whole text, which has this digest (sha256 hex). None: it was kept
    # before statements were held against sources one by one.
    held: tuple[Held, ...] | None = Field(default=None, exclude_if=lambda held: held is None)
    text_digest: str = Field(default="", exclude_if=lambda digest: not digest)
    # Shared by the sources of one claim whose whole texts are one text (`ingest.corroboration.independence`).
    text_group: str = Field(default="", exclude_if=lambda group: not group)
    # Words of its address, as the claim gives it, that the page has not, and that together say something.
    unsaid: tuple[str, ...] = Field(default=(), exclude_if=lambda words: not words)
    later_digest: str = Field(default="", exclude_if=lambda digest: not digest)  # the same of `later`
    # Each quotation that the claim gives with it, and those given with another source that stand in this one.
    quoted: tuple[Quoted, ...] = Field(default=(), exclude_if=lambda quoted: not quoted)
    # The whole text, from which `excerpt` is chosen for one claim; it is emptied then, and never stored here. What is
    # kept of it beside the decision, once for each digest, waits in `packed` until that is written.
    text: str = Field(default="", exclude=True, repr=False)
    packed: tuple[PackedText, ...] = Field(default=(), exclude=True, repr=False)

    @property
    def name(self) -> str:
        """What sentences call it."""
        return self.called or self.source_id


class Missing(Frozen):
    """It was looked for where it would be, and is not there."""

    kind: Literal["missing"] = "missing"
    citation: Citation
    detail: str
    status: int | None = None
    took_ms: float | None = None
    private: Private = False


class Unreachable(Frozen):
    """It could not be found out whether it exists. `code` is a stable word: `timeout`, `refused` (an address
    or answer that is not safe), `forbidden` (401, 403), `rate_limited`, `server_error`, `dns`, `tls`,
    `connection`, `odd_answer`, `login` (it asks to sign in), `offline`, `no_repository`, `no_records` (no directory of
    decision records was found in the repositories), `shallow_clone`,
    `not_supported`, `not_asked` (the claim holds a credential), `error`."""

    kind: Literal["unreachable"] = "unreachable"
    citation: Citation
    code: str
    detail: str
    status: int | None = None
    retry_after: datetime | None = None  # when the source itself said to come back
    took_ms: float | None = None
    private: Private = False


SourceReading = Annotated[Found | Missing | Unreachable, Field(discriminator="kind")]


class ItemKind(StrEnum):
    """Where a similar claim lives: stored, or waiting for review."""

    MEMORY = "memory"
    PENDING = "pending"


class Neighbour(Frozen):
    """A stored memory or pending item of the same owner and type whose words may reach the threshold."""

    kind: ItemKind
    id: str
    content: str


class Neighbours(Frozen):
    """The index was asked and answered; `items` may be empty, which means: nothing similar is there.

    With `complete` false there were more candidates than can be compared, and these are some of them.
    """

    kind: Literal["neighbours"] = "neighbours"
    items: tuple[Neighbour, ...] = ()
    complete: bool = True


class DedupUnavailable(Frozen):
    """The index could not be asked. Not the same as an empty answer."""

    kind: Literal["unavailable"] = "unavailable"
    detail: str


DedupFacts = Annotated[Neighbours | DedupUnavailable, Field(discriminator="kind")]


class AtPlace(Frozen):
    """What the gate knows of the place in a sink that a claim names, when it knows anything: the memory in force
    that was put there, and the item by which its removal was asked for already."""

    memory: Neighbour | None = None
    removal: Neighbour | None = None


class EchoFacts(Frozen):
    """That a claim was submitted before, in the same or nearly the same words: how often, this time counted in, and
    who sent it. Only of claims that were sent at least twice."""

    count: int
    first_seen: datetime
    first_by: str  # a principal's id, as those in `agents` are
    agents: tuple[str, ...]  # in the order in which they came, the first twenty
    sources: tuple[Source, ...]  # that were asserted


class Paraphrase(Frozen):
    """A stored memory or pending item of the same owner whose vector is near the claim's."""

    kind: ItemKind
    id: str
    content: str
    cosine: float  # -1 to 1, of the two vectors; see `ingest.dedup.paraphrase.cosine`


class Paraphrases(Frozen):
    """Every earlier claim was compared by `model`; `items` are those near enough, and may be empty."""

    kind: Literal["paraphrases"] = "paraphrases"
    model: str
    items: tuple[Paraphrase, ...] = ()


class ParaphraseUnavailable(Frozen):
    """The model or the vectors could not be asked. Not the same as an empty answer."""

    kind: Literal["unavailable"] = "unavailable"
    detail: str


ParaphraseFacts = Annotated[Paraphrases | ParaphraseUnavailable, Field(discriminator="kind")]


class Embedding(Frozen):
    """A text as a vector: float32 numbers in machine order, of length 1. Only vectors of one `model` compare."""

    model: str
    vector: bytes


class DeliveryOp(StrEnum):
    """What a store behind the gate is asked to do with one place of it."""

    PUT = "put"
    REMOVE = "remove"


class DeliveryTarget(Frozen):
    """Where in a store behind the gate (a sink) a claim is to be written once it is a memory, or what is to go from
    there. The same sink and place is the same thing."""

    sink: str
    place: str
    op: DeliveryOp = DeliveryOp.PUT
    data: dict[str, JsonValue] = Field(default_factory=dict)  # what the sink needs besides the text
    # The caller found something else there already, which may be older than the gate.
    replaces: bool = False

    @property
    def name(self) -> str:
        """Sink and place as one text; a sink's name has no white space."""
        return f"{self.sink} {self.place}"


class SecretMatch(Frozen):
    """Where a credential was. What it was is kept nowhere: the characters `start` to `end` are masked in `where`,
    which is `content`, `metadata` or `delivery` with the way to the text in it, or `citations[0]`."""

    kind: str
    where: str
    start: int
    end: int


class Claim(Frozen):
    """The text an agent wants to save, or asks to have removed (`delivery`). `content` is the text exactly as
    sent, but for masks in place of credentials (`secrets`)."""

    content: str
    memory_type: MemoryType
    asserted_source: Source  # what the caller said
    source: Source  # what counts: AI_SYNTHESIS when the caller may not assert `asserted_source`
    owner_id: str
    citations: tuple[Citation, ...] = ()  # given beside the text
    validity_horizon: datetime | None = None
    metadata: dict[str, JsonValue] = Field(default_factory=dict)
    delivery: DeliveryTarget | None = Field(default=None, exclude_if=lambda found: found is None)
    # Credentials that were in it, in place of which it has masks. Any one blocks it.
    secrets: tuple[SecretMatch, ...] = Field(default=(), exclude_if=lambda found: not found)
    # Characters at the start of `content` that only name what it is about, put there by an import (`Ada (person): `).
    # The text is compared and checked as a whole; no source has to say these.
    context: int = Field(default=0, ge=0, exclude_if=lambda characters: not characters)

    @property
    def stated(self) -> str:
        """What a source has to say: `content` with blanks in place of its context, so that offsets hold."""
        return " " * self.context + self.content[self.context :] if self.context else self.content

    @property
    def removes(self) -> bool:
        """Whether it asks for something to go, instead of saying something."""
        return self.delivery is not None and self.delivery.op is DeliveryOp.REMOVE


class Span(Frozen):
    """Characters `start` to `end` of the text as sent."""

    start: int
    end: int


class Finding(Frozen):
    """What one check concluded. `code` is a stable machine word, `message` one sentence for a human."""

    check: str
    verdict: Verdict
    code: str
    message: str
    citation: Citation | None = None
    spans: tuple[Span, ...] = ()
    facts: dict[str, JsonValue] = Field(default_factory=dict)
    took_ms: float | None = None  # to gather what it judges; None for what needs no look-up


class Tier(StrEnum):
    """Where a claim goes."""

    STORED = "tier_1"
    QUEUED = "tier_2"
    BLOCKED = "tier_3"


class Outcome(StrEnum):
    """The tier in a word, for the answer."""

    STORED = "stored"
    QUEUED = "queued"
    BLOCKED = "blocked"


class Confidence(StrEnum):
    """How well a claim is supported; a rule output, never a model's own number."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Label(StrEnum):
    """FACT needs one official source or two independent ones; all else is INFERENCE."""

    FACT = "FACT"
    INFERENCE = "INFERENCE"


class Decision(Frozen):
    """Tier and reason, with the findings that set them. Pure function of claim, facts and policy."""

    tier: Tier
    rule: Rule  # that matched
    reason: str
    findings: tuple[Finding, ...]
    decided_by: tuple[
        Finding, ...
    ]  # the findings the rule rests on; empty for those that go by the source the caller asserts
    confidence: Confidence
    confidence_score: float | None  # 0 to 1, None when no source was verified
    label: Label
    source_id: str | None
    similarity_score: float | None = None  # word Jaccard with the nearest item at or over the threshold
    nearest: Neighbour | None = None  # that item: what it duplicates or conflicts with
    policy_digest: str

    @model_validator(mode="after")
    def _fact_has_a_source(self) -> Self:
        if self.label is Label.FACT and not self.source_id:
            raise ValueError("a FACT needs the id of its evidence")
        return self


class Trust(StrEnum):
    """What an owner says of a publisher, for their own memories."""

    TRUSTED = "trusted"  # its pages count as those of a listed one do; they are never official
    BANNED = "banned"  # it vouches for nothing


class PublisherTrust(Frozen):
    """An owner's word on one publisher (`ingest.scoring.sites.site_of`), which counts before `until`."""

    owner_id: str
    publisher: str
    trust: Trust
    until: datetime
    created_at: datetime
    decided_by: str  # principal id of the reviewer


class OwnPublishers(Frozen):
    """The publishers that an owner trusts and those that they ban; of one claim, those that bear on what it cites."""

    trusted: tuple[str, ...] = ()
    banned: tuple[str, ...] = ()


class RulingVerdict(StrEnum):
    """What a standing ruling does with a claim that it is about."""

    STORE = "store"  # where nothing speaks against the claim but that nothing shown vouches for all of it
    REJECT = "reject"


class AppliedRuling(Frozen):
    """The standing ruling of its owner that bears on a claim (`ingest.claims.standing_rulings`), whether or not it
    decided."""

    id: str
    name: str
    verdict: RulingVerdict


class TrackRecord(Frozen):
    """How often people said that a claim was right, and how often that it was wrong, among the latest they judged."""

    right: int = 0
    wrong: int = 0


class Track(Frozen):
    """What is known of those behind a claim: who sent it, the kind of the first thing it cites, and the publisher of
    that. Somebody nobody judged has a record of zeros."""

    agent: TrackRecord = TrackRecord()
    kind: TrackRecord = TrackRecord()
    publisher: TrackRecord = TrackRecord()


class Evidence(Frozen):
    """The record a decision rests on: with the policy of its digest, enough to make it again offline."""

    claim: Claim
    capture_time: datetime
    confidence: Confidence
    confidence_score: float | None
    source_id: str | None
    sources: tuple[SourceReading, ...]
    dedup: DedupFacts
    # None, and left out of the JSON, unless the policy asks for vectors.
    paraphrases: ParaphraseFacts | None = Field(default=None, exclude_if=lambda facts: facts is None)
    at_place: AtPlace | None = Field(default=None, exclude_if=lambda found: found is None)
    echo: EchoFacts | None = Field(default=None, exclude_if=lambda found: found is None)
    # With the policy of `policy_digest` it decided; None when none of its owner's bears on it.
    standing_ruling: AppliedRuling | None = Field(default=None, exclude_if=lambda found: found is None)
    # By which it was drawn for a spot check, or not; None when nobody judged any of these.
    track: Track | None = Field(default=None, exclude_if=lambda found: found is None)
    # What its owner said of publishers that it cites: laid over the policy of `policy_digest`, it decided.
    publishers: OwnPublishers = Field(default=OwnPublishers(), exclude_if=lambda own: own == OwnPublishers())
    validity_horizon: datetime | None
    label: Label
    metadata: dict[str, JsonValue]

    @model_validator(mode="after")
    def _fact_has_a_source(self) -> Self:
        if self.label is Label.FACT and not any(
            isinstance(source, Found) and source.source_id == self.source_id for source in self.sources
        ):
            raise ValueError("a FACT needs the id of its evidence, among the sources that were found")
        return self


class SimilarMemory(Frozen):
    """A stored memory that says nearly the same as a claim, and is no duplicate of it: something to look at
    beside the claim. No decision rests on it."""

    memory_id: str
    similarity: float  # word Jaccard, from 0.5 up to below the duplicate threshold
    content: str


class Suggested(Frozen):
    """A document that was found for a claim which cites nothing, and that may say so, or say otherwise: something to
    look at, and to cite. No decision rests on it."""

    citation: str  # as it would be cited
    stance: Stance  # of one of its passages
    quotation: str  # the place that comes nearest, in its own words


class Looked(Frozen):
    """One look for what could vouch for a claim that cites nothing, or nothing that could be read."""

    path: str  # where, as in the policy's `[corroboration] paths`
    query: str
    found: int = Field(ge=0)  # documents that have something to say of it
    failure: str = Field(
        default="", exclude_if=lambda why: not why
    )  # why it could not be found out, a sentence


class RejectedBefore(Frozen):
    """An owner's rejection of an earlier claim in the same words. No decision rests on it."""

    queue_id: str
    reason: str
    rejected_at: datetime


class ValidationResult(Frozen):
    """The answer to every submit, stored as it was given. Exactly one of `memory_id` and `queue_id` is set
    when the claim was stored or queued; neither when it was blocked or only checked. The decision of a re-check
    names the item that waits on, whatever its tier."""

    tier: Tier
    outcome: Outcome
    approved: bool
    rule: RuleName
    reason: str
    checks_passed: tuple[str, ...]
    checks_failed: tuple[str, ...]  # like `hedge_words_detected: maybe`
    findings: tuple[Finding, ...]
    evidence: Evidence
    similarity_score: float | None
    conflicting_memory_id: str | None  # the stored memory it duplicates or conflicts with
    similar: tuple[SimilarMemory, ...] | None = None  # nearest first; None: not looked for, or not known
    suggested: tuple[Suggested, ...] = Field(default=(), exclude_if=lambda found: not found)  # nearest first
    looked: tuple[Looked, ...] = Field(default=(), exclude_if=lambda looks: not looks)
    # The latest rejection of these words; looked for unless the claim is stored. Left out of the JSON when None.
    rejected_before: RejectedBefore | None = Field(default=None, exclude_if=lambda found: found is None)
    memory_id: str | None
    queue_id: str | None
    decision_id: str | None  # None when only checked: nothing was written
    policy_digest: str
    took_ms: float

    @model_validator(mode="after")
    def _rule_by_its_reason(self) -> Self:
        """An old answer may have a number with two meanings, of which the reason tells."""
        if self.rule is Rule.REMOVAL and self.reason == CHANGE_REASON:
            self.__dict__["rule"] = Rule.PLACE_CHANGE
        return self


class MemoryStatus(StrEnum):
    """Only ACTIVE memories answer a read that asks for nothing else. A memory whose validity horizon has
    passed is EXPIRED in every read, whatever its row says."""

    ACTIVE = "active"
    SUPERSEDED = "superseded"
    RETRACTED = "retracted"
    EXPIRED = "expired"


class Memory(Frozen):
    """A stored claim."""

    id: str
    owner_id: str
    memory_type: MemoryType
    content: str
    source: Source
    status: MemoryStatus
    confidence: Confidence
    confidence_score: float | None
    label: Label
    source_id: str | None
    created_at: datetime
    validity_horizon: datetime | None
    decision_id: str
    approved_by: str | None = None  # principal id of the reviewer, when it came through the queue
    superseded_by: str | None = None
    retracted_reason: str | None = None
    stale_since: datetime | None = None  # when a source was first seen gone or changed; it stays in force
    stale_reason: str | None = None
    # When its label or confidence was lowered, because it promised more than its sources are shown to say, and why.
    lowered_at: datetime | None = Field(default=None, exclude_if=lambda at: at is None)
    lowered_reason: str | None = Field(default=None, exclude_if=lambda reason: reason is None)
    # When its sources last said what they said when it was stored, or its owner that it still holds; at first when it
    # was stored. What its owner confirmed it in spite of makes it stale no more.
    confirmed_at: datetime | None = Field(default=None, exclude_if=lambda at: at is None)
    confirmed_despite: str | None = Field(default=None, exclude=True)
    metadata: dict[str, JsonValue] = Field(default_factory=dict)


class ReviewStatus(StrEnum):
    """Where a pending memory stands. EXPIRED is not REJECTED: nobody decided. Nor is LET_GO: a reviewer ended its wait
    because it cannot be decided well, and says nothing of whether it is so."""

    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"
    EXPIRED = "expired"
    LET_GO = "let_go"
    PROMOTED = "promoted"  # its citation verified when it was checked again; nobody had to decide


GivenText = Annotated[str | None, Field(exclude_if=lambda found: found is None)]
GivenTime = Annotated[datetime | None, Field(exclude_if=lambda found: found is None)]


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
    SPOT_CHECK_RIGHT = "spot_check.right"  # its owner's word on a memory that was drawn
    SPOT_CHECK_WRONG = "spot_check.wrong"
    SPOT_CHECK_CANNOT_TELL = "spot_check.cannot_tell"
    PUBLISHER_TRUSTED = "publisher.trusted"  # an owner's word on a publisher, for their own memories
    PUBLISHER_BANNED = "publisher.banned"
    PUBLISHER_CLEARED = "publisher.cleared"  # that word taken back
    DOCUMENT_DELETED = "document.deleted"  # one that was sent to be checked, with its report
    STANDING_RULING_CONFIRMED = (
        "standing_ruling.confirmed"  # an owner's: claims like one are ruled on by themselves
    )
    STANDING_RULING_ENDED = "standing_ruling.ended"  # taken back, and what became of what it did
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
    DELIVERY_DROPPED = "delivery.dropped"  # a dead letter given up for good


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
    # sha256 hex of what the entry is about: the evidence, the note, the token's grant; `2:` before that of a document
    # in its second form (storage.log.chain.digest_of).
    content_digest: str
    previous: str
    digest: str
