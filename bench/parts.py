"""Where the processor's time goes for a claim over HTTP: the gate under the load of `bench http`, in this process, with
the functions of each part timed by the clock of their thread. What a part calls of another counts there."""

from __future__ import annotations

import functools
import multiprocessing
import socket
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from random import Random
from typing import Any

from bench import http_load

REQUESTS = 3_000
# By thread and part: where the functions are, which are swapped for timed ones before anything is opened.
LOOP = {
    "body parsed and validated": (
        "vouchgate.api.base:JsonRequest.json",
        "vouchgate.wire:ClaimIn.model_validate",
    ),
    "token": ("vouchgate.api.claims:principal_of",),
    "credentials, claim built": ("vouchgate.gate.examiner:Examiner.build_claim",),
    "text checks": ("vouchgate.gate.examiner:inspect",),
    "findings": ("vouchgate.gate.examiner:examine",),
    "foreseen decision": ("vouchgate.ingest.pipeline:Examined.foreseeing",),
    "keys of repeats": ("vouchgate.gate.gate:Gate._keys",),
    "handed to the writer": ("vouchgate.gate.gate:Gate.send",),
    "promise": ("vouchgate.gate.signing:LogSigner.promise",),
    "answer": ("vouchgate.api.claims:respond",),
}
WRITER = {
    "begin": ("vouchgate.storage.engine:_take_write_lock",),
    "keys of similar memories": ("vouchgate.storage.claims.submit:prepared",),
    "owners, tokens, modes, indexes, read": (
        "vouchgate.storage.claims.submit:in_use",
        "vouchgate.storage.identity.owners:lock_owners",
        "vouchgate.storage.sql:PreparedSelect.rows",
    ),
    "repeats looked up, keys noted": (
        "vouchgate.storage.dedup.window:DedupIndexView.prepare",
        "vouchgate.storage.dedup.window:DedupIndexView.find_candidates",
        "vouchgate.storage.dedup.window:DedupIndexView.add",
    ),
    "contradictions looked up and compared": ("vouchgate.storage.dedup.contradicting:OfGroup.added",),
    "key of the echo": ("vouchgate.storage.claims.echoes:counting_key",),
    "echoes": (
        "vouchgate.storage.claims.echoes:Echoes.prepare",
        "vouchgate.storage.claims.echoes:Echoes.count",
        "vouchgate.storage.claims.echoes:Echoes.write",
    ),
    "decision": ("vouchgate.ingest.pipeline:Examined.decide", "vouchgate.ingest.pipeline:Examined.knowing"),
    "answer made": ("vouchgate.ingest.pipeline:Examined.answer",),
    "answer as JSON": ("vouchgate.ingest.claims.decision:ValidationResult.model_dump_json",),
    "rows noted, log entry": ("vouchgate.storage.claims.submit:_SubmissionGroup._note",),
    "rows written": ("vouchgate.storage.claims.submit:_SubmissionGroup.write",),
    "commit": ("vouchgate.storage.writer:Writer._transaction",),  # what is left of a transaction
    "index of similar memories, in batches": ("vouchgate.storage.dedup.similar:index_tail",),
    "log's tree": ("vouchgate.storage.log.tree:add", "vouchgate.storage.log.tree:put_checkpoint"),
    "callers woken": ("vouchgate.storage.writer:_tell",),
}


class _Clock:
    """The time of one thread by part, of which one is under way at a time."""

    def __init__(self) -> None:
        self.spent: defaultdict[str, float] = defaultdict(float)
        self._open: list[list[Any]] = []  # part, when it began, what others took of it

    def begin(self, part: str) -> None:
        self._open.append([part, time.thread_time(), 0.0])

    def end(self) -> None:
        part, began, inner = self._open.pop()
        took = time.thread_time() - began
        self.spent[part] += took - inner
        if self._open:
            self._open[-1][2] += took


_clocks: dict[str, _Clock] = {}


def _timed(part: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def timed(*given: Any, **named: Any) -> Any:
        clock = _clocks.setdefault(threading.current_thread().name, _Clock())
        clock.begin(part)
        try:
            return function(*given, **named)
        finally:
            clock.end()

    return timed


def _swap(place: str, part: str) -> None:
    """Puts the timed function wherever the plain one is known."""
    module, _, name = place.partition(":")
    __import__(module)
    owner: Any = sys.modules[module]
    *outer, last = name.split(".")
    for each in outer:
        owner = getattr(owner, each)
    plain = getattr(owner, last)
    if isinstance(vars(owner).get(last), staticmethod | classmethod) or not hasattr(plain, "__get__"):
        setattr(owner, last, staticmethod(_timed(part, plain)))
        return
    made = _timed(part, plain)
    setattr(owner, last, made)
    if not outer:
        for other in list(sys.modules.values()):
            if getattr(other, last, None) is plain:
                setattr(other, last, made)


def _client(port: int, token: str, count: int, done: Any) -> None:
    import asyncio

    asyncio.run(http_load._load(port, token, 300, Random(1)))
    asyncio.run(http_load._load(port, token, count, Random(2)))
    done.set()


def run() -> None:
    """Prints microseconds of the processor a claim, by thread and part."""
    from vouchgate.cli.serve import server_for
    from vouchgate.server.app import create_app
    from vouchgate.server.interpreter import tune_interpreter
    from vouchgate.service import open_service
    from vouchgate.settings import Settings

    for part, places in (LOOP | WRITER).items():
        for place in places:
            _swap(place, part)
    fork = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder, socket.socket() as listener:
        token = http_load.token_for(folder)
        settings = Settings(database_url=f"sqlite:///{folder}/gate.db", policy=http_load.unlimited(folder))
        listener.bind(("127.0.0.1", 0))
        listener.listen(128)
        done = fork.Event()
        client = fork.Process(target=_client, args=(listener.getsockname()[1], token, REQUESTS, done))
        client.start()
        with open_service(settings) as service:
            app = create_app(service)
            tune_interpreter()
            _clocks.clear()
            server = server_for(app, lambda: None, service.sources.stop_reading)

            def stop() -> None:
                done.wait()
                server.should_exit = True

            threading.Thread(target=stop).start()
            began, whole = time.thread_time(), time.process_time()
            server.run(sockets=[listener])
            loop, whole = time.thread_time() - began, time.process_time() - whole
        client.join()
    claims = REQUESTS + 300
    print(f"\nPOST /v1/claims: microseconds of the processor a claim, {claims} claims")
    main = _clocks.pop("MainThread").spent
    main["HTTP, framework, event loop"] = loop - sum(main.values())
    writer = _clocks.pop("vouchgate-writer").spent
    rest = whole - sum(main.values()) - sum(writer.values())
    for name, spent in (("event loop", main), ("writer", writer), ("others", {"all": rest})):
        print(f"  {name} {sum(spent.values()) * 1e6 / claims:.0f}")
        for part, seconds in sorted(spent.items(), key=lambda each: -each[1]):
            print(f"    {seconds * 1e6 / claims:6.0f}  {part}")
