"""A source's whole text as it is kept beside decisions that rest on it: compressed, named by its digest. Pure."""

from __future__ import annotations

import hashlib
import zlib

from vouchgate.ingest.claims.bounds import TEXT_CHARACTERS
from vouchgate.ingest.claims.source import PackedText

# The quickest: a page of 50 KB takes half a millisecond instead of two, and a sixth more room.
_LEVEL = 1
_MOST_BYTES = 4 * TEXT_CHARACTERS  # of a text, as UTF-8


def digest_of(text: str) -> str:
    """sha256 hex of the text, whatever characters it has."""
    return hashlib.sha256(_bytes(text)).hexdigest()


def pack(text: str) -> PackedText:
    """The text as it is kept. Linear, never raises."""
    return PackedText(digest=digest_of(text), body=zlib.compress(_bytes(text), _LEVEL))


def unpack(packed: PackedText) -> str:
    """The text again. Raises ValueError when it is not the one of that digest, or longer than any that is read."""
    inflating = zlib.decompressobj()
    try:
        text = inflating.decompress(packed.body, _MOST_BYTES).decode(errors="surrogatepass")
    except (zlib.error, UnicodeDecodeError) as error:
        raise ValueError(f"a kept source text cannot be read: {error}") from error
    if digest_of(text) != packed.digest:
        raise ValueError("a kept source text is not what it was")
    return text


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")
