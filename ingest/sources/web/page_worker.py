"""The program of a process that reads pages for `ingest.sources.web.extractor`, one after another.

It is started with few environment variables and talks through its standard input and output only: a line of JSON and
the bytes of a page in, a line of JSON out. It ends when its input ends, so it cannot outlive who started it; and a page
that keeps it busy for longer than its time of the processor ends it, also inside a library that hears nothing.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from vouchgate.ingest.sources.web.markup import read_html, read_xml
from vouchgate.ingest.sources.web.page import ContentKind, Page

if sys.platform != "win32":  # without these limits the time limit of the parent is what holds
    import resource

_LINE = 100_000  # bytes; more than any request line of the parent


def main() -> None:
    """Answers requests until the input ends. Arguments: bytes of memory, seconds of the processor for a page."""
    memory, seconds = int(sys.argv[1]), int(sys.argv[2])
    logging.disable(logging.CRITICAL)  # the libraries write a line for every page they find odd
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then closes the input
    # What is loaded for the first page is loaded now, before the page has its time.
    read_html(
        b"<title>t</title><p>words</p>", url="https://a.example/", content_type="", now=datetime.now(UTC)
    )
    _confine(memory)
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    _send(sink, {"page": None, "failed": "", "last": False})  # ready
    while line := source.readline(_LINE):
        request = json.loads(line)
        body = source.read(request["length"])
        _allow(seconds)
        page, failed = None, ""
        try:
            page = _read(request, body)
        except Exception as error:  # noqa: BLE001  (whatever a page does to the libraries costs only itself)
            failed = type(error).__name__
        last = failed == "MemoryError" or _is_swollen(memory)
        _send(sink, {"page": page and _as_json(page), "failed": failed, "last": last})
        if last:
            return


def _read(request: dict[str, Any], body: bytes) -> Page:
    if request["kind"] == ContentKind.XML:
        return read_xml(body, content_type=request["content_type"])
    now = datetime.fromisoformat(request["now"])
    return read_html(body, url=request["url"], content_type=request["content_type"], now=now)


def _as_json(page: Page) -> dict[str, Any]:
    dates = {"dated": page.dated, "revised": page.revised}
    return {**asdict(page), **{name: date and date.isoformat() for name, date in dates.items()}}


def _send(sink: BinaryIO, answer: dict[str, Any]) -> None:
    sink.write(json.dumps(answer).encode() + b"\n")
    sink.flush()


def _confine(memory: int) -> None:
    """Bounds that hold for the whole life of the process."""
    if sys.platform == "win32":
        return
    os.nice(5)  # whoever answers requests goes first
    # A limit that was lower already may not be raised, and holds; macOS knows none for memory.
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _allow(seconds: int) -> None:
    """Processor time for one page from now on; SIGXCPU ends the process after that."""
    if sys.platform == "win32":
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + seconds + 1, hard))


def _is_swollen(memory: int) -> bool:
    """A huge page was read: what it took is not all given back, so a new process is better."""
    return _peak() > memory // 2


def _peak() -> int:
    """The most bytes of memory this program has held; 0 where that is not known."""
    with suppress(OSError):  # where there is no /proc
        for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    if sys.platform == "win32":
        return 0
    # Only where it must be: on Linux it also counts what the process held before it became this program, as a copy
    # of the service, so that behind a service of some size every process would end after its first page.
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:  # who asked is gone, killed: nobody is left to tell
        os._exit(0)  # at once, for the interpreter's own end would complain that it cannot flush
