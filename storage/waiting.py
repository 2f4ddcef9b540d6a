"""Waiting for PostgreSQL: for as long as a statement takes, and for no longer than the server is there."""

from __future__ import annotations

from time import monotonic
from typing import TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.rows import TupleRow

T = TypeVar("T")

SILENT_SECONDS = 5.0  # without a word before it is looked whether the server is there, and again


class PatientConnection(psycopg.Connection[TupleRow]):
    """A connection that is closed once its server takes no other one. A server that is frozen keeps its sockets open,
    and the kernel answers for it: who waits for it would wait for good, and a service that is told to stop with them.
    While the server takes connections, or says why not, a statement may take as long as it likes."""

    def wait(self, gen: PQGen[T], interval: float = 0.1, timeout: float | None = None) -> T:
        """As psycopg's, which calls it for whatever goes through the connection. Raises OperationalError."""
        return super().wait(self._watched(gen), interval, timeout)

    def _watched(self, gen: PQGen[T]) -> PQGen[T]:
        looked_at = monotonic()
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if ready:
                    looked_at = monotonic()
                elif monotonic() - looked_at >= SILENT_SECONDS:
                    self._look()
                    looked_at = monotonic()
                wanted = gen.send(ready)
        except StopIteration as end:
            result: T = end.value
            return result

    def _look(self) -> None:
        try:
            psycopg.connect(self.info.dsn, password=self.info.password or None).close()
        except psycopg.errors.ConnectionTimeout as error:
            self.pgconn.finish()
            raise psycopg.OperationalError("the server does not answer any more") from error
        except psycopg.OperationalError:
            return  # it answers, if only that it has too many connections
