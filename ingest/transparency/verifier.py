"""Checks what a gate's log says of itself: receipts, and that a later checkpoint only added to an earlier one.

This file works alone, so that nobody has to trust the gate or install it: it needs Python and, for signatures, the
package `cryptography`. It goes with every export, and is the command `vouchgate-verify`. The formats are public:
RFC 6962 and RFC 9162 (tree and proofs), c2sp.org/signed-note, /tlog-checkpoint, /tlog-cosignature (version 1, Ed25519),
/tlog-proof and /tlog-tiles. Every input may be wrong, huge or hostile: it is bounded before it is read.
"""

from __future__ import annotations

import argparse
import base64
import binascii
import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

HASH_BYTES = 32
TILE_HASHES = 256  # a tile has height 8 (tlog-tiles)
MAX_SIZE = 2**63 - 1  # entries; what fits the signed integers of databases
MAX_PROOF_HASHES = 63  # the height of the largest tree, and what tlog-witness allows
MAX_LEAF_BYTES = 2**16 - 1  # what an entry bundle of tlog-tiles can say
MAX_NOTE_BYTES = 65_536
MAX_SIGNATURES = 100  # as golang.org/x/mod/sumdb/note; the format asks for 16 at least
MAX_PROOF_BYTES = 2 * MAX_NOTE_BYTES
MAX_RECEIPT_BYTES = 4 * MAX_NOTE_BYTES
MAX_ANSWER_BYTES = 16 * 2**20
EMPTY_ROOT = hashlib.sha256(b"").digest()
PROOF_HEADER = "c2sp.org/tlog-proof@v1"
_USE = re.compile(r"(in use|ended ) {2}")  # what an ended key signed stays valid
ED25519, COSIGNATURE = 0x01, 0x04  # what kinds of signature a key makes (signed-note, tlog-cosignature)

# The hash over the 2**level entries from index * 2**level on.
GetHash = Callable[[int, int], bytes]


class NotProven(Exception):
    """A proof or signature does not hold; the message is a sentence for the person who asked."""


class Malformed(NotProven):
    """What was given cannot be read as what it should be."""


# --- The tree (RFC 6962, section 2.1; RFC 9162, sections 2.1.3 and 2.1.4)


def leaf_hash(data: bytes) -> bytes:
    """Of an entry's bytes."""
    return hashlib.sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Of two neighbours."""
    return hashlib.sha256(b"\x01" + left + right).digest()


def check_inclusion(index: int, size: int, leaf: bytes, proof: Sequence[bytes], root: bytes) -> None:
    """That the entry with the hash `leaf` is number `index` (from 0) of the tree. Raises NotProven."""
    if not 0 <= index < size <= MAX_SIZE:
        raise NotProven(f"There is no entry number {index} in a log of {size}.")
    if _climb(index, size - 1, leaf, proof)[1] != root:
        raise NotProven("The entry is not in the log at that place: its proof leads to another root.")


def check_consistency(
    old_size: int, new_size: int, old_root: bytes, new_root: bytes, proof: Sequence[bytes]
) -> None:
    """That the newer tree has all entries of the older, in order, with more behind them. Raises NotProven."""
    if not 0 <= old_size <= new_size <= MAX_SIZE:
        raise NotProven(f"A log of {new_size} entries cannot have grown out of one of {old_size}.")
    if old_size in (0, new_size):
        if proof or old_root != (new_root if old_size else EMPTY_ROOT):
            raise NotProven("The roots do not agree, or a proof was given where there is nothing to prove.")
        return
    hashes = [old_root, *proof] if old_size & (old_size - 1) == 0 else list(proof)
    below = (
        old_size & -old_size
    ).bit_length() - 1  # the proof begins at the last full subtree of the older tree
    made = _climb((old_size - 1) >> below, (new_size - 1) >> below, hashes[0], hashes[1:]) if hashes else ()
    if made != (old_root, new_root):
        raise NotProven(
            "The newer log does not hold the older one: entries were changed, removed or reordered."
        )


def _climb(node: int, last: int, start: bytes, proof: Sequence[bytes]) -> tuple[bytes, bytes]:
    """From a node up to the root, along hashes beside the way: the root over what is up to that node, and over all."""
    if len(proof) > MAX_PROOF_HASHES or any(len(each) != HASH_BYTES for each in (start, *proof)):
        raise Malformed(f"A proof has at most {MAX_PROOF_HASHES} hashes of {HASH_BYTES} bytes.")
    old = new = start
    for each in proof:
        if not last:
            raise NotProven("The proof has more hashes than the tree is high.")
        if node & 1 or node == last:
            old, new = node_hash(each, old), node_hash(each, new)
            while node and not node & 1:
                node, last = node >> 1, last >> 1
        else:
            new = node_hash(new, each)
        node, last = node >> 1, last >> 1
    if last:
        raise NotProven("The proof has fewer hashes than the tree is high.")
    return old, new


def split_of(count: int) -> int:
    """The largest power of two below a count of at least 2: how many entries are left of a node."""
    return 1 << (count - 1).bit_length() - 1


def range_hash(get: GetHash, begin: int, end: int) -> bytes:
    """The root over the entries from `begin` up to `end`, the first range that a node can have: `begin` is a multiple
    of the power of two that is not below the length."""
    if end - begin == 0:
        return EMPTY_ROOT
    level = (end - begin).bit_length() - 1
    if end - begin == 1 << level:
        return get(level, begin >> level)
    middle = begin + split_of(end - begin)
    return node_hash(get(level, begin >> level), range_hash(get, middle, end))


def consistency_proof(get: GetHash, old_size: int, new_size: int) -> list[bytes]:
    """RFC 6962, section 2.1.2, out of stored hashes. Empty where there is nothing to prove."""
    if not 0 <= old_size <= new_size:
        raise ValueError("the older tree is the smaller one")
    proof: list[bytes] = []
    begin, end = 0, new_size if old_size else 0
    while old_size != end and old_size:
        middle = begin + split_of(end - begin)
        if old_size <= middle:
            proof.append(range_hash(get, middle, end))
            end = middle
        else:
            proof.append(range_hash(get, begin, middle))
            begin = middle
    if begin:
        proof.append(range_hash(get, begin, end))
    return proof[::-1]


# --- Tiles (tlog-tiles)


def tile_path(level: int, number: int, width: int = TILE_HASHES) -> str:
    """Where a tile is, below the address of a log: `tile/0/x001/234`, with `.p/17` behind it where it is partial."""
    digits = f"{number:d}"
    digits = digits.zfill(-(-len(digits) // 3) * 3)
    parts = [digits[at : at + 3] for at in range(0, len(digits), 3)]
    path = f"tile/{level}/" + "/".join([*(f"x{part}" for part in parts[:-1]), parts[-1]])
    return path if width == TILE_HASHES else f"{path}.p/{width}"


def tile_width(level: int, number: int, size: int) -> int:
    """How many hashes this tile has in a tree of this size: 0 (there is none) to 256."""
    return max(0, min(TILE_HASHES, (size >> 8 * level) - number * TILE_HASHES))


def hashes_of_tiles(read: Callable[[int, int, int], bytes], size: int) -> GetHash:
    """The hashes of a tree of this size out of its tiles. `read` gets level, number and width of a tile, and answers
    with at least that many hashes. What is read is kept, so this is for one or few proofs."""
    kept: dict[tuple[int, int], bytes] = {}

    def get(level: int, index: int) -> bytes:
        tiled, above = divmod(level, 8)
        first = index << above
        at = (tiled, first // TILE_HASHES)
        width = tile_width(*at, size)
        begin = first % TILE_HASHES
        if begin + (1 << above) > width:
            raise ValueError(f"a tree of {size} has no hash {index} at level {level}")
        if at not in kept:
            kept[at] = read(*at, width)
        tile = kept[at]
        if len(tile) < width * HASH_BYTES:
            raise Malformed(f"The tile {tile_path(*at, width)} is too short.")
        return subtree(tile[begin * HASH_BYTES : (begin + (1 << above)) * HASH_BYTES])

    return get


def subtree(hashes: bytes) -> bytes:
    """The root over a run of neighbours that is a power of two long."""
    while len(hashes) > HASH_BYTES:
        pairs = range(0, len(hashes), 2 * HASH_BYTES)
        hashes = b"".join([hashlib.sha256(b"\x01" + hashes[i : i + 2 * HASH_BYTES]).digest() for i in pairs])
    return hashes


# --- Signed notes and checkpoints (signed-note, tlog-checkpoint, tlog-cosignature)


def unbase64(text: str, what: str) -> bytes:
    """Standard base64 with its padding, written in the one way there is. Raises Malformed."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        data = b""
    if not text or base64.b64encode(data).decode() != text:
        raise Malformed(f"{what} is not base64.")
    return data


