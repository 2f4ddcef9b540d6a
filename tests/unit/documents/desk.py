"""What the tests of documents ask."""

from __future__ import annotations

from vouchgate.ingest.documents import BlockKind, Document, read_document


def read(text: str, name: str = "page.md") -> Document:
    """The document of this text, with every character accounted for."""
    document = read_document(name, text.encode())
    accounted(document)
    return document


def accounted(document: Document) -> None:
    """The blocks cover the text in order without gap or overlap, and each claim is one of them."""
    at = 0
    for block in document.blocks:
        assert (block.start, block.end > block.start) == (at, True)
        assert (block.reason is not None) == (block.kind is BlockKind.EXEMPT)
        at = block.end
    assert at == len(document.text)
    claimed = [(block.start, block.end) for block in document.blocks if block.kind is BlockKind.CLAIM]
    assert claimed == [(claim.start, claim.end) for claim in document.claims]


def claims(text: str, name: str = "page.md") -> list[str]:
    """The claims of a text, as a reader reads them."""
    return [claim.text for claim in read(text, name).claims]


def kinds(text: str, name: str = "page.md") -> list[tuple[str, str]]:
    """What the stretches of a text are, but for its markup."""
    document = read(text, name)
    return [
        (block.reason or block.kind, document.text[block.start : block.end])
        for block in document.blocks
        if block.kind is not BlockKind.MARKUP
    ]


def vouching(text: str, name: str = "page.md") -> dict[str, list[str]]:
    """For each claim what is to vouch for it."""
    return {
        claim.text: [reference.target for reference in claim.references] for claim in read(text, name).claims
    }
