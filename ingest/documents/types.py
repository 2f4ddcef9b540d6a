"""A document as it is checked: what each character of it is, what it claims, and what stands for each claim."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from vouchgate.ingest.claims.citation import Citation

LARGEST = 5_000_000  # bytes of a document

# What files are named that are told by their names; all else is plain text.
MARKDOWN = ("md", "markdown", "mdx", "mdown", "mkd")
HTML = ("html", "htm", "xhtml")
RST = ("rst", "rest")
FORMATS = (*MARKDOWN, *HTML, *RST)

Span = tuple[int, int]  # start and end, in characters of the decoded text


class Unreadable(ValueError):
    """The bytes are no document that can be read. One sentence, without the name of the file."""


class BlockKind(StrEnum):
    """What a stretch of the text is."""

    CLAIM = "claim"
    EXEMPT = "exempt"  # words that say nothing that could be true or false; `reason` says why
    MARKUP = "markup"  # no words of the text: signs of the format, white space, references and their lists


class Reason(StrEnum):
    """Why words are no claim. There is no other reason, and in doubt they are one."""

    HEADING = "heading"
    CODE = "code"
    QUESTION = "question"
    IMPERATIVE = "imperative"
    ABOUT_DOCUMENT = "about_document"
    OPINION = "opinion"  # and says so


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of the text. The blocks of a document cover it in order, without gap or overlap."""

    start: int
    end: int
    kind: BlockKind
    reason: Reason | None = None


@dataclass(frozen=True, slots=True)
class Reference:
    """One place in the text that points at a source. `target` is the source as it is written: an address, a path, a
    record; for a note or a number, what its entry has, or the entry's text when that names nothing to look up.

    `citation` is what the checks look up, as one given beside a claim: None where nobody can (a book, a file outside
    of the repository, `[7]`). A reference is `dangling` when it names an entry that the document does not have."""

    start: int
    end: int
    target: str
    citation: Citation | None
    dangling: bool = False


@dataclass(frozen=True, slots=True)
class DocumentClaim:
    """A sentence, list item or table row that can be true or false, with the references that are to vouch for it.

    `text` is what a reader sees of it: without markup and references, and a table row with the names of its columns.
    `section` are the headings it stands under, the outermost first. `lead` is the sentence that leads in to its list.
    `marked` is the sign with which the writer asks for a source, such as `[citation needed]`, if there is one."""

    start: int
    end: int
    text: str
    section: tuple[str, ...]
    lead: str
    references: tuple[Reference, ...]
    marked: str = ""


class Slip(StrEnum):
    """What is wrong with the references of a document, whatever their sources say."""

    DANGLING = "dangling"  # a reference whose entry is missing
    UNUSED = "unused"  # an entry that nothing refers to
    CITATION_NEEDED = "citation_needed"  # the writer says that a source is missing


@dataclass(frozen=True, slots=True)
class Finding:
    """A slip and where it stands; `text` is what stands there."""

    slip: Slip
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Document:
    """A text that was read to its end. References that vouch for no claim are among `references` too."""

    name: str
    text: str
    blocks: tuple[Block, ...]
    references: tuple[Reference, ...]
    claims: tuple[DocumentClaim, ...]
    findings: tuple[Finding, ...]