def is_key_name(name: str) -> bool:
    """Whether a key can have this name: something, on one line, without spaces and plus signs."""
    return 0 < len(name) <= 255 and name.isprintable() and not any(c.isspace() or c == "+" for c in name)


@dataclass(frozen=True, slots=True)
class Key:
    """A key to check signatures with: of a log (ED25519) or of a witness (COSIGNATURE)."""

    name: str
    kind: int
    public: bytes

    @property
    def key_id(self) -> bytes:
        """Four bytes that tell keys of one name apart; no proof of anything."""
        return hashlib.sha256(self.name.encode() + b"\n" + bytes([self.kind]) + self.public).digest()[:4]

    def __str__(self) -> str:
        return (
            f"{self.name}+{self.key_id.hex()}+{base64.b64encode(bytes([self.kind]) + self.public).decode()}"
        )


def parse_key(text: str) -> Key:
    """From `name+id+base64`, as keys are written. Raises Malformed."""
    name, _, rest = text[:1_000].partition("+")
    key_id, _, encoded = rest.partition("+")
    if not is_key_name(name) or not re.fullmatch(r"[0-9a-f]{8}", key_id):
        raise Malformed("A key reads name+id+base64, with an id of eight digits and lower letters.")
    data = unbase64(encoded, "What follows the id of the key")
    if len(data) != 1 + HASH_BYTES or data[0] not in (ED25519, COSIGNATURE):
        raise Malformed("This is no Ed25519 key, of a log or of a witness.")
    key = Key(name, data[0], data[1:])
    if key.key_id.hex() != key_id:
        raise Malformed("The id of the key does not belong to it: something is mistyped.")
    return key


@dataclass(frozen=True, slots=True)
class Signature:
    """One line below a note: who says to have signed it, and 4 bytes of key id before what was signed."""

    name: str
    data: bytes

    @property
    def line(self) -> str:
        """As it stands in a note."""
        return f"— {self.name} {base64.b64encode(self.data).decode()}\n"


@dataclass(frozen=True, slots=True)
class Note:
    """Text, and who says to have signed it. Nothing of it may be believed before `signed_at` found a key."""

    text: str
    signatures: tuple[Signature, ...]

    def signed_at(self, key: Key) -> int | None:
        """When it was signed by this key, in seconds since 1970 (0 where the kind of signature does not say); None when
        it was not. Raises NotProven for a signature of the key that does not hold."""
        found = None
        for each in self.signatures:
            if (each.name, each.data[:4]) == (key.name, key.key_id):
                at, signature, message = 0, each.data[4:], self.text.encode()
                if key.kind == COSIGNATURE:
                    at, signature = int.from_bytes(signature[:8], "big"), signature[8:]
                    message = cosigned(self.text, at)
                if len(signature) != 64 or at > MAX_SIZE or not _holds(key.public, signature, message):
                    raise NotProven(
                        f"A signature in the name of {key.name} does not hold: this was forged or altered."
                    )
                found = at if found is None else max(at, found)
        return found


