"""Whether the database takes writes: a full disk and a read-only file system are seen by whoever watches the service,
not only by those whose claims are refused."""

from __future__ import annotations

import time
from threading import Lock

from sqlalchemy import Connection, text

from vouchgate.storage.errors import StorageError, StoreBusy
from vouchgate.storage.writer import Writer

EVERY_SECONDS = 5.0  # a commit of anything within these is proof enough
WAIT_SECONDS = 2.0  # for the writer's turn and for the disk
# One row for ever; that it is written is all that matters.
_WRITE = text(
    "INSERT INTO meta (name, value) VALUES ('write_probe', '') ON CONFLICT (name) DO UPDATE SET value = ''"
)


class WriteProbe:
    """Writes one row of table `meta` anew when nothing else was written lately. Safe to share between threads."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._lock = Lock()
        self._at = float("-inf")
        self._error: StorageError | None = None

    def look(self) -> None:
        """Raises StorageError when nothing could be written at the last look, which is at most EVERY_SECONDS ago,
        and nothing was since."""
        with self._lock:
            if self._writer.wrote_at > self._at:
                self._error = None
            if time.monotonic() - max(self._at, self._writer.wrote_at) >= EVERY_SECONDS:
                self._at, self._error = time.monotonic(), self._try()
            if self._error is not None:
                raise self._error

    def _try(self) -> StorageError | None:
        future = self._writer.run((), _write, always=True)
        try:
            future.result(WAIT_SECONDS)
        except TimeoutError:
            future.cancel()
            return StoreBusy(f"nothing could be written to the database for {WAIT_SECONDS:.0f} seconds")
        except StorageError as error:
            return error
        return None


def _write(connection: Connection) -> None:
    connection.execute(_WRITE)
