"""What a base install brings and can do, and what is said when it is asked for more."""

from __future__ import annotations

import ast
import os
import re
import sys
import zipfile
from dataclasses import dataclass, field
from importlib.metadata import Distribution, packages_distributions
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from tests.integration.storage.test_earlier_database import EARLIER
from tests.running.installed import NAME, ROOT, Ran, build_wheel, install, python, unpack
from tests.unit.project.test_docs import COMMANDS
from vouchgate.extras import MODULES

MOST = 18  # distributions of a base install
OURS = ("ingest", "storage", "review", "vouchgate")
SAID = re.compile(
    r"vouchgate: vouchgate (\S+) needs the extra \"([a-z0-9-]+)\": pip install 'vouchgate\[\2\]'\n"
)

# What somebody who only calls a gate must not wait for.
HEAVY = (
    "alembic",
    "fastapi",
    "git",
    "lxml",
    "numpy",
    "sqlalchemy",
    "trafilatura",
    "typer",
    "uvicorn",
    "yaml",
)
CLIENT = f"""
import sys
from vouchgate import AsyncClient, Client, VouchgateError
heavy = set({HEAVY!r}) & set(sys.modules)
with Client("http://127.0.0.1:1", "none", retries=0) as client:
    try:
        client.save("The mill delivers flour on Mondays.")
    except VouchgateError as error:
        print(type(error).__name__, *heavy)
"""
LIBRARY = """
import sqlite3, sys
from fractions import Fraction
from vouchgate.ingest.checks import support
from vouchgate.ingest.checks.hedge import HedgeDetector
from vouchgate.ingest.citations.detection import detect_citations
from vouchgate.ingest.dedup.compare import compare
from vouchgate.ingest.pipeline import replay
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.claims.decision import ValidationResult
from vouchgate.ingest.claims.likeness import ItemKind, Neighbour

policy = load_policy()
text = "Maybe we could shard it, see ADR-007 and https://example.com/a."
print(*(match.text for match in HedgeDetector(policy.lexicon).detect(text)), sep="; ")
print(*(citation.value for citation in detect_citations(text)), sep="; ")
print(support.compare("The kiln is fired for 30 hours.", "The kiln is fired for 40 hours.").verdict.value)
earlier = Neighbour(kind=ItemKind.MEMORY, id="mem_1", content="The kiln is fired for 40 hours")
print(*compare("The kiln is fired for 30 hours", (earlier,), Fraction(1, 2), policy.values)[0].changed)
database = sqlite3.connect(":memory:")
database.executescript(open(sys.argv[1], encoding="utf-8").read())
policies = {digest: Policy.model_validate_json(text) for digest, text in
            database.execute("SELECT digest, document FROM policy")}
for (answer,) in database.execute("SELECT answer FROM decision").fetchall():
    stored = ValidationResult.model_validate_json(answer)
    used = policies[stored.policy_digest]
    print(stored.outcome.value, *replay(stored, used, HedgeDetector(used.lexicon)))
"""
# What a service that starts has no use for yet, or never; a page's text is taken out in processes of their own.
SERVICE = """
import sys
import vouchgate.cli.demo.run, vouchgate.cli.importing.run, vouchgate.cli.serve
print(*{"alembic", "lxml", "mako", "mcp", "numpy", "trafilatura"} & set(sys.modules))
import vouchgate.ingest.sources.web.page_worker
"""
EACH_COMMAND = """
import sys
from vouchgate.cli import main
for command in sys.argv[1:]:
    sys.argv = ["vouchgate", *command.split()]
    try:
        main()
    except SystemExit as ended:
        print(ended.code)
"""
BESIDE = """
import ingest, storage, review, vouchgate
from vouchgate import Client
from vouchgate.gate.gate import Gate
from vouchgate.ingest.claims.decision import Tier
print(vouchgate.__file__, ingest.OURS, storage.OURS, review.OURS)
print(Client.__name__, Gate.__name__, Tier.STORED.value)
"""


