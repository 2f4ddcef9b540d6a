"""A folder to put on the PATH of scripts, with a `vouchgate` that is forked as those of `processes` are.

A hook of git, or the script of a runner, starts `vouchgate` by its name. What it starts here hands its arguments,
directory, environment and streams to this process, which forks the program, and ends with the same status.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread

from tests.running.processes import Program

SECONDS = 120
_ASKING = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as asked:
    asked.connect({address!r})
    socket.send_fds(asked, [b"."], [0, 1, 2])
    with asked.makefile("rw") as said:
        print(json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]), file=said, flush=True)
        sys.exit(int(said.readline()))
"""


@contextmanager
def forked_on_path(folder: Path) -> Iterator[Path]:
    """Makes the folder, whose path is short (that of a socket may have 107 characters), and answers what is started
    from it until the end of the block."""
    folder.mkdir()
    program, address = folder / "vouchgate", str(folder / "socket")
    program.write_text(_ASKING.format(python=sys.executable, address=address), "utf-8")
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
    """One program after another. A script that is told no status ends with one of its own."""
    while True:
        try:
            asking, _ = listening.accept()
        except OSError:
            return  # the block is over
        with asking, suppress(ConnectionError), asking.makefile("rw") as said:
            _, streams, _, _ = socket.recv_fds(asking, 1, 3)
            try:
                arguments, directory, environment = json.loads(said.readline())
                program = Program(
                    arguments, directory=Path(directory), environment=environment, streams=streams
                )
                try:
                    print(program.wait(SECONDS), file=said, flush=True)
                finally:
                    program.kill()
            finally:
                for stream in streams:
                    os.close(stream)
