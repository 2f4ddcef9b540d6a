"""A witness: it cosigns checkpoints of logs that only ever grew since the last one it saw (c2sp.org/tlog-witness).

It runs on an auditor's own machine, in a folder: `key`, made at the first start, and `state.json`, the last checkpoint
of each log with its cosignature. That is on disk before anybody gets the cosignature, so a witness that is killed at
any moment never signs two versions of a log. The folder must never be put back from a backup.
"""

from __future__ import annotations

import fcntl
import json
import logging
import time
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import IO

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from vouchgate.files import write_durably
from vouchgate.ingest.transparency.note import (
    SigningKey,
    make_signing_key,
    parse_signing_key,
    write_signing_key,
)
from vouchgate.ingest.transparency.verifier import (
    COSIGNATURE,
    EMPTY_ROOT,
    MAX_PROOF_BYTES,
    MAX_PROOF_HASHES,
    Checkpoint,
    Key,
    Malformed,
    NotProven,
    check_consistency,
    open_checkpoint,
    parse_checkpoint,
    parse_note,
    parse_number,
    unbase64,
)

log = logging.getLogger(__name__)

MOST_SPLITS = 20  # that are kept: one proves it, and whoever has the log's key can make any number


class WitnessError(Exception):
    """The witness cannot start; the message is one sentence."""


class Witness:
    """What was seen of some logs, and the key to say so. One process has a folder at a time."""

    def __init__(
        self, folder: Path, log_keys: Sequence[Key], name: str, clock: Callable[[], float] = time.time
    ) -> None:
        """Makes the folder and the key at the first start. Raises WitnessError, Malformed or OSError."""
        folder.mkdir(0o700, parents=True, exist_ok=True)
        self._folder, self._keys, self._clock, self._lock = folder, log_keys, clock, Lock()
        self._held: IO[bytes] = (folder / "lock").open("wb")
        try:
            fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._signer = self._open(folder / "key", folder / "state.json", name)
        except BaseException as error:
            self._held.close()
            if isinstance(error, BlockingIOError):
                raise WitnessError(f"another witness has the folder {folder}") from None
            raise

    def _open(self, key: Path, state: Path, name: str) -> SigningKey:
        if not key.exists() and not state.exists():
            self._save({})  # before the key: a key without what it signed could sign another version of it
        try:
            self._seen: dict[str, str] = json.loads(state.read_bytes())
            for note in self._seen.values():
                parse_checkpoint(parse_note(note.encode()).text)
        except (OSError, ValueError, AttributeError, NotProven) as error:
            raise WitnessError(
                f"{state} cannot be read, so this key must not sign: begin in a new folder"
            ) from error
        if not key.exists():
            if self._seen:
                raise WitnessError(f"{key} is gone: begin in a new folder, and tell the logs of the new key")
            write_signing_key(key, make_signing_key(name, COSIGNATURE))
        return parse_signing_key(key.read_text())

    def close(self) -> None:
        """Lets others have the folder."""
        self._held.close()

    @property
    def key(self) -> Key:
        """What its cosignatures are checked with."""
        return self._signer.key

    def checkpoint(self, origin: str) -> str | None:
        """The last checkpoint that it cosigned of this log; without a name, of the only one there is."""
        return self._seen.get(origin or (next(iter(self._seen)) if len(self._seen) == 1 else ""))

    def add_checkpoint(self, body: bytes) -> Response:
        """The answer to a log that shows a new checkpoint: a cosignature, or why not."""
        try:
            old_size, proof, data = parse_request(body)
            origin = parse_checkpoint(parse_note(data).text).origin
        except Malformed as error:
            return PlainTextResponse(f"{error}\n", 400)
        if all(key.name != origin for key in self._keys):
            return PlainTextResponse("This witness does not know the log.\n", 404)
        try:
            new, _ = open_checkpoint(data, self._keys)
        except NotProven as error:
            return PlainTextResponse(f"{error}\n", 403)
        if old_size > new.size:
            return PlainTextResponse("The old size is larger than the new one.\n", 400)
        with self._lock:
            return self._cosign(old_size, proof, new, data)

    def _cosign(self, old_size: int, proof: Sequence[bytes], new: Checkpoint, data: bytes) -> Response:
        kept = self._seen.get(new.origin)
        seen = (
            parse_checkpoint(parse_note(kept.encode()).text)
            if kept
            else Checkpoint(new.origin, 0, EMPTY_ROOT)
        )
        split = new.size == seen.size and new.root != seen.root
        if split:  # both are signed by the log: together they prove it
            if len([*self._folder.glob("split-*")]) < MOST_SPLITS:
                (self._folder / f"split-{sha256(data).hexdigest()[:16]}").write_bytes(data)
            log.error(
                "SPLIT VIEW of %s: it signed two versions of its first %d entries", new.origin, new.size
            )
        if split or old_size != seen.size:
            return Response(f"{seen.size}\n", 409, media_type="text/x.tlog.size")
        try:
            check_consistency(seen.size, new.size, seen.root, new.root, proof)
        except NotProven as error:
            log.warning("%s did not show that it grew from %d to %d", new.origin, seen.size, new.size)
            return PlainTextResponse(f"{error}\n", 422)
        note = parse_note(data)
        line = self._signer.sign_note(note.text, int(self._clock()))
        signed = "".join(each.line for each in note.signatures if each.name == new.origin)
        self._save(self._seen | {new.origin: f"{note.text}\n{signed}{line}"})
        return PlainTextResponse(line)

    def _save(self, seen: dict[str, str]) -> None:
        write_durably(self._folder / "state.json", json.dumps(seen).encode())
        self._seen = seen


def parse_request(body: bytes) -> tuple[int, list[bytes], bytes]:
    """The size that the log thinks was seen last, the proof of consistency from there, and the new checkpoint, which is
    not checked. Raises Malformed."""
    head, _, checkpoint = body.partition(b"\n\n")
    first, *lines = head.decode("ascii", "replace").split("\n")
    if not first.startswith("old ") or len(lines) > MAX_PROOF_HASHES:
        raise Malformed(
            f"A request begins with the old size, and at most {MAX_PROOF_HASHES} hashes follow it."
        )
    proof = [unbase64(line, "A hash") for line in lines]
    return parse_number(first.removeprefix("old "), "The old size"), proof, checkpoint


def create_witness(witness: Witness) -> Starlette:
    """Its two addresses: `POST /add-checkpoint`, and `GET /checkpoint?origin=` for whoever compares."""

    async def add(request: Request) -> Response:
        body = b""
        try:
            async for part in request.stream():
                body += part
                if len(body) > MAX_PROOF_BYTES:
                    return PlainTextResponse("This is too large for a checkpoint.\n", 413)
        except ClientDisconnect:
            return Response(status_code=400)
        return await run_in_threadpool(witness.add_checkpoint, body)

    async def show(request: Request) -> Response:
        found = witness.checkpoint(request.query_params.get("origin", ""))
        return PlainTextResponse(found or "Nothing was seen of this log.\n", 200 if found else 404)

    return Starlette(routes=[Route("/add-checkpoint", add, methods=["POST"]), Route("/checkpoint", show)])
