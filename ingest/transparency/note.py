"""Signing checkpoints: keys of a log and of a witness, and what they sign (signed-note, tlog-cosignature).

Keys are written as `golang.org/x/mod/sumdb/note` writes them: `PRIVATE+KEY+name+id+base64`, and `name+id+base64` for
whoever checks.
"""

from __future__ import annotations

import base64
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from vouchgate.ingest.transparency.verifier import (
    COSIGNATURE,
    ED25519,
    HASH_BYTES,
    Checkpoint,
    Key,
    Malformed,
    Signature,
    cosigned,
    is_key_name,
    unbase64,
)

_PREFIX = "PRIVATE+KEY+"


@dataclass(frozen=True, slots=True)
class SigningKey:
    """The secret half of a key. Never shown: its text is made by `secret_text` alone."""

    key: Key
    seed: bytes = field(repr=False)

    def sign(self, message: bytes) -> bytes:
        """The 64 bytes of an Ed25519 signature over any message."""
        return Ed25519PrivateKey.from_private_bytes(self.seed).sign(message)

    def sign_note(self, text: str, at: int = 0) -> str:
        """The line below a text that ends with a newline: as its log, or as a witness at a time in seconds since
        1970."""
        if not text.endswith("\n"):
            raise ValueError("the text of a note ends with a newline")
        if self.key.kind == COSIGNATURE:
            data = at.to_bytes(8, "big") + self.sign(cosigned(text, at))
        else:
            data = self.sign(text.encode())
        return Signature(self.key.name, self.key.key_id + data).line

    def sign_checkpoint(self, size: int, root: bytes) -> str:
        """The whole checkpoint of the log with this key; cosignatures are appended to it."""
        text = str(Checkpoint(self.key.name, size, root))
        return f"{text}\n{self.sign_note(text)}"

    def secret_text(self) -> str:
        """What is kept in a file or a variable, and nowhere else."""
        encoded = base64.b64encode(bytes([self.key.kind]) + self.seed).decode()
        return f"{_PREFIX}{self.key.name}+{self.key.key_id.hex()}+{encoded}"


def signing_key(name: str, seed: bytes, kind: int = ED25519) -> SigningKey:
    """From 32 bytes that nobody can guess: a log's key, whose name is its origin, or with COSIGNATURE a witness's.
    Raises Malformed for a name that a key cannot have."""
    if not is_key_name(name):
        raise Malformed("The name of a key has no spaces and no plus sign.")
    public = Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()
    return SigningKey(Key(name, kind, public), seed)


def make_signing_key(name: str, kind: int = ED25519) -> SigningKey:
    """A new one."""
    return signing_key(name, os.urandom(HASH_BYTES), kind)


def parse_signing_key(text: str) -> SigningKey:
    """From its text. Raises Malformed, without a word of the key."""
    name, _, rest = text.strip().removeprefix(_PREFIX).partition("+")
    key_id, _, encoded = rest.partition("+")
    data = unbase64(encoded, "What follows the id of the signing key")
    if (
        not text.strip().startswith(_PREFIX)
        or len(data) != 1 + HASH_BYTES
        or data[0] not in (ED25519, COSIGNATURE)
    ):
        raise Malformed(f"A signing key reads {_PREFIX}name+id+base64, and is an Ed25519 key.")
    made = signing_key(name, data[1:], data[0])
    if made.key.key_id.hex() != key_id:
        raise Malformed("The id of the signing key does not belong to it: something is mistyped.")
    return made


def write_signing_key(path: Path, key: SigningKey) -> None:
    """A new file that only its owner may read, whole or not at all. Raises FileExistsError rather than write over a
    key."""
    # A name of its own: of several that write at once, none may put the key of another in place.
    descriptor, made = tempfile.mkstemp(".new", f"{path.name}.", path.parent)  # with the mode 0600
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(key.secret_text() + "\n")
            file.flush()
            os.fsync(file.fileno())
        path.hardlink_to(made)
    finally:
        Path(made).unlink()
