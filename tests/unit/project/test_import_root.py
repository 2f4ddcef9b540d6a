"""One name is installed, and the folders at the top have no other (ADR-0028)."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FOLDERS = ("ingest", "storage", "review")


def sources() -> list[Path]:
    """Every Python file of the project, each once."""
    tops = (*FOLDERS, "vouchgate", "tests", "bench")
    walked = (step for top in tops for step in os.walk(ROOT / top))
    return [Path(folder) / name for folder, _, names in walked for name in names if name.endswith(".py")]


def run(program: str, cwd: Path, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Runs a program in a directory, with `path` before all that is installed."""
    env = {**os.environ, "PYTHONPATH": str(path)} if path else None
    return subprocess.run(
        [sys.executable, "-c", program], cwd=cwd, env=env, capture_output=True, text=True, check=False
    )


def test_nothing_is_imported_by_a_bare_name() -> None:
    for source in sources():
        for node in ast.walk(ast.parse(source.read_text("utf-8"))):
            named = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                named.append(node.module or "")
            assert not {each.split(".")[0] for each in named} & set(FOLDERS), (
                f"{source}:{getattr(node, 'lineno', 0)}"
            )


@pytest.mark.parametrize("name", FOLDERS)
def test_a_bare_name_is_refused(name: str) -> None:
    done = run(f"import {name}", ROOT)
    assert done.returncode == 1 and f"this package is called vouchgate.{name}" in done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this tree, unpacked as an installer would."""
    built = tmp_path_factory.mktemp("wheel")
    options = ["--no-deps", "--no-build-isolation", "--quiet", "--disable-pip-version-check"]
    source = built / "source"
    files = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in filter(
        None, files.stdout.decode().split("\0")
    ):  # a copy: a build leaves its own folders behind
        if (ROOT / name).exists() or (ROOT / name).is_symlink():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).symlink_to((ROOT / name).readlink()) if (ROOT / name).is_symlink() else (
                source / name
            ).write_bytes((ROOT / name).read_bytes())
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", *options, "-w", str(built), str(source)], check=True
    )
    (found,) = built.glob("vouchgate-*.whl")
    with zipfile.ZipFile(found) as archive:
        archive.extractall(built / "installed")
    return built / "installed"


def test_a_wheel_has_one_name_and_every_file(wheel: Path) -> None:
    assert sorted(each.name.partition("-")[0] for each in wheel.iterdir()) == ["vouchgate", "vouchgate"]
    inside = {
        str(each.relative_to(wheel / "vouchgate"))
        for each in (wheel / "vouchgate").rglob("*")
        if each.is_file()
    }
    walked = [(top, step) for top in (*FOLDERS, "vouchgate") for step in os.walk(ROOT / top)]
    ours = {
        str((Path(folder) / name).relative_to(ROOT if top != "vouchgate" else ROOT / top))
        for top, (folder, _, names) in walked
        for name in names
        if "__pycache__" not in folder
    }
    assert inside == ours


def test_it_works_beside_folders_of_the_same_names(wheel: Path, tmp_path: Path) -> None:
    """An agent's project has an `ingest` of its own, and uses the client, and a gate, from there."""
    for name in FOLDERS:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"OURS = {name!r}\n", "utf-8")
    program = (
        "import ingest, storage, review, vouchgate\n"
        "from vouchgate import Client\n"
        "from vouchgate.gate.gate import Gate\n"
        "from vouchgate.ingest.claims.types import Tier\n"
        "print(vouchgate.__file__, ingest.OURS, storage.OURS, review.OURS)\n"
        "print(Client.__name__, Gate.__name__, Tier.STORED.value)"
    )
    done = run(program, tmp_path, wheel)
    assert done.stderr == ""
    assert done.stdout.split() == [
        str(wheel / "vouchgate" / "__init__.py"), "ingest", "storage", "review", "Client", "Gate", "tier_1"
    ]  # fmt: skip
