"""What the pages promise is there, and what is there is on the pages."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from tests.acceptance.api.test_openapi import ALLOWED, OPEN
from vouchgate.cli.app import app
from vouchgate.ingest import router
from vouchgate.ingest.rules import Rule
from vouchgate.settings import PREFIX, Settings

ROOT = Path(__file__).parents[3]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
PRODUCT = [
    file
    for top in ("ingest", "storage", "review", "vouchgate", "clients/typescript/src")
    for folder, _, names in os.walk(ROOT / top)  # which does not follow the links of the package
    for file in map(Path(folder).joinpath, names)
    if file.suffix in (".py", ".ts")
]
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]

Commands = dict[str, set[str]]


def read(name: str) -> str:
    """A page, by its path in the repository."""
    return (ROOT / name).read_text("utf-8")


def project() -> dict[str, Any]:  # Any: a TOML document
    """pyproject.toml."""
    return tomllib.loads(read("pyproject.toml"))


def all_commands() -> Commands:
    """Every command, with its options."""

    def below(command: object, path: tuple[str, ...]) -> Iterator[tuple[str, set[str]]]:
        for name, each in getattr(command, "commands", {}).items():
            yield from below(each, (*path, name))
        if path and not hasattr(command, "commands"):
            options = {
                option
                for parameter in getattr(command, "params", ())
                for option in (*parameter.opts, *parameter.secondary_opts)
                if option.startswith("--") and option != "--help"
            }
            yield " ".join(path), options

    return dict(below(typer.main.get_command(app), ()))


COMMANDS = all_commands()


def names(text: str, option: str) -> bool:
    """Whether the text has the option, and not only a longer one that begins like it."""
    return re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", text) is not None


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_and_option_is_on_its_page(command: str) -> None:
    """In the section of the command or of its group, but for the options that the page tells of once for all."""
    intro, *rest = re.split(r"^## ", read("docs/cli.md"), flags=re.MULTILINE)
    sections = {title: title + "\n" + text for title, _, text in (part.partition("\n") for part in rest)}
    section = sections.get(command) or sections.get(command.split(maxsplit=1)[0])
    assert section is not None
    assert names(section, command.rsplit(maxsplit=1)[-1])
    common = set(re.findall(r"^\| `(--[a-z-]+)", intro, re.MULTILINE))
    assert {option for option in COMMANDS[command] - common if not names(section, option)} == set()


def spoken(page: str) -> Iterator[str]:
    """Every command line of a page, in a block or within a sentence, from its command on."""
    for code in re.findall(r"```\w*\n(.*?)```|`([^`\n]+)`", read(page), re.DOTALL):
        for line in "".join(code).replace("\\\n", " ").splitlines():
            for found in re.finditer(r"(?:^|[\s(])vouchgate ([a-z][^|&;#>)]*)", line):
                yield found[1].split(" -- ")[0]


@pytest.mark.parametrize("page", NAMES)
def test_command_lines_on_the_pages_can_be_called(page: str) -> None:
    groups = {command.split()[0] for command in COMMANDS}
    for line in spoken(page):
        words = line.split()
        known = [command for command in COMMANDS if command.split() == words[: len(command.split())]]
        if not known:
            assert words[0] in groups and not any(word.isalpha() for word in words[1:2]), line
            options = set().union(*(COMMANDS[each] for each in COMMANDS if each.split()[0] == words[0]))
        else:
            options = COMMANDS[max(known, key=len)]
        said = set(re.findall(r"(?<=\s)--[a-z-]+", line)) - {"--help"}
        assert said <= options, line


def test_every_setting_is_on_the_page_of_operations() -> None:
    page = read("docs/operations.md")
    said = set(re.findall(rf"`(?:{PREFIX}|…_)([A-Z_]+)`", page))
    assert said >= {name.upper() for name in Settings.model_fields}


@pytest.mark.parametrize("page", NAMES)
def test_settings_on_the_pages_exist(page: str) -> None:
    known = {PREFIX + name.upper() for name in Settings.model_fields}
    assert set(re.findall(rf"{PREFIX}[A-Z_]*[A-Z]", read(page))) <= known


@pytest.mark.parametrize(("method", "path"), sorted([*ALLOWED, *OPEN]))
def test_every_call_is_on_the_page_of_the_api(method: str, path: str) -> None:
    """The calls are those of the served description: `test_openapi` sees to that."""
    unnamed = re.sub(r"\{[a-z_]+\}", "{}", f"`{method} {path}")
    page = re.sub(r"\{[a-z_]+\}", "{}", read("docs/api.md"))
    assert re.search(re.escape(unnamed) + r"[`? ]", page)


def test_every_rule_is_on_the_page_of_the_checks() -> None:
    """With its reason, where that is always the same."""
    rules = re.findall(r"Ruling\(\s*Rule\.(\w+), [^,]+, (\"[^\"]*\"|\w+|)", inspect.getsource(router))
    section = read("docs/checks.md").partition("\n## The rules\n")[2].partition("\n#")[0]
    rows = re.findall(r"^\| `(\w+)` \|(.*)$", section, re.MULTILINE)
    assert {name for name, _ in rows} == {name.lower() for name, _ in rules} == set(Rule)
    for name, reason in rules:
        if reason.startswith('"') and reason != '" "':
            assert any(reason.strip('"') in row for of, row in rows if of == name.lower()), reason


def anchor(heading: str) -> str:
    """What a heading is called in a link, as the usual viewers make it."""
    return re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower()).strip().replace(" ", "-")


@pytest.mark.parametrize("page", NAMES)
def test_links_lead_somewhere(page: str) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```", "", read(page), flags=re.DOTALL)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, part = link.partition("#")
        target = ROOT / page if not path else (ROOT / page).parent / path
        assert target.exists(), link
        if part:
            headings = re.findall(r"^#+ (.+)$", target.read_text("utf-8"), re.MULTILINE)
            assert part in {anchor(heading) for heading in headings}, link


def test_where_things_live_is_where_they_are() -> None:
    table = read("docs/architecture.md").partition("## Where things live")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")]
    assert len(rows) > 40
    for row in rows:
        words = re.findall(r"`([^`\s]+)`", row.split(" | ", 1)[1])
        folders = [ROOT, *(ROOT / word for word in words if word.endswith("/"))]
        files = [word for word in words if "/" in word or re.search(r"\.(py|toml)$", word)]
        for word in files:
            assert any(list(folder.glob(word.rstrip("/"))) for folder in folders), f"{word} in: {row}"


def test_the_front_page_is_one_page() -> None:
    assert len(read("README.md").splitlines()) <= 120


@pytest.mark.parametrize(
    "room", sorted({file.parent for file in PRODUCT}), ids=lambda room: str(room.relative_to(ROOT))
)
def test_a_room_has_at_most_some_twenty_entries(room: Path) -> None:
    assert (
        len(
            [
                each
                for each in room.iterdir()
                if each.name not in ("__pycache__", "__init__.py", "__main__.py", "py.typed")
            ]
        )
        <= 22
    )


@pytest.mark.parametrize("page", NAMES)
def test_extras_on_the_pages_exist(page: str) -> None:
    said = {
        each
        for found in re.findall(r"(?:vouchgate|')\.?\[([a-z0-9,-]+)\]'", read(page))
        for each in found.split(",")
    }
    assert said <= set(project()["project"]["optional-dependencies"])
    if page == "README.md":
        assert said >= {"mcp", "mcp-gate", "langgraph", "mem0"}


@pytest.mark.parametrize("page", NAMES)
def test_what_examples_import_is_there(page: str) -> None:
    for example in re.findall(r"```python\n(.*?)```", read(page), re.DOTALL):
        for node in ast.walk(ast.parse(example)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("vouchgate"):
                # By this name the verifier lies in an export, alone.
                alone = {"vouchgate_verify": "vouchgate.ingest.transparency.verifier"}
                module = importlib.import_module(alone.get(node.module or "", node.module or ""))
                assert [each.name for each in node.names if not hasattr(module, each.name)] == []