def cosigned(text: str, at: int) -> bytes:
    """What a witness signs, at a time in seconds since 1970."""
    return f"cosignature/v1\ntime {at}\n{text}".encode()


def _holds(public: bytes, signature: bytes, message: bytes) -> bool:
    try:
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415  (all else works without it)
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise RuntimeError("Checking a signature needs one package: pip install cryptography") from error
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def parse_note(data: bytes) -> Note:
    """Reads a signed note; checks no signature. Raises Malformed."""
    text, blank, below = _text_of(data, MAX_NOTE_BYTES, "A signed note").rpartition("\n\n")
    if not blank or not below.endswith("\n") or not below.startswith("— "):
        raise Malformed("A signed note is text, an empty line, and signatures.")
    return Note(text + "\n", parse_signatures(below))


def parse_signatures(lines: str) -> tuple[Signature, ...]:
    """Signature lines, each ended. Raises Malformed."""
    found = []
    for line in lines.split("\n")[:-1]:
        parts = line.split(" ")
        if len(parts) != 3 or parts[0] != "—" or not is_key_name(parts[1]):
            raise Malformed("A signature reads: a long dash, a name, base64.")
        data = unbase64(parts[2], "A signature")
        if len(data) < 5:
            raise Malformed("A signature is too short.")
        found.append(Signature(parts[1], data))
    if not 0 < len(found) <= MAX_SIGNATURES:
        raise Malformed(f"A note has one signature to {MAX_SIGNATURES}.")
    return tuple(found)


def _text_of(data: bytes, limit: int, what: str) -> str:
    if len(data) > limit:
        raise Malformed(f"{what} has at most {limit:,} bytes, and this one has more.")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise Malformed(f"{what} is UTF-8.") from None
    if any(c < " " and c != "\n" for c in text):
        raise Malformed(f"{what} has no control characters.")
    return text


