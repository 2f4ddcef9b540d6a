"""What comes in over the wire. Shapes and sizes are checked here; what they mean, in the gate."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    GetJsonSchemaHandler,
    JsonValue,
    Tag,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from vouchgate.ingest.claims.citation import CitationName
from vouchgate.ingest.claims.claim import MemoryType, Source
from vouchgate.ingest.claims.delivery import OWN_SINK, DeliveryOp
from vouchgate.ingest.claims.source import RecordKind
from vouchgate.ingest.policy import (
    MAX_BATCH_CLAIMS,
    MAX_CITATIONS,
    MAX_CONTENT_CHARACTERS,
    MAX_DOCUMENT_BYTES,
    MAX_METADATA_BYTES,
    MAX_RECORD_CHARACTERS,
)
from vouchgate.storage.identity.names import MAX_NAME_CHARACTERS, valid_owner_id
from vouchgate.storage.ids import sink_id

MAX_BODY_BYTES = 1024 * 1024
MAX_DOCUMENT_BODY_BYTES = 4 * MAX_BODY_BYTES  # JSON may take six bytes for one character
# Levels of lists and objects in metadata. The parser gives up at 200, and metadata lies some levels down in
# the evidence: what is let in must be readable there too.
MAX_METADATA_DEPTH = 32
_ISO_TIME = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d.*)?")


def _no_nul(text: str) -> str:
    if "\x00" in text:
        raise ValueError("must not contain the NUL character")
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("must not contain half a character (a lone surrogate)")
    return text


def _says_something(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty or only white space")
    return text


def _names_an_owner(text: str) -> str:
    if not valid_owner_id(text):
        raise ValueError("must consist of printable characters")
    return text


def _storable(value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Refuses what JSON or a database cannot hold: NUL, lone surrogates, numbers that are not finite, many levels."""
    waiting: list[tuple[Any, int]] = [(value, 1)]
    while waiting:
        item, depth = waiting.pop()
        if depth > MAX_METADATA_DEPTH and isinstance(item, dict | list):
            raise ValueError(f"must not be nested deeper than {MAX_METADATA_DEPTH} levels")
        if isinstance(item, dict):
            waiting.extend((part, depth + 1) for pair in item.items() for part in pair)
        elif isinstance(item, list):
            waiting.extend((part, depth + 1) for part in item)
        elif isinstance(item, str):
            _no_nul(item)
        elif isinstance(item, float) and not math.isfinite(item):
            raise ValueError("must hold finite numbers only")
    return value


def _iso_time(value: object) -> object:
    if value is None or isinstance(value, datetime):
        return value
    if isinstance(value, str) and _ISO_TIME.fullmatch(value):
        return value
    raise ValueError("must be an ISO 8601 date or time, like 2027-01-31T00:00:00Z")


def _no_webhook(sink: str) -> str:
    """Webhooks have ids like this. They get every memory by themselves, and nobody fetches anything in their place."""
    if sink.startswith(sink_id("")) or sink == OWN_SINK:
        raise ValueError(f"must not begin with {sink_id('')}, or be {OWN_SINK}, which is the gate itself")
    return sink


def _utc(value: datetime) -> datetime:
    try:
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("is outside the years 1 to 9999") from error


