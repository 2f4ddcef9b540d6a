"""A file that is written durably: as it was, or as it is to be."""

from __future__ import annotations

import errno
import resource
import stat
from pathlib import Path

import pytest

from vouchgate.files import write_durably


def test_what_only_its_owner_may_read_stays_so(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text("{}")
    file.chmod(0o600)
    write_durably(file, b'{"token": "a"}')
    assert (file.read_bytes(), stat.S_IMODE(file.stat().st_mode)) == (b'{"token": "a"}', 0o600)


def test_a_full_disk_leaves_what_was_there_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text("{}")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20, before[1]))
        with pytest.raises(OSError) as full:
            write_durably(file, b"-" * 50)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert full.value.errno == errno.EFBIG
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("settings.json", "{}")]
