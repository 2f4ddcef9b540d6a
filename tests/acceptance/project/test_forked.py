"""How the tests themselves are run in several processes: what fails in one of them fails the run, however it ends."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
FILES = {
    "test_dies.py": "import os\ndef test_fine(): pass\ndef test_dies(): os._exit(0)\ndef test_left(): pass\n",
    "test_fails.py": "def test_fails(): assert 1 == 2\ndef test_after(): pass\n",
    "test_last.py": (
        "import pytest\n@pytest.fixture(scope='session')\ndef kept():\n    yield\n    assert 'kept' == 'left'\n"
        "def test_keeps(kept): pass\n"
    ),
    "test_late.py": "def test_late(tmp_path): (tmp_path / 'x').touch()\n",
}
# As `-p tests.running.forked` runs them, without what programs of the tests are forked from: here there are none.
RUN = """
import sys, pytest
from tests.running import forked
forked.start_ahead = lambda: None
sys.exit(pytest.main(sys.argv[1:], plugins=[forked]))
"""


def test_what_fails_in_a_process_of_tests_fails_the_run(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, "utf-8")
    given = ["--processes", "2", "--rootdir", ".", "-c", "/dev/null"]
    for left_out in ("cacheprovider", "schemathesis", "langsmith_plugin"):
        given += ["-p", f"no:{left_out}"]
    done = subprocess.run(
        [sys.executable, "-c", RUN, *given],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(r"3 failed, 4 passed in", done.stdout), done.stdout
    assert "the process of tests ended with 0 at test_dies.py::test_dies" in done.stdout
    assert "assert 1 == 2" in done.stdout
    assert "the process of tests ended with 1 at the end of the tests" in done.stdout
    assert "'kept' == 'left'" in done.stderr