class _Pattern:
    """Says in the OpenAPI description what a validator, with a kinder message, holds a text to."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern

    def __get_pydantic_json_schema__(
        self, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return handler(core_schema) | {"pattern": self._pattern}


_NO_NUL = _Pattern(r"^[^\u0000]*$")
_SAYS_SOMETHING = _Pattern(r"^[^\u0000]*\S[^\u0000]*$")
_SAYS = AfterValidator(lambda text: _says_something(_no_nul(text)))
Text = Annotated[str, AfterValidator(_no_nul), _NO_NUL]
OwnerId = Annotated[
    str,
    Field(min_length=1, max_length=MAX_NAME_CHARACTERS),
    AfterValidator(_names_an_owner),
    AfterValidator(_says_something),
]
# Lengths stand before the validators: after one, a constraint would speak of items and not of characters.
Content = Annotated[str, Field(min_length=1, max_length=MAX_CONTENT_CHARACTERS), _SAYS, _SAYS_SOMETHING]
Reason = Annotated[str, Field(min_length=1, max_length=2000), _SAYS, _SAYS_SOMETHING]
Place = Annotated[str, Field(min_length=1, max_length=512), _SAYS, _SAYS_SOMETHING]
Note = Annotated[str, Field(max_length=2000), AfterValidator(_no_nul), _NO_NUL]
Label = Annotated[str, Field(min_length=1, max_length=128), AfterValidator(_names_an_owner), _SAYS]
SinkName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._:-]{0,63}$"), AfterValidator(_no_webhook)]
CitationText = Annotated[str, Field(min_length=1, max_length=2048), AfterValidator(_no_nul), _NO_NUL]
Time = Annotated[
    datetime,
    BeforeValidator(_iso_time, json_schema_input_type=str),
    AfterValidator(_utc),
    Field(json_schema_extra={"format": "date-time"}),
]


class WireOut(BaseModel):
    """Base of every answer of the API. What writes one is built for the first: a start would build several hundred,
    most of which a gate never needs. A body's is built at once, because FastAPI quiets a warning only then."""

    model_config = ConfigDict(defer_build=True)


class Wire(BaseModel):
    """Base of every request body: an unknown field is an error, and types are not guessed."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class CitationIn(Wire):
    """A citation given beside the claim, with what the claim rests on in the source's own words."""

    type: Annotated[
        CitationName | None, Field(description="May be left out where the value tells it, as `ADR-003` does.")
    ] = None
    value: CitationText
    quote: Annotated[
        Note,
        Field(
            description="Five words or more that stand in what is cited, exactly. The claim is held against them."
        ),
    ] = ""


Citations = Annotated[
    list[
        Annotated[
            Annotated[CitationIn, Tag("object")] | Annotated[CitationText, Tag("text")],
            # So that an error is about the form that was sent, not about both.
            Discriminator(lambda sent: "text" if isinstance(sent, str) else "object"),
        ]
    ],
    Field(max_length=MAX_CITATIONS),
]


class DeliveryIn(Wire):
    """Where in a store behind the gate (a sink) the claim is to be written once it is a memory, or with `remove`,
    what is to go from there. The same sink and place is the same thing."""

    sink: SinkName
    place: Place
    op: DeliveryOp = DeliveryOp.PUT
    data: Annotated[
        dict[str, JsonValue],
        AfterValidator(_storable),
        Field(
            description=f"What the sink needs besides the text. At most {MAX_METADATA_BYTES} bytes as JSON."
        ),
    ] = {}
    replaces: Annotated[
        bool,
        Field(strict=True, description="Something else is there already, which the gate may not know of."),
    ] = False


class ClaimIn(Wire):
    """A claim before it is saved. `user_id` may be left out when the token acts for one owner only."""

    content: Content
    memory_type: MemoryType = MemoryType.FACT
    # The one source that vouches for nothing: who leaves it out gains nothing by it.
    source: Source = Source.AI_SYNTHESIS
    user_id: OwnerId | None = None
    citations: Citations = []
    validity_horizon: Time | None = None
    metadata: Annotated[
        dict[str, JsonValue],
        AfterValidator(_storable),
        Field(description=f"At most {MAX_METADATA_BYTES} bytes as JSON."),
    ] = {}
    delivery: DeliveryIn | None = None


class RecordIn(Wire):
    """What a user said, or a tool returned. `user_id` may be left out when the token acts for one owner only."""

    kind: RecordKind
    text: Annotated[str, Field(min_length=1, max_length=MAX_RECORD_CHARACTERS), _SAYS, _SAYS_SOMETHING]
    who: Annotated[Label, Field(description="Whose words a turn is; of a tool's output, the tool's name.")]
    conversation: Label | None = None
    time: Annotated[Time | None, Field(description="When it was said or returned; now, unless said.")] = None
    user_id: OwnerId | None = None