def parse_number(text: str, what: str) -> int:
    """A whole number as notes write it. Raises Malformed."""
    if not re.fullmatch(r"0|[1-9][0-9]{0,18}", text) or int(text) > MAX_SIZE:
        raise Malformed(f"{what} is a number from 0 to 2^63 - 1, without anything before it.")
    return int(text)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The head of a log: how many entries, and the root over them."""

    origin: str
    size: int
    root: bytes

    def __str__(self) -> str:
        return f"{self.origin}\n{self.size}\n{base64.b64encode(self.root).decode()}\n"


def parse_checkpoint(text: str) -> Checkpoint:
    """From the text of a note; lines behind the third are for others. Raises Malformed."""
    lines = text.split("\n")
    if len(lines) < 4 or not all(lines[:-1]) or lines[-1]:
        raise Malformed("A checkpoint is three lines: the log's origin, its size, its root.")
    size, root = parse_number(lines[1], "The size of a log"), unbase64(lines[2], "The root of a log")
    if len(root) != HASH_BYTES or (not size and root != EMPTY_ROOT):
        raise Malformed("The root of the checkpoint is not one of a log of that size.")
    return Checkpoint(lines[0], size, root)


def open_checkpoint(
    data: bytes, log_keys: Iterable[Key], witnesses: Iterable[Key] = (), needed: int = 0
) -> tuple[Checkpoint, dict[str, int]]:
    """A checkpoint that one of the log's keys signed, whose name is the log's origin (more than one while a log changes
    its key), and that so many of these witnesses cosigned; and when each of them did, by name, in seconds since 1970.
    Raises NotProven."""
    note = parse_note(data)
    checkpoint = parse_checkpoint(note.text)
    named = [key for key in log_keys if (key.name, key.kind) == (checkpoint.origin, ED25519)]
    if not sum(note.signed_at(key) is not None for key in named):  # all are asked, so that none is forged
        raise NotProven(
            f"The checkpoint of {checkpoint.origin!a} is not signed by a key of the log that you trust."
        )
    # By key, not by name: the cosigned text does not hold the name, so one witness could pass for two.
    signed = [(key, note.signed_at(key)) for key in witnesses if key.kind == COSIGNATURE]
    seen = {key.public: (key.name, at) for key, at in signed if at is not None}
    if len(seen) < needed:
        raise NotProven(f"{len(seen)} of your witnesses cosigned the checkpoint, and {needed} are needed.")
    return checkpoint, dict(seen.values())


# --- Promises


PROMISE_HEADER = "vouchgate-promise/v1"


def promised_entry(owner: str, seq: int, digest: str) -> bytes:
    """An entry in the small tree of its commit."""
    return f"{owner}\n{seq}\n{digest}\n".encode()


def promise_text(origin: str, size: int, root: bytes) -> str:
    """What a log signs for the entries of one commit; it cannot be read as a checkpoint."""
    return f"{PROMISE_HEADER}\n{origin}\n{size}\n{base64.b64encode(root).decode()}\n"


def check_promise(promise: Mapping[str, Any], log_keys: Iterable[Key]) -> None:
    """That a key of the log promised the entry of this `owner`, `seq` and `digest`, as an answer of the gate has it:
    the leaf of the receipt, once there is one, says the same three. Raises NotProven."""
    try:
        entry = promised_entry(str(promise["owner"]), int(promise["seq"]), str(promise["digest"]))
        hashes = [unbase64(str(each), "A hash") for each in promise["hashes"][: MAX_PROOF_HASHES + 1]]
        index, note = int(promise["index"]), parse_note(str(promise["note"]).encode())
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise Malformed("A promise has owner, seq, digest, index, hashes and note.") from error
    lines = note.text.split("\n")
    if len(lines) != 5 or lines[0] != PROMISE_HEADER:
        raise Malformed(f"The note of a promise begins with {PROMISE_HEADER}, and has four lines.")
    if not any(note.signed_at(key) is not None for key in log_keys if key.name == lines[1]):
        raise NotProven(f"The promise of {lines[1]!r} is not signed by a key of the log that you trust.")
    size, root = parse_number(lines[2], "The size of a commit"), unbase64(lines[3], "The root of a commit")
    check_inclusion(index, size, leaf_hash(entry), hashes, root)


# --- Receipts (tlog-proof)


@dataclass(frozen=True, slots=True)
class Proof:
    """That an entry is in a log: its number (from 0), the hashes beside its way to the root, and the checkpoint."""

    index: int
    hashes: tuple[bytes, ...]
    checkpoint: bytes

    def __str__(self) -> str:
        lines = [
            PROOF_HEADER,
            f"index {self.index}",
            *(base64.b64encode(each).decode() for each in self.hashes),
        ]
        return "\n".join(lines) + "\n\n" + self.checkpoint.decode()


def parse_proof(data: bytes) -> Proof:
    """Reads a proof; checks nothing of it. A line of extra data is passed over: nobody signed it. Raises Malformed."""
    head, _, checkpoint = _text_of(data, MAX_PROOF_BYTES, "A proof").partition("\n\n")
    lines = head.split("\n")
    if lines[0] != PROOF_HEADER:
        raise Malformed(f"A proof begins with the line {PROOF_HEADER}.")
    rest = lines[2:] if lines[1:2] and lines[1].startswith("extra ") else lines[1:]
    if not rest or not rest[0].startswith("index "):
        raise Malformed("A proof has a line with the index of the entry.")
    if len(rest) - 1 > MAX_PROOF_HASHES:
        raise Malformed(f"A proof has at most {MAX_PROOF_HASHES} hashes.")
    index = parse_number(rest[0].removeprefix("index "), "The index of an entry")
    return Proof(index, tuple(unbase64(line, "A hash") for line in rest[1:]), checkpoint.encode())


def check_proof(
    data: bytes, leaf: bytes, log_keys: Iterable[Key], witnesses: Iterable[Key] = (), needed: int = 0
) -> tuple[int, Checkpoint, dict[str, int]]:
    """That the entry with these bytes is in the log: its number (from 0), in which checkpoint, and which witnesses saw
    that when. Raises NotProven."""
    proof = parse_proof(data)
    checkpoint, seen = open_checkpoint(proof.checkpoint, log_keys, witnesses, needed)
    if len(leaf) > MAX_LEAF_BYTES:
        raise Malformed(f"An entry has at most {MAX_LEAF_BYTES:,} bytes.")
    check_inclusion(proof.index, checkpoint.size, leaf_hash(leaf), proof.hashes, checkpoint.root)
    return proof.index, checkpoint, seen


def check_answer(leaf: bytes, salt: bytes, answer: bytes, log_keys: Iterable[Key]) -> None:
    """That the entry commits to this answer, byte for byte as it was received, but for a newline that an editor put
    behind it. What was handed over with it, and the promise at its end, are no part of that; the promise must be of the
    same entry. Raises NotProven."""
    entry = _json(leaf, "The entry")
    entry = entry if isinstance(entry, dict) else {}
    # A sha256 in lower hex; before a colon stands how it was made.
    commitment = str(entry.get("commitment")).rpartition(":")[2]
    whole = answer.removesuffix(b"\n")
    decided, promised, _ = whole.rpartition(b',"promise":')
    alone, *_ = (decided or whole[:-1]).rpartition(b',"delivery":{"id":')
    for each in (answer, whole, decided + b"}", alone + b"}"):
        if hashlib.sha256(salt + each).hexdigest() == commitment:
            break
    else:
        raise NotProven(
            "The answer is not the one that was logged: it was altered, or belongs to another receipt."
        )
    answered = _json(answer, "The answer") if promised else None
    if isinstance(answered, dict) and "promise" in answered:
        same = ("owner", "seq", "digest")
        check_promise(answered["promise"], log_keys)
        if [answered["promise"][each] for each in same] != [entry.get(each) for each in same]:
            raise NotProven(
                "The gate promised another entry than this one: it broke its promise. Keep both files."
            )


# --- Exports

# That no checkpoint covered it yet is the word of whoever made the export.
_NOT_YET = "where a checkpoint covers them by now, ask for an export that shows it."
SAID = ("tier", "outcome", "rule", "reason", "memory_id", "queue_id", "conflicting_memory_id")  # of an answer
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
DECISION_TYPE, EXPORT_TYPE = "urn:vouchgate:decision:v1", "urn:vouchgate:export:v1"
PAYLOAD_TYPE = "application/vnd.in-toto+json"
MANIFEST, MANIFEST_SIGNED = "manifest.json", "manifest.dsse.json"
ERASED = "memory.erased"  # of all that goes at once, or of a decision on another claim that loses words by it
EntryKey = tuple[str, int]  # an owner, and the number of an entry in its chain
DECIDED = frozenset(  # actions whose subject is a decision
    f"claim.{how}"
    for how in ("stored", "queued", "repeated", "blocked", "let_through", "promoted", "rechecked")
) | {"review.edited"}


@dataclass(slots=True)
class Logged:
    """What the entries of an export say."""

    digests: dict[EntryKey, str] = field(default_factory=dict)  # of each
    # By decision: which entry is about it, the commitment to it and its salt.
    decided: dict[str, tuple[EntryKey, str, str | None]] = field(default_factory=dict)
    beyond: set[EntryKey] = field(default_factory=set)  # erasures that are not of the period
    erased: set[str] = field(default_factory=set)  # of which nothing is left
    shortened: dict[str, tuple[str, str]] = field(default_factory=dict)  # commitment and salt of what is left
    proven: set[EntryKey] = field(default_factory=set)  # those with a receipt that holds

    def uncovered(self) -> set[EntryKey]:
        """The entries that are in no receipt, nor before one that is: each names the digest of the one before."""
        last = dict(sorted(self.proven - self.beyond))  # of each owner
        behind = {
            each for each in self.digests if each not in self.beyond and each[1] > last.get(each[0], -1)
        }
        return behind | (self.beyond - self.proven)


def pae(body: bytes) -> bytes:
    """What is signed of a DSSE envelope with this payload."""
    return b"DSSEv1 %d %b %d %b" % (len(PAYLOAD_TYPE), PAYLOAD_TYPE.encode(), len(body), body)


def open_envelope(data: bytes, keys: Iterable[Key]) -> bytes:
    """The payload of a DSSE envelope that one of these keys signed; with no key, its signatures are not looked at.
    Raises NotProven."""
    told = _json(data, "An envelope")
    if not isinstance(told, dict) or told.get("payloadType") != PAYLOAD_TYPE:
        raise Malformed(f"An envelope is JSON with a payload of the type {PAYLOAD_TYPE}.")
    body, given = unbase64(str(told.get("payload")), "A payload"), told.get("signatures")
    if not isinstance(given, list) or len(given) > MAX_SIGNATURES or {type(each) for each in given} - {dict}:
        raise Malformed("An envelope has a list of signatures.")
    signed = {str(each.get("keyid")): unbase64(str(each.get("sig")), "A signature") for each in given}
    named = {f"{key.name}+{key.key_id.hex()}": key.public for key in keys}
    both = named.keys() & signed.keys()
    if named and not (both and all(_holds(named[each], signed[each], pae(body)) for each in both)):
        raise NotProven("An envelope is not signed by a key of the log that you trust.")
    return body


def lines_of(path: Path) -> Iterable[bytes]:
    """The lines of a file, without their ends. Raises Malformed for one that is too long."""
    with path.open("rb") as file:
        while line := file.readline(MAX_ANSWER_BYTES + 2):
            if len(line) > MAX_ANSWER_BYTES:
                raise Malformed(f"A line of {path.name} has more than {MAX_ANSWER_BYTES:,} bytes.")
            yield line.removesuffix(b"\n")


def check_files(folder: Path, keys: Sequence[Key]) -> int:
    """That every file of an export is as its manifest says, and that there is no other; how many. Raises NotProven."""
    manifest, sealed = (
        _read(folder / MANIFEST, MAX_ANSWER_BYTES),
        _read(folder / MANIFEST_SIGNED, 2 * MAX_ANSWER_BYTES),
    )
    written = json.dumps(_json(sealed, "An envelope"), separators=(",", ":")).encode() + b"\n"
    if open_envelope(sealed, keys) != manifest or written != sealed:
        raise NotProven(f"{MANIFEST} was altered: {MANIFEST_SIGNED} holds another.")
    told = _json(manifest, "The manifest")
    try:
        listed = {str(each["name"]): str(each["digest"]["sha256"]) for each in told["subject"]}
        if (told["_type"], told["predicateType"]) != (STATEMENT_TYPE, EXPORT_TYPE):
            raise Malformed("The manifest is not that of an export.")
    except (KeyError, TypeError):
        raise Malformed("The manifest is an in-toto Statement about files.") from None
    found = [each for each in folder.rglob("*") if each.is_symlink() or not each.is_dir()]
    for each in found:
        if each.is_symlink() or not each.is_file():
            raise NotProven(f"{each.name!a} is no plain file.")
    there = {each.relative_to(folder).as_posix() for each in found}
    for name in sorted(there ^ {*listed, MANIFEST, MANIFEST_SIGNED}):
        raise NotProven(f"{name!a} is {'not in the manifest' if name in there else 'missing'}.")
    for name, digest in sorted(listed.items()):
        with (folder / name).open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != digest:
                raise NotProven(f"{name!a} was altered: it is not what the manifest says.")
    return len(listed)


def _entry(line: bytes, what: str) -> tuple[dict[str, Any], EntryKey, str]:
    """An entry, which it is, and the digest that it must have."""
    entry = _json(line, what)
    try:
        names = ("owner_id", "seq", "at", "actor", "action", "subject_id", "content_digest", "previous")
        made = hashlib.sha256(json.dumps([entry[each] for each in names]).encode()).hexdigest()
        if not (isinstance(entry["owner_id"], str) and type(entry["seq"]) is int and entry["digest"]):
            raise TypeError
    except (KeyError, TypeError):
        raise Malformed(f"{what} lacks a part of an entry.") from None
    return entry, (entry["owner_id"], entry["seq"]), made


def _period(folder: Path) -> Callable[[str], bool]:
    """Whether a time is in the period that the manifest names. Entries from shortly before or after it may lie between
    those of it, as they have the times at which something was begun."""
    told = _json(_read(folder / MANIFEST, MAX_ANSWER_BYTES), "The manifest")
    try:
        since, until = (
            None if told["predicate"][each] is None else datetime.fromisoformat(told["predicate"][each])
            for each in ("from", "to")
        )
    except (KeyError, TypeError, ValueError):
        raise Malformed("The manifest names a period, from and to.") from None

    def within(text: str) -> bool:
        at = datetime.fromisoformat(text)
        return (since is None or since <= at) and (until is None or at < until)

    return within


def check_chains(folder: Path) -> Logged:
    """That each owner's entries in `log.jsonl` continue one another; what they say. Raises NotProven."""
    last: dict[str, tuple[int, str]] = {}
    log, within = Logged(), _period(folder)
    for line in lines_of(folder / "log.jsonl"):
        entry, (owner, seq), made = _entry(line, "A line of log.jsonl")
        previous = seq - 1, entry["previous"]
        if made != entry["digest"] or last.get(owner, previous) != previous:
            raise NotProven(
                f"Entry {seq!a} of the log of {owner!a} was altered, or one before it is missing."
            )
        last[owner], log.digests[owner, seq] = (seq, made), made
        if entry["action"] in DECIDED:
            try:
                if within(entry["at"]):
                    log.decided[entry["subject_id"]] = (owner, seq), entry["content_digest"], entry["salt"]
            except (KeyError, TypeError, ValueError):
                raise Malformed("A line of log.jsonl lacks a part of an entry.") from None
    return log


