"""A folder to put on the PATH of scripts, with a `vouchgate` that is forked as those of `processes` are.

A hook of git, the script of a runner, or a client that speaks MCP over standard streams, starts `vouchgate` by its
name. What it starts here hands its arguments, directory, environment and streams to this process, which forks the
program, and ends with the same status; when what was started is ended, so is the program.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import wait
from pathlib import Path
from threading import Thread

from tests.running.processes import Program

_ASKING = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as asked:
    asked.connect({address!r})
    socket.send_fds(asked, [b"."], [0, 1, 2])
    with asked.makefile("rw") as said:
        print(json.dumps([{module!r}, sys.argv[1:], os.getcwd(), dict(os.environ)]), file=said, flush=True)
        sys.exit(int(said.readline()))
"""


@contextmanager
def forked_on_path(folder: Path, **others: str) -> Iterator[Path]:
    """Makes the folder, whose path is short (that of a socket may have 107 characters), and answers what is started
    from it until the end of the block: `vouchgate`, and the modules of `others` by these names."""
    folder.mkdir()
    address = str(folder / "socket")
    for name, module in {"vouchgate": "vouchgate.cli", **others}.items():
        program = folder / name
        program.write_text(_ASKING.format(python=sys.executable, address=address, module=module), "utf-8")
        program.chmod(0o755)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen()
        answering = Thread(target=_answer, args=(listening,))
        answering.start()
        try:
            yield folder
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            answering.join()


def _answer(listening: socket.socket) -> None:
    running = []
    while True:
        try:
            asking, _ = listening.accept()
        except OSError:
            break  # the block is over
        running.append(Thread(target=_run, args=(asking,)))
        running[-1].start()
    for each in running:
        each.join()


def _run(asking: socket.socket) -> None:
    """One program. A script that is told no status ends with one of its own."""
    with asking, suppress(ConnectionError), asking.makefile("rw") as said:
        _, streams, _, _ = socket.recv_fds(asking, 1, 3)
        try:
            module, arguments, directory, environment = json.loads(said.readline())
            program = Program(
                arguments,
                directory=Path(directory),
                environment=environment,
                streams=streams,
                module=module,
            )
        finally:
            for stream in streams:
                os.close(stream)
        try:
            wait([program.sentinel, asking])  # nothing more is asked: there is only an end to hear of
            if (status := program.poll()) is not None:
                print(status, file=said, flush=True)
        finally:
            program.kill()
