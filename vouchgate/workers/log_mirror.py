"""The log's published checkpoint and its tiles in a folder, for whoever wants to check the log without asking the gate.

The folder is laid out as the addresses below `/log` (tlog-tiles). Tiles are only ever added, and the checkpoint last; a
folder that holds another log, or another version of this one, is never written to. In a git repository each new
checkpoint is a commit.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import shutil
import subprocess
from pathlib import Path

from vouchgate.files import write_durably
from vouchgate.ingest.transparency.verifier import (
    HASH_BYTES,
    TILE_HASHES,
    Checkpoint,
    NotProven,
    parse_checkpoint,
    parse_note,
    tile_path,
    tile_width,
)
from vouchgate.storage.log import tree
from vouchgate.storage.store import Store

log = logging.getLogger(__name__)

POLL_SECONDS = 5.0
GIT_SECONDS = 60.0


class MirrorError(Exception):
    """The folder cannot be the mirror of this log; the message is a sentence."""


class LogMirror:
    """Writes what was published to `folder`. Any number of processes may have the same."""

    def __init__(self, store: Store, folder: Path) -> None:
        self._store, self._folder = store, folder
        self._done = -1  # the size that this process saw in the folder last
        self._trouble: tuple[str, ...] = ()

    def problems(self) -> tuple[str, ...]:
        """Why the mirror is not written, if that is so."""
        return self._trouble

    async def step(self) -> float:
        """Brings the mirror up to date; in how many seconds to look again."""
        try:
            await asyncio.to_thread(self.write)
            self._trouble = ()
        except (MirrorError, OSError, subprocess.SubprocessError) as error:
            if not self._trouble:
                log.error("the mirror of the log in %s is not written: %s", self._folder, error)
            self._trouble = (f"The mirror of the log is not written: {error}",)
        return POLL_SECONDS

    def write(self) -> None:
        """Adds what is new. Raises MirrorError, OSError or SubprocessError."""
        last = self._last()
        if last is None or last[0] == self._done:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            size, note = (
                self._last() or last
            )  # again, as another process may have written a later one meanwhile
            kept = self._kept(parse_checkpoint(parse_note(note.encode()).text))
            if kept < size:
                self._add(kept, size)
                write_durably(self._folder / "checkpoint", note.encode())
            self._commit(size)  # also what an earlier try had to leave
        self._done = size

    def _last(self) -> tuple[int, str] | None:
        with self._store.read() as connection:
            return tree.last_checkpoint(connection, published=True)

    def _kept(self, new: Checkpoint) -> int:
        """The size of the log that the folder holds, which is an earlier version of this one."""
        file = self._folder / "checkpoint"
        if not file.exists():
            if others := [
                each.name for each in self._folder.iterdir() if each.name not in (".git", ".lock", "tile")
            ]:
                raise MirrorError(
                    f"the folder holds other things ({others[0]}) and no checkpoint; give an empty one."
                )
            return 0
        try:
            kept = parse_checkpoint(parse_note(file.read_bytes()).text)
        except NotProven as error:
            raise MirrorError(f"its checkpoint cannot be read: {error}") from error
        try:
            with self._store.read() as connection:
                same = kept.size <= new.size and tree.root_at(connection, kept.size) == kept.root
        except tree.TreeBroken:
            same = False
        if kept.origin != new.origin or not same:
            raise MirrorError(
                f"IT HOLDS ANOTHER LOG. Its checkpoint of {kept.size} entries of {kept.origin!a} is not of this log: "
                "one of the two was rewritten, or put back from a backup. Keep the folder, and compare."
            )
        return kept.size

    def _add(self, kept: int, size: int) -> None:
        for level in range((size.bit_length() + 7) // 8):
            for number in range((kept >> 8 * level) // TILE_HASHES, -(-(size >> 8 * level) // TILE_HASHES)):
                width = tile_width(level, number, size)
                path = self._folder / tile_path(level, number, width)
                with self._store.read() as connection:
                    hashes = tree.tile(connection, level, number)[: width * HASH_BYTES]
                if path.exists() and path.read_bytes() != hashes:
                    raise MirrorError(
                        f"IT HOLDS ANOTHER LOG: {path.relative_to(self._folder)} has other hashes."
                    )
                path.parent.mkdir(parents=True, exist_ok=True)
                write_durably(path, hashes)
                if width == TILE_HASHES:  # which is all that the partial ones said
                    shutil.rmtree(path.with_name(f"{path.name}.p"), ignore_errors=True)

    def _commit(self, size: int) -> None:
        if not (self._folder / ".git").exists():
            return
        who = ("-c", "user.name=vouchgate", "-c", "user.email=vouchgate@localhost")
        self._git("add", "--", "checkpoint", "tile")
        if self._git("status", "--porcelain", "--", "checkpoint", "tile"):
            self._git(*who, "commit", "-qm", f"{size} entries")

    def _git(self, *arguments: str) -> bytes:
        """What git answers. Raises MirrorError with its own words."""
        command = ["git", "-C", str(self._folder), *arguments]
        done = subprocess.run(command, check=False, capture_output=True, timeout=GIT_SECONDS)
        if done.returncode:
            said = " ".join((done.stderr or done.stdout).decode(errors="replace").split())
            raise MirrorError(f"git cannot commit the checkpoint: {said[:300] or done.returncode}")
        return done.stdout