def check_erasures(folder: Path, log: Logged) -> None:
    """That what `erasures.jsonl` says of decisions is what entries commit to, those of the period being in `log.jsonl`;
    notes it. Raises NotProven."""
    for line in lines_of(folder / "erasures.jsonl"):
        entry, key, made = _entry(line, "A line of erasures.jsonl")
        subject, commitment = entry["subject_id"], entry["content_digest"]
        if key not in log.digests:
            log.beyond.add(key)
        if not made == entry["digest"] == log.digests.setdefault(key, made) or entry["action"] != ERASED:
            raise NotProven(f"The erasure {subject!a} was altered: it is not the entry that the log has.")
        try:
            salt, items = str(entry["salt"]), entry.get("items")
            if items is None:  # of one decision: what is left of it is told in `decisions.jsonl`
                gone, log.shortened[subject] = [subject], (commitment, salt)
            elif _commits(commitment, salt, {"basis": entry["basis"], "items": items}):
                gone = [each for each in items if each in log.decided]
                log.erased.update(gone)
            else:
                raise NotProven(f"The log does not commit to what the erasure {subject!a} names.")
            if any(log.decided[each][0] >= key or log.decided[each][0][0] != key[0] for each in gone):
                raise NotProven(f"The erasure {subject!a} names a decision that came after it.")
        except (KeyError, TypeError, ValueError):
            raise Malformed("An erasure has a salt, and a basis with items or a decision.") from None