class AnswerIn(Wire):
    """What an agent answers to a question about a claim of its own: the claim in other words, or what it cites now."""

    content: Content | None = None
    citations: Citations = []


class BatchIn(Wire):
    """Several claims. Rows are validated one by one, so that a bad row spoils no other."""

    claims: Annotated[list[JsonValue], Field(min_length=1, max_length=MAX_BATCH_CLAIMS)]


class DocumentIn(Wire):
    """A document that is to be checked. The ending of its `name` says what format it has, where `format` does not; a
    name that is a path says where in the repository it lies, to which its links to files are relative."""

    name: Annotated[str, Field(min_length=1, max_length=300), _SAYS, _SAYS_SOMETHING] = "document.md"
    content: Annotated[
        str, Field(min_length=1, max_length=MAX_DOCUMENT_BYTES), AfterValidator(_no_nul), _NO_NUL
    ]
    format: Literal["markdown", "rst", "html", "text"] | None = None
    user_id: OwnerId | None = None
    only_marked: Annotated[bool, Field(strict=True)] = False
    allow_no_claims: Annotated[bool, Field(strict=True)] = False
    fail_on: Annotated[
        list[Literal["false", "broken", "unknown", "unverified", "verified", "score", "no_claims"]] | None,
        Field(min_length=1, max_length=7, description="All of them unless said."),
    ] = None


class OfferIn(Wire):
    """Which verified claims of a document are offered to the gate, by their fingerprints; all unless said."""

    fingerprints: Annotated[
        list[Annotated[str, Field(pattern=r"^[0-9a-f]{20}$")]] | None, Field(max_length=MAX_BATCH_CLAIMS)
    ] = None
    memory_type: MemoryType = MemoryType.FACT


class ApproveIn(Wire):
    """An owner's yes. `version` is the one that was looked at; `supersede` says what becomes of a stored
    memory that the item conflicts with: true replaces it, false keeps both. Where none
    conflicts, true replaces the memory that `over` names, which must say nearly the same."""

    version: Annotated[int, Field(ge=1, le=2**31 - 1, strict=True)]
    note: Note | None = None
    content: Content | None = None
    supersede: Annotated[bool, Field(strict=True)] | None = None
    over: Annotated[Text, Field(min_length=1, max_length=100)] | None = None


class SnoozeIn(Wire):
    """Until when an item is out of the list."""

    until: Time


class AssignIn(Wire):
    """Who is to rule on an item: `me`, `nobody`, or the name or id of a reviewer's token."""

    to: Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARACTERS), _SAYS, _SAYS_SOMETHING]


class LookIn(Wire):
    """Whether the caller looks at an item, or with `stop` no longer."""

    stop: Annotated[bool, Field(strict=True)] = False


class SendBackIn(Wire):
    """What an item's agent is asked. `version` is the one that was looked at."""

    version: Annotated[int, Field(ge=1, le=2**31 - 1, strict=True)]
    question: Annotated[str, Field(min_length=1, max_length=500), _SAYS, _SAYS_SOMETHING]


class LetGoIn(Wire):
    """What is let go: all that a query finds. With `dry_run` it is only counted. `expect` is how many that were: where
    it is another number by now, nothing is done."""

    q: Annotated[str, Field(min_length=1, max_length=500), _SAYS, _SAYS_SOMETHING]
    reason: Reason
    dry_run: Annotated[bool, Field(strict=True)] = False
    expect: Annotated[int, Field(ge=0, strict=True)] | None = None


class ViewIn(Wire):
    """A query under a name."""

    name: Annotated[str, Field(min_length=1, max_length=60), _SAYS, _SAYS_SOMETHING]
    q: Annotated[str, Field(min_length=1, max_length=500), _SAYS, _SAYS_SOMETHING]


class UndoIn(Wire):
    """An owner's decision taken back. `version` is that of the decided item."""

    version: Annotated[int, Field(ge=1, le=2**31 - 1, strict=True)]


class RejectIn(Wire):
    """An owner's no, and why."""

    version: Annotated[int, Field(ge=1, le=2**31 - 1, strict=True)]
    reason: Reason