@dataclass
class Shelf:
    """The wheel, and folders that hold it with what some extras bring."""

    folder: Path
    wheel: Path
    unpacked: Path
    made: dict[tuple[str, ...], dict[str, Distribution]] = field(default_factory=dict)

    def brought(self, *extras: str) -> dict[str, Distribution]:
        """The distributions of the product with these extras, itself included."""
        if extras not in self.made:
            self.made[extras] = install(self._at(extras), self.unpacked, *extras)
        return self.made[extras]

    def _at(self, extras: tuple[str, ...]) -> Path:
        return self.folder / "-".join(("with", *extras))

    def run(self, extras: tuple[str, ...], *arguments: str, **more: Path) -> Ran:
        """One run of an interpreter that finds these extras and nothing else; `first` is looked through before them."""
        self.brought(*extras)
        first = [str(more["first"])] if "first" in more else []
        return python([*first, str(self._at(extras))], *arguments, cwd=self.folder)

    def command(self, extras: tuple[str, ...], *arguments: str, **more: Path) -> Ran:
        """One run of the program `vouchgate`."""
        return self.run(extras, "-m", "vouchgate.cli", *arguments, **more)


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    folder = tmp_path_factory.mktemp("shelf")
    wheel = build_wheel(folder)
    return Shelf(folder, wheel, unpack(wheel))


def asked_for(ran: Ran) -> tuple[str, str]:
    """The command and the extra of a run that had to end because an extra is missing."""
    assert (ran.returncode, ran.stdout) == (2, ""), ran
    found = SAID.fullmatch(ran.stderr)
    assert found is not None, ran.stderr
    return found[1], found[2]


def test_a_base_install_is_small(shelf: Shelf) -> None:
    brought = shelf.brought()
    assert {NAME, "httpx", "pydantic"} < set(brought)
    assert len(brought) <= MOST, sorted(brought)
    assert len(shelf.brought("all")) > 3 * MOST


def test_the_client_works_in_it_and_loads_nothing_heavy(shelf: Shelf) -> None:
    ran = shelf.run((), "-c", CLIENT)
    assert (ran.stdout, ran.stderr) == ("Unreachable\n", "")
    # Where everything is installed, too: nothing of it is loaded for the client.
    assert shelf.run(("server",), "-c", CLIENT).stdout == "Unreachable\n"


def test_the_pure_library_works_in_it(shelf: Shelf) -> None:
    ran = shelf.run((), "-c", LIBRARY, str(EARLIER))
    assert ran.stderr == ""
    detected, cited, verdict, changed, *decisions = ran.stdout.splitlines()
    assert detected == "Maybe we could"
    assert cited == "ADR-007; https://example.com/a"
    assert verdict == "conflict"
    assert changed
    assert sorted(decisions) == ["blocked"] * 3 + ["queued"] * 5 + ["stored"] * 4


def test_every_command_names_its_extra_in_it(shelf: Shelf) -> None:
    commands = sorted({command.partition(" ")[0] for command in COMMANDS})
    ran = shelf.run((), "-c", EACH_COMMAND, *commands)
    assert ran.stdout.split() == ["2"] * len(commands)
    assert SAID.sub("", ran.stderr) == ""
    own = {name: name for name in ("mcp", "mcp-gate", "hook")}
    assert SAID.findall(ran.stderr) == [(command, own.get(command, "server")) for command in commands]
    alone = shelf.command(())
    assert 'vouchgate needs the extra "server"' in alone.stderr
    assert alone.returncode == 2


def test_the_adapters_and_the_embedded_gate_name_their_extra_in_it(shelf: Shelf) -> None:
    for module, extra, wanted in (
        ("vouchgate.adapters.langgraph", "langgraph", "GatedStore"),
        ("vouchgate.adapters.mem0", "mem0", "GatedMemory"),
        ("vouchgate.adapters.openai_agents", "openai-agents", "GatedSession"),
        ("vouchgate", "server", "Gate"),
        ("vouchgate", "server", "AsyncGate"),
    ):
        ran = shelf.run((), "-c", f"from {module} import {wanted}")
        last = ran.stderr.splitlines()[-1]
        assert last == f"ImportError: {wanted} needs the extra \"{extra}\": pip install 'vouchgate[{extra}]'"


@pytest.mark.parametrize(
    ("extra", "arguments"),
    [("mcp", ("mcp",)), ("mcp-gate", ("mcp-gate", "--preset", "knowledge-graph", "--", "cat"))],
)
def test_an_mcp_command_needs_its_extra_alone(extra: str, arguments: tuple[str, ...], shelf: Shelf) -> None:
    ran = shelf.command((extra,), *arguments)
    assert "an agent's token is needed" in ran.stderr, ran
    assert asked_for(shelf.command((extra,), "serve", "--port", "0")) == ("serve", "server")
    assert asked_for(shelf.command(("server",), *arguments)) == (extra, extra)