def _commits(commitment: str, salt: str, document: dict[str, Any]) -> bool:
    """Whether this is what an entry is about. Raises ValueError where the salt is none."""
    written = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    return hashlib.sha256(bytes.fromhex(salt) + written).hexdigest() == commitment.rpartition(":")[2]


def check_decisions(folder: Path, keys: Sequence[Key], log: Logged) -> tuple[int, int]:
    """That the log commits to every decision, that every one that it tells of is there, and that an envelope says so of
    each; how many there are, and how many of these lost words by an erasure. Raises NotProven."""
    left = {name: (commitment, salt) for name, (_, commitment, salt) in log.decided.items()}
    shortened, policies = 0, {each.stem for each in (folder / "policies").glob("*.json")}
    answers, envelopes = lines_of(folder / "decisions.jsonl"), iter(lines_of(folder / "decisions.dsse.jsonl"))
    for answer in answers:
        told = _json(open_envelope(next(envelopes, b""), keys), "A statement")
        try:
            ((name, digest),) = ((each["name"], each["digest"]["sha256"]) for each in told["subject"])
            commitment, salt = left.pop(name, ("", None))
            salted, policy = bytes.fromhex(salt or "") + answer, told["predicate"]["policy"]
        except (KeyError, TypeError, ValueError):
            raise Malformed("A statement is about one decision, which the log commits to.") from None
        said = _json(answer, "A decision")
        if digest != hashlib.sha256(answer).hexdigest() or not isinstance(said, dict):
            raise NotProven(f"{name!a} was altered: it is not what its statement says.")
        if any(told["predicate"].get(each) != said.get(each) for each in SAID):
            raise NotProven(f"The statement about {name!a} says something else than the decision.")
        if salt is None and name in log.shortened:
            about = {"decision": name, "answer": digest}
            shortened, holds = shortened + 1, _commits(*log.shortened[name], about)
        else:
            holds = hashlib.sha256(salted).hexdigest() == commitment.rpartition(":")[2]
        if not holds:
            raise NotProven(f"{name!a} is not a decision that the log commits to.")
        if policy not in policies:
            raise NotProven(f"The policy of {name!a} is missing.")
    missing = left.keys() - log.erased
    if next(envelopes, None) is not None or missing:
        raise NotProven(
            f"{len(missing)} decisions that the log tells of are missing, and no entry says that they were erased,"
            f" such as {min(missing, default='')!a}."
        )
    return len(log.decided) - len(left), shortened


def check_receipts(folder: Path, log: Logged, head: Checkpoint | None, *trusted: Any) -> int:
    """That every receipt leads to this checkpoint, and that its entry is the one in `log.jsonl` or `erasures.jsonl`;
    how many decisions have none. Raises NotProven."""
    with_one: set[str] = set()
    checkpoint, opened = b"", Checkpoint("", 0, EMPTY_ROOT)
    for line in lines_of(folder / "receipts.jsonl"):
        receipt = _json(line, "A receipt")
        try:
            leaf, proof = unbase64(receipt["leaf"], "The leaf"), parse_proof(receipt["proof"].encode())
            entry, name = _json(leaf, "The entry"), receipt["decision_id"]
            key: EntryKey = (receipt["owner_id"], receipt["seq"])
            said = log.digests[key], key[1]
            same = said == (entry["digest"], entry["seq"]) and key not in log.proven
            if name is not None:
                told = key, entry["commitment"], receipt["salt"]
                same = same and log.decided[name] == told and entry["subject"] == name
        except (KeyError, TypeError, AttributeError, UnicodeError):
            raise Malformed(
                "A receipt is JSON with owner_id, seq, decision_id, leaf, salt and proof of an entry."
            ) from None
        if proof.checkpoint != checkpoint:  # one for all, as exports are made
            opened, checkpoint = open_checkpoint(proof.checkpoint, *trusted)[0], proof.checkpoint
        if opened != head:
            raise NotProven(
                "A receipt leads to a checkpoint that is not the one in the file `checkpoint`, though the log's key"
                " signed it: these may be two views of one log. Keep all of this."
            )
        check_inclusion(proof.index, opened.size, leaf_hash(leaf), proof.hashes, opened.root)
        if not same:
            what = name or f"entry {key[1]} of {key[0]!a}"
            raise NotProven(
                f"The receipt of {what} is that of another entry than the log here has, or there twice."
            )
        log.proven.add(key)
        if name is not None:
            with_one.add(name)
    without, uncovered = log.decided.keys() - with_one, log.uncovered()
    if lost := [name for name in without if log.decided[name][0] not in uncovered]:
        raise NotProven(f"The receipt of {min(lost)!a} is missing, and a later entry has one.")
    return len(without)


