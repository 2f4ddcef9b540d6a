"""What docs/extending.md shows is all that it takes: each example is put where it says, and nothing else is touched."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.cli_program import cli, json_lines, lines
from tests.web import Answer, WebServer, web_server
from vouchgate.harvest.setup import world_of
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.sources.git.source import GitSource
from vouchgate.settings import SettingsError, load_settings
from vouchgate.sources.plugins import install_kinds
from vouchgate.sources.reader import Sources

ROOT = Path(__file__).parents[3]
PACKAGES = ("ingest", "storage", "review", "vouchgate")
PAGE = (ROOT / "docs" / "extending.md").read_text("utf-8")
GROUP = "vouchgate.citations"


def example(name: str) -> str:
    """The file of this name, as the page has it."""
    (found,) = re.findall(rf"^`{re.escape(name)}`:\n\n```\w+\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return str(found)


def contents(folder: Path) -> dict[str, str]:
    """Every file below a folder, by a digest of what is in it."""
    every = (each for each in folder.rglob("*") if each.is_file() and each.suffix != ".pyc")
    return {str(each.relative_to(folder)): hashlib.sha256(each.read_bytes()).hexdigest() for each in every}


@pytest.fixture
def site() -> Iterator[WebServer]:
    with web_server() as server:
        yield server


def run(
    *arguments: str,
    path: Path,
    cwd: Path,
    sent: str = "",
    anew: bool = False,
    settings: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """A command of a service that finds packages in `path` before those that are installed; with `anew`, the product's
    own packages too."""
    return cli(*arguments, stdin=sent, cwd=cwd, env={"PYTHONPATH": str(path), **(settings or {})}, anew=anew)


def checked(
    *contents: str,
    path: Path,
    cwd: Path,
    anew: bool = False,
    settings: Mapping[str, str] | None = None,
) -> list[dict[str, Any]]:
    """What `check` answers to claims of a granted source, or of none when they cite something."""
    claims = [
        {
            "content": content,
            "memory_type": "fact",
            "source": "ai_synthesis" if re.search(r"[A-Z]+-[0-9]", content) else "user",
        }
        for content in contents
    ]
    done = run("check", "-", path=path, cwd=cwd, sent=lines(claims), anew=anew, settings=settings)
    assert done.returncode == 0, done.stderr
    return json_lines(done.stdout)


def test_a_check_is_one_file(tmp_path: Path) -> None:
    tree, cwd = tmp_path / "tree", tmp_path / "cwd"
    cwd.mkdir()
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tree / package, symlinks=True)
    before = contents(tree)
    (answer,) = checked(
        "THE DEPOT IS IN LEEDS", path=cwd, cwd=cwd
    )  # of the product that the tree is a copy of
    assert answer["rule"] == "trusted_source"
    (tree / "ingest" / "checks" / "shouting.py").write_text(example("ingest/checks/shouting.py"), "utf-8")
    after = contents(tree)
    assert [name for name in after if before.get(name) != after[name]] == ["ingest/checks/shouting.py"]

    shouted, said = checked("THE DEPOT IS IN LEEDS", "The depot is in York", path=tree, cwd=cwd, anew=True)
    assert (shouted["outcome"], shouted["rule"]) == ("queued", "doubted")
    assert shouted["reason"] == "The claim is written in capitals."
    assert shouted["checks_failed"] == ["no_citation", "shouting"]
    assert said["rule"] == "trusted_source"
    shown = (
        "from vouchgate.ingest.claims.claim import Finding, Verdict;"
        "from vouchgate.review.pages.findings import finding_view as view;"
        "print(view(Finding(check='shouting', verdict=Verdict.DOUBT, code='x', message=''), decides=True).check)"
    )
    done = subprocess.run(
        [sys.executable, "-c", shown], cwd=tree, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "Capitals\n"


def install(folder: Path, module: str, entry: str, group: str = GROUP, name: str = "acme_memos") -> None:
    """Puts a module into a folder as an installer does, with the entry point in its metadata."""
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.py").write_text(module, "utf-8")
    info = folder / "acme_memos-1.0.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-memos\nVersion: 1.0\n", "utf-8")
    (info / "entry_points.txt").write_text(f"[{group}]\n{entry}\n", "utf-8")


def test_a_kind_of_citation_is_one_file_of_an_installed_package(tmp_path: Path, site: WebServer) -> None:
    (entry,) = re.findall(rf'^\[project.entry-points."{GROUP}"\]\n(\w+) = "(.*)"$', PAGE, re.MULTILINE)
    install(tmp_path / "site", example("acme_memos.py"), " = ".join(entry))
    site.routes["/12.txt"] = Answer("Depots\nThe pump of the depot in Leeds was replaced in spring.")
    settings = {"ACME_MEMOS_URL": site.url, "VOUCHGATE_ALLOW_NETWORKS": "127.0.0.0/8"}

    answer, missing = checked(
        "The pump of the depot in Leeds was replaced in spring, as MEMO-12 says.",
        "The pump was painted in spring, as MEMO-13 says.",
        path=tmp_path / "site",
        cwd=tmp_path,
        settings=settings,
    )
    (source,) = answer["evidence"]["sources"]
    assert (source["kind"], source["citation"]["type"], source["source_id"]) == ("found", "memo", "MEMO-12")
    assert (answer["outcome"], answer["rule"]) == ("stored", "stated")
    assert missing["reason"] == "There is no MEMO-13."
    assert sorted(site.paths()) == ["GET /12.txt", "GET /13.txt"]


def test_a_kind_that_comes_with_the_service_is_one_file(tmp_path: Path, site: WebServer) -> None:
    tree, cwd = tmp_path / "tree", tmp_path / "cwd"
    cwd.mkdir()
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tree / package, symlinks=True)
    text = example("acme_memos.py").replace("ACME_MEMOS_URL", "VOUCHGATE_MEMO_URL")
    (tree / "ingest" / "citations" / "kinds" / "memo.py").write_text(text, "utf-8")
    site.routes["/12.txt"] = Answer("Depots\nThe pump of the depot in Leeds was replaced in spring.")
    (cwd / "vouchgate.toml").write_text(f'memo_url = "{site.url}"\n', "utf-8")

    claim = "The pump of the depot in Leeds was replaced in spring, as MEMO-12 says."
    settings = {"VOUCHGATE_ALLOW_NETWORKS": "127.0.0.0/8"}
    (answer,) = checked(claim, path=tree, cwd=cwd, anew=True, settings=settings)
    assert (answer["outcome"], answer["rule"]) == ("stored", "stated")
    assert site.paths() == ["GET /12.txt"]


def test_a_tracker_is_one_toml_file(tmp_path: Path, site: WebServer) -> None:
    text = example("tickets.toml").replace("https://tickets.example.org", site.url)
    (tmp_path / "tickets.toml").write_text(text, "utf-8")
    ticket = {
        "key": "OPS-12",
        "title": "Pump",
        "body": "The pump of the depot in Leeds was replaced in spring. Its files are UTF-8.",
    }
    json_type = {"Content-Type": "application/json"}
    site.routes["/api/tickets/OPS-12"] = Answer(json.dumps({"ticket": ticket}), 200, json_type)
    site.routes["/api/tickets/OPS-13"] = Answer("{}", 410, json_type)
    settings = {
        "VOUCHGATE_TRACKERS": str(tmp_path / "tickets.toml"),
        "TICKETS_TOKEN": "s3cret",
        "VOUCHGATE_ALLOW_NETWORKS": "127.0.0.0/8",
    }

    answer, gone = checked(
        "The pump of the depot in Leeds was replaced in spring, as OPS-12 says; its files are UTF-8.",
        "The pump was painted, as OPS-13 says.",
        path=tmp_path,
        cwd=tmp_path,
        settings=settings,
    )
    (source,) = answer["evidence"]["sources"]
    assert (source["kind"], source["citation"]["type"], source["source_id"]) == (
        "found",
        "ticket",
        "ticket:OPS-12",
    )
    assert answer["rule"] == "stated"
    assert [one.headers["authorization"] for one in site.asked] == ["Bearer s3cret"] * 2
    assert "s3cret" not in json.dumps([answer, gone])
    assert gone["rule"] == "refuted"


@pytest.mark.parametrize(
    "fault",
    [
        (
            "raise OSError('no such disk')",
            "memo = acme_memos:KIND",
            GROUP,
            "could not be loaded (OSError: no such disk)",
        ),
        ("KIND = 1", "memo = acme_memos:KIND", GROUP, "is no CitationKind of this name"),
        ("", "memo = acme_memos:KIND", GROUP, "could not be loaded (AttributeError"),
        (None, "note = acme_memos:KIND", GROUP, "is no CitationKind of this name"),
        (
            None,
            "rfc = acme_memos:KIND",
            "vouchgate.sources.reader",
            "is for a kind that is not there, or has a source",
        ),
        ("taken", "rfc = acme_memos:KIND", GROUP, "there are two kinds of citation called 'rfc'"),
    ],
)
def test_a_plugin_that_is_broken_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: tuple[str | None, str, str, str]
) -> None:
    module, entry, group, sentence = fault
    text = example("acme_memos.py")
    if module == "taken":
        module = text.replace('name="memo"', 'name="rfc"')
    install(tmp_path / "site", text if module is None else module, entry, group)
    monkeypatch.syspath_prepend(tmp_path / "site")
    try:
        with pytest.raises(SettingsError) as refused:
            install_kinds(load_settings({}))
    finally:
        sys.modules.pop("acme_memos", None)
    assert sentence in str(refused.value)
    assert "acme" in str(refused.value) or "rfc" in str(refused.value)


def test_a_plugin_that_is_broken_stops_the_start(tmp_path: Path) -> None:
    install(tmp_path / "site", "raise OSError('no such disk')", "memo = acme_memos:KIND")
    claim = json.dumps({"content": "It rains.", "memory_type": "fact", "source": "user"})
    done = run("check", "-", path=tmp_path / "site", cwd=tmp_path, sent=claim)
    assert (done.returncode != 0, done.stdout) == (True, b"")
    assert b"could not be loaded (OSError: no such disk)" in done.stderr
    assert b"Traceback" not in done.stderr


CLAIM = "The pump of the depot in Leeds was replaced in spring."


def harvested(path: Path, cwd: Path, policy: str = "", **settings: str) -> subprocess.CompletedProcess[bytes]:
    """What `corroborate --harvest` answers to a claim for which nothing is brought."""
    (cwd / "policy.toml").write_text(policy, "utf-8")
    sent = json.dumps({"claim": CLAIM, "sources": []})
    options = ("corroborate", "--harvest", "--policy", "policy.toml")
    return run(*options, path=path, cwd=cwd, sent=sent, settings=settings)


def test_interfaces_and_search_engines_are_one_toml_file(tmp_path: Path, site: WebServer) -> None:
    text = example("searches.toml")
    for host in (
        "searx.example.org",
        "api.search.brave.com",
        "google.serper.dev",
        "api.statistics.example.org",
    ):
        text = text.replace(f"https://{host}", site.url)
    (tmp_path / "searches.toml").write_text(text, "utf-8")
    paths, tokens = ("searx", "brave", "serper"), ("STATISTICS", "BRAVE", "SERPER")
    json_type = {"Content-Type": "application/json"}
    record = {"page": "https://statistics.example.org/1", "name": "Pumps", "note": CLAIM}
    words = "pump%20depot%20Leeds%20spring"
    for address, answer in {
        f"/find?w={words.replace('%20', '+')}": {"data": {"records": [record]}},
        f"/search?q={words}&format=json": {"results": []},
        f"/res/v1/web/search?q={words}": {"web": {"results": []}},
        "/search": {"organic": []},
    }.items():
        site.routes[address] = Answer(json.dumps(answer), 200, json_type)
    settings = {f"{name}_TOKEN": f"{name.lower()}-s3cret" for name in tokens}
    settings |= {"VOUCHGATE_ENDPOINTS": "searches.toml", "VOUCHGATE_ALLOW_NETWORKS": "127.0.0.0/8"}
    policy = "[corroboration.budget.claim]\nlooks = 4\n"
    done = harvested(tmp_path, tmp_path, policy, **settings)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert (answer["label"], answer["verified"]) == ("FACT", True)
    tried = [f"web_search.{name}" for name in paths]
    assert [one["path"] for one in answer["attempts"]] == ["official_api.statistics", *tried]
    assert [one.headers.get("x-subscription-token", "") for one in site.asked] == ["", "", "brave-s3cret", ""]
    assert [one.headers.get("x-api-key", "") for one in site.asked][3] == "serper-s3cret"
    assert json.loads(site.asked[3].body) == {"q": "pump depot Leeds spring"}
    assert site.asked[0].headers["authorization"] == "Bearer statistics-s3cret"
    assert b"s3cret" not in done.stdout
    del settings["BRAVE_TOKEN"]
    assert (
        b"needs its token in the environment variable BRAVE_TOKEN"
        in harvested(tmp_path, tmp_path, **settings).stderr
    )


HARVEST = "vouchgate.harvest"
WIKI = '[corroboration]\npaths = ["repository", "wiki"]\n'


def test_a_path_of_search_is_one_file_of_an_installed_package(tmp_path: Path, site: WebServer) -> None:
    (entry,) = re.findall(rf'^\[project.entry-points."{HARVEST}"\]\n(\w+) = "(.*)"$', PAGE, re.MULTILINE)
    install(tmp_path / "site", example("acme_wiki.py"), " = ".join(entry), HARVEST, "acme_wiki")
    site.routes["/pump.txt"] = Answer(CLAIM)
    settings = {"ACME_WIKI_URL": site.url, "VOUCHGATE_ALLOW_NETWORKS": "127.0.0.0/8"}
    done = harvested(tmp_path / "site", tmp_path, WIKI, **settings)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert [(hit["stance"], hit["verified"]) for hit in answer["hits"]] == [("states", True)]
    assert {one["path"] for one in answer["attempts"]} == {"wiki"}


@pytest.mark.parametrize(
    ("module", "entry", "sentence"),
    [
        (None, "wiki = acme_wiki:Wiki", "could not be opened (KeyError"),
        (
            "raise OSError('no such disk')",
            "wiki = acme_wiki:Wiki",
            "could not be opened (OSError: no such disk)",
        ),
        (
            "class Wiki:\n    def __init__(*_): pass\n    name = 'x'\n    look = id",
            "wiki = acme_wiki:Wiki",
            "no path of this name",
        ),
        ("", "corpus = acme_wiki:Wiki", "the name of a path that comes with the service"),
        ("", "other = acme_wiki:Wiki", "names the path 'wiki', which nothing here brings"),
    ],
)
def test_a_path_that_is_broken_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str | None, entry: str, sentence: str
) -> None:
    text = example("acme_wiki.py") if module is None else module
    install(tmp_path / "site", text, entry, HARVEST, "acme_wiki")
    monkeypatch.syspath_prepend(tmp_path / "site")
    (tmp_path / "policy.toml").write_text(WIKI, "utf-8")
    git = GitSource([])
    try:
        with (
            closing(Sources(git, {})) as sources,
            pytest.raises(SettingsError, match=re.escape(sentence)),
        ):
            world_of(load_settings({}), load_policy(tmp_path / "policy.toml"), sources)
    finally:
        sys.modules.pop("acme_wiki", None)
