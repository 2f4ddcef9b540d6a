"""What a start loads, and what it leaves until somebody needs it."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from vouchgate.server.processes import LATE


def test_what_is_needed_later_is_not_loaded_at_the_start(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from vouchgate.cli import app, serve\n"
        "from vouchgate.service import open_service\n"
        "from vouchgate.settings import Settings\n"
        f"with open_service(Settings(database_url='sqlite:///{tmp_path}/a.db')) as service:\n"
        "    serve.create_app(service)\n"
        f"    loaded = {{'httpx', 'rich', *{LATE!r}}} & set(sys.modules)\n"
        "    assert not loaded, loaded\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_a_start_that_is_interrupted_says_nothing() -> None:
    program = (
        "import sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'vouchgate.cli.app':\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "from vouchgate.cli import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False, timeout=60, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


@pytest.mark.parametrize("name", LATE)
def test_processes_that_are_forked_share_it(name: str) -> None:
    assert import_module(name)
