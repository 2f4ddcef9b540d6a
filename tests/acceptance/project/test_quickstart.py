"""docs/quickstart.md, run as it stands: every block, in order, in one folder; what is printed is what it says."""

from __future__ import annotations

import contextlib
import io
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from mcp.client.stdio import stdio_client

from tests.acceptance.cli_program import clean_environment
from tests.stores.gating import GRAPH_SERVER, NODE
from tests.stores.offline_mem0 import offline_config

PAGE = (Path(__file__).parents[3] / "docs" / "quickstart.md").read_text("utf-8")
BLOCKS = re.findall(
    r"^```(sh|python)\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", PAGE, re.MULTILINE | re.DOTALL
)
# In a block of the shell, where it is and what it has set, for the blocks that follow.
LEAVE = "\npwd > '{0}/folder'\nenv --null > '{0}/environment'\n"


def free_port() -> int:
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        port: int = asked.getsockname()[1]
        return port


@dataclass
class Reader:
    """Somebody who does what the page says, in one shell and one Python."""

    place: Path
    port: int
    folder: Path
    environment: dict[str, str]
    names: dict[str, object] = field(default_factory=dict)
    shells: list[subprocess.Popen[str]] = field(default_factory=list)

    def do(self, language: str, block: str) -> str:
        """What a block prints. The port that the page names may be taken here: another stands for it."""
        block = block.replace(":8080", f":{self.port}")
        return self._python(block) if language == "python" else self._shell(block)

    def _shell(self, block: str) -> str:
        said, errors = self.place / "said", self.place / "errors"
        with said.open("w") as out, errors.open("w") as err:
            shell = subprocess.Popen(
                ["bash", "-euo", "pipefail", "-c", block + LEAVE.format(self.place)],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
                text=True,
            )
        self.shells.append(shell)
        assert shell.wait(120) == 0, errors.read_text()
        self.folder = Path((self.place / "folder").read_text().strip())
        left = (self.place / "environment").read_text().split("\0")
        self.environment = dict(one.split("=", 1) for one in left if one)
        return said.read_text()

    def _python(self, block: str) -> str:
        said = io.StringIO()
        kept = dict(os.environ)
        try:
            os.environ.clear()
            os.environ.update(self.environment)
            with contextlib.chdir(self.folder), contextlib.redirect_stdout(said):
                exec(compile(block, "docs/quickstart.md", "exec"), self.names)  # noqa: S102  (that is the test)
        finally:
            os.environ.clear()
            os.environ.update(kept)
        return said.getvalue()

    def end(self) -> None:
        """Ends what shells have left running."""
        for shell in self.shells:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGTERM)


@pytest.fixture
def reader(tmp_path: Path, programs: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    """One in an empty folder, whose npx finds the server that is installed here."""
    # Where servers complain: what stood there when the module was loaded, which here was some test's.
    monkeypatch.setattr(vars(stdio_client)["__wrapped__"], "__defaults__", (sys.__stderr__,))
    tools, start = tmp_path / "bin", tmp_path / "start"
    tools.mkdir()
    start.mkdir()
    npx = tools / "npx"
    npx.write_text(
        f'#!/bin/sh\n[ "$*" = "-y @modelcontextprotocol/server-memory" ] && exec {NODE} {GRAPH_SERVER}\n'
    )
    npx.chmod(0o755)
    port = free_port()
    given = {"PATH": f"{programs}:{tools}:{os.environ['PATH']}", "VOUCHGATE_PORT": str(port)}
    environment = clean_environment(
        {**given, "VOUCHGATE_URL": f"http://127.0.0.1:{port}", "HOME": str(start)}
    )
    made = Reader(tmp_path, port, start, environment, {"config": offline_config(tmp_path / "mem0")})
    try:
        yield made
    finally:
        made.end()


def test_the_page_does_what_it_says(reader: Reader) -> None:
    assert {language for language, _, _ in BLOCKS} == {"sh", "python"}
    assert len(BLOCKS) == len(re.findall("^```(?:sh|python)$", PAGE, re.MULTILINE)) > 10
    for language, block, expected in BLOCKS:
        assert reader.do(language, block) == expected, block
