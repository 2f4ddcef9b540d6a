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


@pytest.mark.parametrize("name", LATE)
def test_processes_that_are_forked_share_it(name: str) -> None:
    assert import_module(name)