def _told_of(folder: Path) -> dict[str, Any]:
    told = _json(_read(folder / MANIFEST, MAX_ANSWER_BYTES), "The manifest").get("predicate")
    if not isinstance(told, dict) or not isinstance(told.get("owners"), list | None):
        raise Malformed("The manifest names owners, or none for all of them.")
    return told


def check_whole(told: Mapping[str, Any], log: Logged, head: Checkpoint) -> None:
    """Of an export of all owners and all times, that it has every entry that the checkpoint covers. Raises
    NotProven."""
    if any(told[each] is not None for each in ("owners", "from", "to")):
        return
    last = dict(sorted(log.proven - log.beyond))  # of each owner, whose entries are numbered from 1
    if (lost := head.size - sum(last.values())) > 0:
        raise NotProven(
            f"{lost:,} entries that the checkpoint covers are missing or lost their receipts: an owner's, or the last"
            " of one's."
        )


def _scope(told: Mapping[str, Any]) -> str:
    owners, since, until = (told[each] for each in ("owners", "from", "to"))
    whose = "all owners" if owners is None else ", ".join(map(ascii, owners))
    return f"It is of {whose}, from {since or 'the first entry'} to {until or 'the last one'}."


def _check_export(
    options: argparse.Namespace, *trusted: Any
) -> list[str]:  # Any: as `open_checkpoint` has it
    folder, keys = Path(options.folder), trusted[0]
    if folder.is_file():
        raise Malformed(f"{folder} is a file: unpack it, and give the folder that was in it.")
    files = check_files(folder, keys)
    for path in (folder / "policies").glob("*"):
        if hashlib.sha256(_read(path, MAX_ANSWER_BYTES)).hexdigest() != path.stem:
            raise NotProven(f"{path.name!a} is not the policy that its name says.")
    log = check_chains(folder)
    check_erasures(folder, log)
    count, shortened = check_decisions(folder, keys, log)
    told = _told_of(folder)
    lines = [
        f"It holds: {files:,} files are as the manifest says, and {count:,} decisions as the log commits to them.",
        _scope(told),
    ]
    if shortened:
        lines.append(
            f"{shortened:,} of them lost words by an erasure: what they showed of something that is erased is gone,"
            " and the log commits to what is left."
        )
    if erased := len(log.decided) - count:
        lines.append(
            f"{erased:,} more were erased: the log still commits to them, and what they said is gone."
        )
    if not keys:
        none = "NO KEY was given, so no signature and no receipt was checked: anybody could have made this."
        return [*lines, none]
    head, seen = None, dict[str, int]()
    if (folder / "checkpoint").is_file():
        head, seen = open_checkpoint(_read(folder / "checkpoint", MAX_NOTE_BYTES), *trusted)
    if missing := check_receipts(folder, log, head, *trusted):
        lines.append(f"No receipt of {missing:,} decisions: {_NOT_YET}")
    if uncovered := len(log.uncovered()):
        lines.append(f"Not proven are the last {uncovered:,} entries of the log: {_NOT_YET}")
    if head is not None:
        check_whole(told, log, head)
        lines.append(f"The log {head.origin} had {head.size:,} entries. Keep its checkpoint.")
        lines.append(_witnessed(seen, *trusted))
    return lines


# --- The command


def _json(data: bytes, what: str) -> Any:  # Any: JSON
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise Malformed(f"{what} is not JSON.") from None


