"""Processes that read pages, forked from the program that wants one: an interpreter that starts for it loads for a
second what is loaded already."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from vouchgate.ingest.sources.web import extractor, page_worker
from vouchgate.ingest.sources.web.markup import read_html


def share_page_readers() -> None:
    """From now on the programs that are forked from this process have pages read by forks of their own. What reads a
    page is loaded, and used once. An interpreter starts for it where tests read pages themselves, and in `demo`."""
    read_html(
        b"<title>t</title><p>words</p>", url="https://a.example/", content_type="", now=datetime.now(UTC)
    )
    starting: Any = SimpleNamespace(Popen=_Reader, PIPE=subprocess.PIPE)
    extractor.subprocess = starting  # type: ignore[attr-defined]


class _Reader:
    """What the product uses of `subprocess.Popen`."""

    def __init__(self, command: Sequence[str], *, stdin: int, stdout: int, env: Mapping[str, str]) -> None:
        asked, ours = os.pipe()
        theirs, answered = os.pipe()
        self._pid = os.fork()
        if not self._pid:
            _read(command[command.index("-m") + 1 :], (asked, answered), env)
        os.close(asked)
        os.close(answered)
        self.stdin, self.stdout = os.fdopen(ours, "wb"), os.fdopen(theirs, "rb")
        self._ended = False

    def kill(self) -> None:
        """At once; harmless when it has ended."""
        if not self._ended:
            os.kill(self._pid, signal.SIGKILL)

    def wait(self) -> None:
        """Until it has ended."""
        if not self._ended:
            os.waitpid(self._pid, 0)
            self._ended = True


def _read(arguments: Sequence[str], streams: tuple[int, int], environment: Mapping[str, str]) -> None:
    """All that the new process does."""
    try:
        gc.freeze()  # what else was open is another's to close
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN if number is signal.SIGPIPE else signal.SIG_DFL)
        for place, stream in enumerate(streams):
            os.dup2(stream, place)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        os.environ.clear()
        os.environ.update(environment)
        time.tzset()
        former = sys.stdin, sys.stdout  # which would close what they read and write if nobody kept them
        sys.stdin, sys.stdout = os.fdopen(0, encoding="utf-8"), os.fdopen(1, "w", encoding="utf-8")
        name, memory, seconds = arguments
        # The bound is on what pages take: what this process has of those it was forked from comes on top.
        here = int(Path("/proc/self/statm").read_text("ascii").split()[0]) * os.sysconf("SC_PAGE_SIZE")
        sys.argv = [name, str(int(memory) + here), seconds]
        page_worker.main()
        del former
    finally:
        os._exit(0)