def test_the_hook_runs_in_it_and_is_installed_with_its_extra_alone(shelf: Shelf) -> None:
    ran = shelf.command((), "hook", "run", "claude")
    assert '"permissionDecision": "deny"' in ran.stdout, ran
    assert "+++ .codex/hooks.json" in shelf.command(("hook",), "hook", "install", "codex").stdout


def test_the_service_needs_its_extra_alone(shelf: Shelf) -> None:
    (shelf.folder / "by_meaning.toml").write_text('dedup_method = "vector"\n')
    (shelf.folder / "entails.toml").write_text("entailment.enabled = true\n")
    serve = "serve --port 0 --database-url sqlite:///v.db --policy"
    commands = ("check --offline none.jsonl", f"{serve} by_meaning.toml", f"{serve} entails.toml")
    ran = shelf.run(("server",), "-c", SERVICE + EACH_COMMAND, *commands)
    assert ran.stdout.splitlines() == ["", "1", "2", "2"], ran
    no_file, by_meaning, entails = ran.stderr.splitlines()
    assert "none.jsonl" in no_file
    assert "pip install 'vouchgate[vector]'" in by_meaning
    assert "pip install 'vouchgate[nli]'" in entails
    assert not (shelf.folder / "v.db").exists()


@pytest.mark.parametrize(
    ("extra", "package", "arguments"),
    [
        ("mcp", "mcp", ("mcp",)),
        ("mcp-gate", "mcp", ("mcp-gate", "--", "cat")),
        ("mcp-gate", "fastmcp", ("mcp-gate", "--", "cat")),
    ],
)
def test_another_major_version_of_a_package_is_named_before_anything_else(
    extra: str, package: str, arguments: tuple[str, ...], shelf: Shelf, tmp_path: Path
) -> None:
    metadata = tmp_path / f"{package}-1.28.0.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.28.0\n")
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").write_text("raise SystemError('this must not be loaded')\n")
    ran = shelf.command((extra,), *arguments, first=tmp_path)
    assert (ran.returncode, ran.stdout) == (2, ""), ran
    assert ran.stderr.count("\n") == 1
    assert (
        f"version {2 if package == 'mcp' else 4} of the package {package}, and here is 1.28.0" in ran.stderr
    )
    assert f"pipx install 'vouchgate[{extra}]'" in ran.stderr


def test_a_wheel_has_one_name_and_every_file(shelf: Shelf) -> None:
    with zipfile.ZipFile(shelf.wheel) as packed:
        inside = set(packed.namelist())
    assert {name.partition("/")[0].partition("-")[0] for name in inside} == {NAME}
    walked = [(top, step) for top in OURS for step in os.walk(ROOT / top)]
    ours = {
        str((Path(folder) / name).relative_to(ROOT if top != NAME else ROOT / top))
        for top, (folder, _, names) in walked
        for name in names
        if "__pycache__" not in folder
    }
    assert {name.removeprefix(f"{NAME}/") for name in inside if name.startswith(f"{NAME}/")} == ours


def test_it_works_beside_folders_of_the_same_names(shelf: Shelf, tmp_path: Path) -> None:
    """An agent's project has an `ingest` of its own, and uses the client, and a gate, from there."""
    folders = [top for top in OURS if top != NAME]
    for name in folders:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"OURS = {name!r}\n", "utf-8")
    ran = shelf.run(("server",), "-c", BESIDE, first=tmp_path)
    assert ran.stderr == ""
    where, *said = ran.stdout.split()
    assert Path(where).is_relative_to(shelf.folder)
    assert said == [*folders, "Client", "Gate", "tier_1"]


def test_every_module_that_is_imported_is_brought_by_the_base_or_by_an_extra(shelf: Shelf) -> None:
    providers = packages_distributions()
    base = set(shelf.brought())
    brought = {extra: set(shelf.brought(extra)) for extra in MODULES}
    named = {module: extra for extra, modules in MODULES.items() for module in modules}
    for module, where in _imported().items():
        by = {canonicalize_name(name) for name in providers.get(module, ())}
        assert by & base or module in named, (
            f"{module}, imported in {where}, has no place in vouchgate/extras.py"
        )
    for module, extra in named.items():
        assert {canonicalize_name(name) for name in providers[module]} & brought[extra] - base, module


def _imported() -> dict[str, str]:
    """Every module that is not Python's and not ours, by its first name, and one file that imports it."""
    found = {}
    for package in OURS:
        for file in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    names.append(node.module)
                for name in names:
                    found[name.partition(".")[0]] = str(file.relative_to(ROOT))
    return {name: file for name, file in found.items() if name not in (*sys.stdlib_module_names, *OURS)}