def _read(path: str | Path, limit: int) -> bytes:
    with Path(path).open("rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise Malformed(f"{path} has more than {limit:,} bytes, which none of these has.")
    return data


def parse_keys(given: Iterable[str], kind: int) -> list[Key]:
    """Keys of one kind, or files that hold one a line, also as `vouchgate log keys` shows them. Raises Malformed or
    OSError."""
    texts = [
        each if "+" in each else _read(each, MAX_NOTE_BYTES).decode("utf-8", "replace") for each in given
    ]
    keys = [
        parse_key(_USE.sub("", line))
        for line in "\n".join(texts).split("\n")
        if line.strip() and not line.startswith("#")
    ]
    if any(key.kind != kind for key in keys):
        raise Malformed("The key of a log was given for that of a witness, or the other way round.")
    return keys


def read_tile(folder: Path, level: int, number: int, width: int) -> bytes:
    """A tile of a mirror; a longer one serves for a shorter. Raises Malformed where there is none."""
    full = folder / tile_path(level, number)
    parts = {
        int(each.name): each for each in full.with_name(f"{full.name}.p").glob("*") if each.name.isdecimal()
    }
    for path in (full, *(parts[each] for each in sorted(parts) if each >= width)):
        if path.is_file():
            return _read(path, TILE_HASHES * HASH_BYTES)
    raise Malformed(f"The tile {tile_path(level, number, width)} is not in {folder}.")


def _check_receipt(
    options: argparse.Namespace, *trusted: Any
) -> list[str]:  # Any: as `open_checkpoint` has it
    data = _read(options.receipt, MAX_RECEIPT_BYTES)
    if data.startswith(PROOF_HEADER.encode()):
        if not options.leaf:
            raise Malformed("A bare proof needs the entry that it is about: --leaf FILE.")
        leaf, proof, salt = _read(options.leaf, MAX_LEAF_BYTES), data, None
    else:
        receipt = _json(data, "The receipt")
        if isinstance(receipt, dict) and "promise" in receipt:
            check_promise(receipt["promise"], trusted[0])
            return [
                "It holds: the log promised this entry. A receipt for it is still to come: keep the answer until then."
            ]
        if not isinstance(receipt, dict) or {str} != {type(receipt.get(each)) for each in ("leaf", "proof")}:
            raise Malformed("A receipt is JSON with leaf, salt and proof.")
        leaf, proof, salt = (
            unbase64(receipt["leaf"], "The leaf"),
            receipt["proof"].encode(),
            receipt.get("salt"),
        )
    index, checkpoint, seen = check_proof(proof, leaf, *trusted)
    lines = [
        f"It holds: the entry is number {index:,} (from 0) of the {checkpoint.size:,} in the log {checkpoint.origin}.",
        _witnessed(seen, *trusted),
        f"The entry: {ascii(leaf[:2_000].decode('utf-8', 'replace'))[1:-1]}",
    ]
    if options.answer:
        if not isinstance(salt, str) or not re.fullmatch(r"[0-9a-f]{32}", salt):
            raise Malformed(
                "The receipt has no salt, so no answer fits it: the text was erased, or not all of it is shown to you."
            )
        check_answer(leaf, bytes.fromhex(salt), _read(options.answer, MAX_ANSWER_BYTES), trusted[0])
        lines.append("The answer is the one that was logged.")
    return lines


def _check_growth(
    options: argparse.Namespace, *trusted: Any
) -> list[str]:  # Any: as `open_checkpoint` has it
    old, _ = open_checkpoint(_read(options.old, MAX_NOTE_BYTES), trusted[0])
    new, seen = open_checkpoint(_read(options.new, MAX_NOTE_BYTES), *trusted)
    both = "Keep both files: the log's key signed both, so together they prove it."
    if old.origin != new.origin:
        raise NotProven("These are checkpoints of two logs.")
    if old.size > new.size:
        raise NotProven(f"The log was rolled back from {old.size:,} entries to {new.size:,}. {both}")
    if old.size == new.size and old.root != new.root:
        raise NotProven(
            f"There are two logs of {new.size:,} entries that say different things: a split view. {both}"
        )
    get = hashes_of_tiles(lambda *tile: read_tile(Path(options.proof), *tile), new.size)
    if range_hash(get, 0, new.size) != new.root:
        raise NotProven(f"The tiles in {options.proof} are damaged, or not those of {options.new}.")
    if range_hash(get, 0, old.size) != old.root:
        raise NotProven(f"The log was rewritten: its first {old.size:,} entries are others now. {both}")
    check_consistency(old.size, new.size, old.root, new.root, consistency_proof(get, old.size, new.size))
    grown = f"kept its first {old.size:,} entries as they were, and has {new.size:,} now"
    return [f"It holds: the log {new.origin} {grown}.", _witnessed(seen, *trusted)]


def _witnessed(seen: dict[str, int], _: object, witnesses: Sequence[Key], needed: int) -> str:
    if not witnesses:
        return "You named no witnesses, so whether others are shown the same log is not checked."
    times = {name: datetime.fromtimestamp(min(at, 2**37), UTC) for name, at in seen.items()}
    who = "".join(f"\n  {name} at {at:%Y-%m-%d %H:%M:%S} UTC" for name, at in times.items())
    return (
        f"Cosigned by {len(seen)} of the {len(witnesses)} witnesses you named, and {needed} are needed.{who}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; its exit status: 0 it holds, 1 it does not, 2 it could not be read or was called wrongly."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    mode = given[0] if given[:1] in (["checkpoint"], ["export"]) else ""
    growth = "Checks offline that a later checkpoint of a log only added to an earlier one."
    export = "Checks offline everything in an export of a gate."
    told = f"Checks a receipt of a gate offline. There are also checkpoint: {growth} And export: {export}"
    parser = argparse.ArgumentParser(
        f"vouchgate-verify {mode}".strip(),
        description={"checkpoint": growth, "export": export}.get(mode, told),
        epilog="Exit status: 0 it holds, 1 it does not, 2 it could not be read.",
    )
    match mode:
        case "checkpoint":
            parser.add_argument("old", help="the checkpoint that you kept")
            parser.add_argument("new", help="a later one")
            parser.add_argument("--proof", required=True, help="folder with a mirror of the log's tiles")
        case "export":
            parser.add_argument("folder", help="the export, unpacked")
        case _:
            parser.add_argument("receipt", help="receipt.json, or a .tlog-proof with --leaf")
            parser.add_argument(
                "--answer", help="file with the gate's answer as received, which the receipt is for"
            )
            parser.add_argument("--leaf", help="file with the entry's bytes, for a bare .tlog-proof")
    parser.add_argument(
        "--key",
        action="append",
        default=[],
        required=mode != "export",
        help="the log's key, or a file of keys; repeat it",
    )
    parser.add_argument(
        "--witness", action="append", default=[], help="the same for each witness that you trust"
    )
    parser.add_argument("--need", type=int, help="how many of them must have cosigned; all, unless you say")
    options = parser.parse_args(given[bool(mode) :])
    try:
        witnesses = parse_keys(options.witness, COSIGNATURE)
        needed = len(witnesses) if options.need is None else options.need
        check = {"checkpoint": _check_growth, "export": _check_export}.get(mode, _check_receipt)
        print("\n".join(check(options, parse_keys(options.key, ED25519), witnesses, needed)))
    except (Malformed, OSError, RuntimeError) as error:
        print(f"It cannot be checked. {error}", file=sys.stderr)
        return 2
    except NotProven as error:
        print(f"It does NOT hold. {error}", file=sys.stderr)
        return 1
    return 0


def run() -> NoReturn:
    """Entry point of the `vouchgate-verify` program."""
    sys.exit(main())


if __name__ == "__main__":
    run()
