"""What was read at a citation, and how far it carries the claim."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from vouchgate.ingest.claims.citation import Citation
from vouchgate.ingest.claims.frozen import Frozen

EXCERPT_CHARACTERS = 2000


LINKS = 50  # of Found.links; of a page that links to more sites the rest is not known


class Standing(StrEnum):
    """What a source that was found is worth as support. Only IN_FORCE supports a claim, but for one on where the source
    stands (`Found.tells_its_end`)."""

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


class Inference(Frozen):
    """An entailment model was to be asked about a source; what it said is in `Held.relation`. `code` is why there is no
    answer that counts: `timeout`, `offline`, `error`, `unread` (texts that are too long for it, or were not kept)."""

    model: str  # name and version, of its TOML file; empty where there is none
    digests: dict[str, str] = Field(
        default_factory=dict
    )  # sha256 hex of that file, the model and the tokenizer
    code: str = ""
    detail: str = ""


Relation = Literal["entailment", "neutral", "contradiction"]  # of one text to another

# Whether it was read, or came by, an address that is not public, which the operator opened to citations. Agents are
# told that it is there and whether it holds, and no word of it (`review.withheld.private_pages`).
Private = Annotated[bool, Field(exclude_if=lambda private: not private)]


RecordKind = Literal["turn", "tool_output"]
Form = Literal["page", "record", "commit", "file", "turn", "tool_output"]


class Stance(StrEnum):
    """What a source does to a statement."""

    STATES = "states"
    REFUTES = "refutes"
    SPEAKS = "speaks"  # of the same thing, and is not shown to say it
    SILENT = "silent"
    UNKNOWN = "unknown"


UNSPOKEN = "unspoken"  # of `Held.why`: a record has it, in a part that is not its own word
STANDING_TOLD = "standing"  # of `Held.why`: the statement tells where the source stands, and nothing else


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
    # What the entailment model says that this place does to it, with its probability, 0 to 1; None: it was not asked.
    relation: Relation | None = Field(default=None, exclude_if=lambda said: said is None)
    probability: float = Field(default=0.0, exclude_if=lambda score: not score)
    # The place has nearly all of it, and `why` tells only of order and neighbourhood: it was not seen to say it.
    nearly: bool = Field(default=False, exclude_if=lambda said: not said)


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
    # When the page was last changed, as the software of its site says.
    revised: datetime | None = Field(default=None, exclude_if=lambda revised: revised is None)
    # Anybody may change its page, and it has not stood as it is for long (`Reputation.settle`).
    fresh: bool = Field(default=False, exclude_if=lambda fresh: not fresh)
    successor: str | None = None  # what replaced it, when `standing` says so
    # May make a FACT alone: the grounding repository's own record, or a path that the operator marked.
    official: bool = False
    site: str = ""  # whose page it is (`ingest.scoring.sites.site_of`); empty for what lives in a repository
    cut: bool = False  # its text went on past what is read of one, so that nobody knows what else it says
    links: tuple[str, ...] = ()  # the other sites its text links to, sorted, at most LINKS
    status: int | None = None  # the HTTP status it was answered with
    judgement: Judgement | None = None  # None: no judge was asked
    inference: Inference | None = Field(default=None, exclude_if=lambda said: said is None)  # as of the judge
    took_ms: float | None = None  # how long reading it took
    private: Private = False
    # What kind of text it is: a page; an architecture decision record, whose text has its headings, lists and tables;
    # the message of a commit; a file of the repository, or lines of one; what a user said; what a tool returned.
    form: Form = Field(default="page", exclude_if=lambda form: form == "page")
    project: str = Field(default="", exclude_if=lambda name: not name)  # whose repository it is in, by name
    who: str = Field(default="", exclude_if=lambda name: not name)  # whose turn it is, or which tool's output
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
    path: str = Field(default="", exclude=True, repr=False)  # of a record: that of its file in the repository

    @property
    def name(self) -> str:
        """What sentences call it."""
        return self.called or self.source_id

    @property
    def vouches(self) -> bool:
        """Whether it may support the claim, as far as its standing goes."""
        return self.standing is Standing.IN_FORCE or self.tells_its_end

    @property
    def tells_its_end(self) -> bool:
        """Whether it is not in force, and all that it is asked for is that, which it says."""
        held = self.held or ()
        told = {one.stance for one in held} & {Stance.STATES, Stance.REFUTES} == {Stance.STATES}
        return (
            self.standing is not Standing.IN_FORCE and told and all(one.why == STANDING_TOLD for one in held)
        )

    @property
    def recorded(self) -> bool:
        """Whether it is a record: what a user said, or a tool returned."""
        return self.form in ("turn", "tool_output")


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
