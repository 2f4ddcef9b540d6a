"""The product as it is installed: its wheel, what that asks for, and folders that hold so much and nothing more.

Nothing comes from the network. What a wheel asks for is in this environment already; a folder links to the parts of it
that one extra would bring, so that a program in that folder finds just these, their metadata too.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import Distribution, distribution
from importlib.util import cache_from_source
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
NAME = "vouchgate"
_LEFT_OUT = shutil.ignore_patterns(
    ".*", "*.egg-info", "__pycache__", "build", "tests", "bench", "clients", "docs"
)


def build_wheel(folder: Path) -> Path:
    """The wheel of this checkout, of which a copy is made first: setuptools leaves things where it builds."""
    shutil.copytree(ROOT, folder / "source", symlinks=True, ignore=_LEFT_OUT)
    options = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", str(folder)]
    built = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", *options, str(folder / "source")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    (wheel,) = folder.glob("*.whl")
    return wheel


def unpack(wheel: Path) -> Path:
    """What the wheel holds, in a folder beside it. Of a file that is as it is in this checkout, what has been compiled
    of it here is compiled there."""
    folder = wheel.parent / "unpacked"
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(folder)
    for file in (folder / NAME).rglob("*.py"):
        ours = ROOT / NAME / file.relative_to(folder / NAME)
        compiled = Path(cache_from_source(str(ours)))
        if compiled.exists() and ours.read_bytes() == file.read_bytes():
            shutil.copystat(ours, file)  # which says of what state it was compiled
            beside = Path(cache_from_source(str(file)))
            beside.parent.mkdir(exist_ok=True)
            shutil.copyfile(compiled, beside)
    return folder


def install(folder: Path, unpacked: Path, *extras: str) -> dict[str, Distribution]:
    """Fills a new folder with links to what a wheel holds, so that it is compiled once for all folders, and to all that
    it asks for with these extras, which is returned by name, the product itself included."""
    folder.mkdir()
    (metadata,) = unpacked.glob("*.dist-info")
    found: dict[str, Distribution] = {}
    _reach(NAME, extras, {NAME: Distribution.at(metadata)}, found)
    for entry in unpacked.iterdir():
        (folder / entry.name).symlink_to(entry)
    for name, reached in found.items():
        for named in _entries(reached) if name != NAME else ():
            if not (folder / named).exists():
                (folder / named).symlink_to(Path(str(reached.locate_file(named))))
    return found


def _reach(
    name: str, extras: Iterable[str], ours: Mapping[str, Distribution], found: dict[str, Distribution]
) -> None:
    """Adds a distribution and all that it asks for. Extras matter: one may be met twice, with others."""
    key = canonicalize_name(name)
    reached = found[key] = ours.get(key) or distribution(name)
    asked = set(extras)
    for line in reached.requires or ():
        wanted = Requirement(line)
        marker = wanted.marker
        if marker is not None and not any(marker.evaluate({"extra": extra}) for extra in (asked or {""})):
            continue
        if canonicalize_name(wanted.name) not in found or wanted.extras:
            _reach(wanted.name, wanted.extras, ours, found)


def _entries(reached: Distribution) -> set[str]:
    """The files and folders of a distribution that stand in site-packages itself."""
    first = {file.parts[0] for file in reached.files or ()}
    return {name for name in first if name not in ("..", "__pycache__") and not name.endswith(".pth")}


Ran = subprocess.CompletedProcess[str]


def python(folders: Sequence[str], *arguments: str, cwd: Path) -> Ran:
    """One run of an interpreter that finds what is in the folders, and of this environment nothing."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        [sys.executable, "-S", "-P", *arguments],
        env={**kept, "PYTHONPATH": os.pathsep.join(folders)},
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
