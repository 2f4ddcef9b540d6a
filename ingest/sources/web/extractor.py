"""Reads pages in processes of their own, which are killed when a page takes too long.

HTML comes from whoever an agent chose to cite, and the libraries that read it can be kept busy for minutes, made to
take all memory, or crashed, by a page written for that. So such a page costs only itself, and a service that answers
other claims meanwhile does not wait. The processes get none of the service’s secrets.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import os
import subprocess
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from pydantic import ValidationError

from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.ingest.net.turns import Turns, asking
from vouchgate.ingest.sources.web.page import ContentKind, Page

SECONDS = 5.0  # for one page; the largest page that is fetched takes a second or two
# Bytes of address space of one process: starting takes 95 MB, the worst page that was found 200 more.
MEMORY = 512 * 1024 * 1024
WAITING = 128 * 1024 * 1024  # bytes of pages that wait or are read; more memory may not go into that

_START_SECONDS = 30.0  # loading the libraries takes half a second on an idle machine
_ANSWER = 4_000_000  # bytes; the text of a page is cut far below that
# What a process may need to run at all. Not the rest: it would hold the service's tokens.
_ENVIRONMENT = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "TMPDIR", "TEMP")

_log = logging.getLogger(__name__)


class NotRead(Exception):
    """A page was not read. `code`: `odd_answer` (it is the page's fault: it takes too long, too much memory, or breaks
    what reads it) or `timeout` (too many pages wait, or this service is ending)."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class Extractor:
    """Reads HTML and XML in at most `workers` processes, started when a page needs one; pages of one owner never have
    the last of them, nor more than half of what may wait. Works in any thread and event loop; `close` ends it all.
    `seconds` and `memory` are the bounds of one page."""

    def __init__(self, *, workers: int = 2, seconds: float = SECONDS, memory: int = MEMORY) -> None:
        self._seconds = seconds
        self._memory = memory
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="page")
        self._lock = threading.Lock()
        self._idle: deque[_Worker] = deque()
        self._busy: set[_Worker] = set()
        self._shares = max(1, workers - 1), workers
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, Turns] = WeakKeyDictionary()
        self._waiting: Counter[str] = Counter()  # bytes, by owner
        self._closed = False

    async def read(
        self, body: bytes, kind: ContentKind, *, url: str, content_type: str, now: datetime
    ) -> Page:
        """The page in `body`, found at `url`. Raises NotRead. A caller that is cancelled gives up its place; a page
        that is being read already is read to its end."""
        request = {"kind": kind, "url": url, "content_type": content_type, "now": now.isoformat()}
        owner_id, size = asking(), len(body)
        with self._lock:
            self._enter(owner_id, size, WAITING // 2)
            turns = self._turns.setdefault(asyncio.get_running_loop(), Turns(*self._shares))
        try:
            return await turns.run(owner_id, self._threads, lambda: self._read(request, body))
        except RuntimeError as error:
            if not self._closed:
                raise
            raise NotRead("timeout", "the service is ending") from error
        finally:
            self._leave(owner_id, size)

    def submit(
        self, body: bytes, kind: ContentKind, *, url: str, content_type: str, now: datetime
    ) -> Future[Page]:
        """The same for a thread, which waits for the result, and on nobody's behalf. Raises NotRead, as the future
        does."""
        request = {"kind": kind, "url": url, "content_type": content_type, "now": now.isoformat()}
        with self._lock:
            self._enter("", len(body), WAITING)
            job = self._threads.submit(self._read, request, body)
        job.add_done_callback(lambda _: self._leave("", len(body)))
        return job

    def close(self) -> None:
        """Kills every process and waits for their ends. What was being read is NotRead."""
        with self._lock:
            self._closed = True
            workers = [*self._idle, *self._busy]
            self._idle.clear()
        for worker in workers:
            worker.kill()
        self._threads.shutdown(wait=True)
        for worker in workers:
            worker.end()

    def _enter(self, owner_id: str, size: int, most: int) -> None:
        """Under the lock."""
        if self._closed:
            raise NotRead("timeout", "the service is ending")
        if self._waiting[owner_id] + size > most or self._waiting.total() + size > WAITING:
            raise NotRead("timeout", "too many other pages wait to be read")
        self._waiting[owner_id] += size

    def _leave(self, owner_id: str, size: int) -> None:
        with self._lock:
            self._waiting[owner_id] -= size
            if not self._waiting[owner_id]:
                del self._waiting[owner_id]

    def _read(self, request: dict[str, Any], body: bytes) -> Page:
        worker = self._worker()
        try:
            answer = worker.ask(request, body, self._seconds)
        except _Died as death:
            self._dismiss(worker)
            if self._closed:
                raise NotRead("timeout", "the service is ending") from None
            _log.info("a process that read a page was ended: %s", death)
            raise NotRead("odd_answer", str(death)) from None
        except BaseException:
            self._dismiss(worker)
            raise
        if answer.last or self._closed:
            self._dismiss(worker)
        else:
            with self._lock:
                self._busy.discard(worker)
                self._idle.append(worker)
        if answer.page is None:
            raise NotRead("odd_answer", f"it breaks what reads it ({answer.failed})")
        return answer.page

    def _worker(self) -> _Worker:
        """One that is idle, or a new one; there are never more than threads."""
        with self._lock:
            if self._closed:
                raise NotRead("timeout", "the service is ending")
            if self._idle:
                worker = self._idle.pop()
                self._busy.add(worker)
                return worker
            worker = _Worker(self._memory, math.ceil(self._seconds))  # under the lock, so that close sees it
            self._busy.add(worker)
        try:
            worker.wait_ready()
        except _Died as death:
            self._dismiss(worker)
            if not self._closed:
                _log.error("the process that reads pages cannot be started: %s", death)
            raise NotRead("timeout", "the process that reads pages did not start") from None
        return worker

    def _dismiss(self, worker: _Worker) -> None:
        with self._lock:
            self._busy.discard(worker)
        worker.kill()
        worker.end()


class _Answer(Frozen):
    """What a process says: that it is ready (both empty), a page, or the name of the exception it was."""

    page: Page | None
    failed: str
    last: bool  # it ends now


class _Died(Exception):
    """A process ended, or was killed, before it answered."""


class _Worker:
    """One process that runs `ingest.sources.web.page_worker`. Its calls block; `kill` may come from any thread."""

    def __init__(self, memory: int, seconds: int) -> None:
        path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
        environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-P",
                "-m",
                "vouchgate.ingest.sources.web.page_worker",
                str(memory),
                str(seconds),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**environment, "PYTHONPATH": path, "TZ": "UTC", "PYTHONUTF8": "1"},
        )
        assert self._process.stdin and self._process.stdout  # noqa: S101  (for the type checker: both are pipes)
        self._stdin, self._stdout = self._process.stdin, self._process.stdout

    def wait_ready(self) -> None:
        """Raises _Died."""
        self._exchange(b"", _START_SECONDS)

    def ask(self, request: dict[str, Any], body: bytes, seconds: float) -> _Answer:
        """Raises _Died."""
        line = json.dumps({**request, "length": len(body)}).encode() + b"\n"
        return self._exchange(line + body, seconds)

    def kill(self) -> None:
        """At once; harmless when it has ended."""
        self._process.kill()

    def end(self) -> None:
        """Waits for the end of a killed process and closes what is left of it."""
        self._process.wait()
        for pipe in (self._stdin, self._stdout):
            with suppress(OSError):  # of a request half sent, which nobody reads any more
                pipe.close()

    def _exchange(self, message: bytes, seconds: float) -> _Answer:
        limit = _Limit(self.kill, seconds)
        try:
            self._stdin.write(message)
            self._stdin.flush()
            line = self._stdout.readline(_ANSWER)
        except OSError:
            line = b""
        if limit.passed():
            raise _Died(f"it takes longer than {seconds:g} s")
        try:
            return _Answer.model_validate_json(line)
        except ValidationError:
            raise _Died("it ends the process that reads it") from None


class _Limit:
    """Calls `kill` after `seconds`, unless it is asked before whether they have passed: then never."""

    def __init__(self, kill: Callable[[], None], seconds: float) -> None:
        self._kill = kill
        self._lock = threading.Lock()
        self._asked = self._passed = False
        self._timer = threading.Timer(seconds, self._strike)
        self._timer.daemon = True
        self._timer.start()

    def passed(self) -> bool:
        with self._lock:
            self._asked = True
        self._timer.cancel()
        return self._passed

    def _strike(self) -> None:
        with self._lock:
            if not self._asked:
                self._passed = True
                self._kill()
