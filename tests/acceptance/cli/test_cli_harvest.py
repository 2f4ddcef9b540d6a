"""`vouchgate corroborate --harvest` and `vouchgate research` as programs: a search engine, pages and a model over HTTP,
a repository on disk."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.cli_program import cli, complaint, json_lines, lines
from tests.engines import Web, page, web
from tests.repos import TestRepository
from tests.web import Answer, Asked, WebServer, web_server

CLAIM = "The archive in Lund holds 40 million pages."
QUESTION = "How many pages does the archive in Lund hold?"
STATED = "Since its last extension the archive in Lund holds 40 million pages."
GUIDE = "# The archive\n\nSince its last extension the archive in Lund holds 40 million pages.\n"


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> TestRepository:
    made = TestRepository(tmp_path_factory.mktemp("guide"))
    made.commit("Write the guide", {"docs/guide.md": GUIDE, "docs/bread.md": "# Bread\n\nIt is baked.\n"})
    return made


@pytest.fixture
def net() -> Iterator[Web]:
    with web() as made:
        yield made


@pytest.fixture
def site() -> Iterator[WebServer]:
    """A site of its own, on another address than the engine."""
    with web_server({"/p": page(STATED)}, host="127.0.0.2") as server:
        yield server


def settings(folder: Path, net: Web, site: WebServer) -> dict[str, str]:
    """The engine is one of the operator's own endpoints, the site a place that may be cited."""
    address = f"{net.server.url}/search?q={{query}}&format=json"
    (folder / "paths.toml").write_text(
        f'[[endpoints]]\nkind = "web_search"\nname = "searx"\naddress = "{address}"\n'
        'results = "results"\nurl = "url"\n',
        "utf-8",
    )
    return {
        "VOUCHGATE_ENDPOINTS": str(folder / "paths.toml"),
        "VOUCHGATE_ALLOW_NETWORKS": "127.0.0.0/8",
        "VOUCHGATE_CITATION_NETWORKS": site.place,
    }


def asked(cwd: Path, row: dict[str, Any], env: dict[str, str], *options: str | Path) -> dict[str, Any]:
    done = cli("corroborate", "--harvest", *options, stdin=lines([row]), cwd=cwd, env=env)
    assert (done.returncode, done.stderr) == (0, b""), done.stderr
    (answer,) = json_lines(done.stdout)
    return answer


def test_what_was_read_and_what_was_brought_are_told_apart(tmp_path: Path, net: Web, site: WebServer) -> None:
    net.found = [f"{site.url}/p", "http://127.0.0.3:8080/inside"]
    brought = {"id": "mine", "text": "Whoever asks is told that the archive in Lund holds 40 million pages."}
    row = {"id": 7, "claim": CLAIM, "sources": [brought]}
    answer = asked(tmp_path, row, settings(tmp_path, net, site))
    assert [(hit["id"], hit["verified"]) for hit in answer["hits"]] == [
        ("mine", False),
        (f"{site.url}/p", True),
    ]
    assert (answer["id"], answer["label"], answer["verified"]) == (7, "INFERENCE", False)
    assert "brought by the caller" in answer["proof"] and "weight 0.4, read 20" in answer["proof"]
    assert {(one["path"], one["found"]) for one in answer["attempts"]} == {("web_search.searx", 1)}
    assert "127.0.0.3" in answer["failures"][0]["why"]  # open to endpoints, and not to what an engine names


def test_what_was_brought_ends_no_search_and_official_pages_make_a_fact_alone(
    tmp_path: Path, net: Web, site: WebServer
) -> None:
    net.found = [f"{site.url}/p"]
    (tmp_path / "policy.toml").write_text('official_domains = ["127.0.0.2"]\n', "utf-8")
    sources = [{"text": f"Reader {n} says: the archive in Lund holds 40 million pages."} for n in "ab"]
    answer = asked(
        tmp_path,
        {"claim": CLAIM, "sources": sources},
        settings(tmp_path, net, site),
        "--policy",
        tmp_path / "policy.toml",
    )
    assert (answer["label"], answer["verified"]) == ("FACT", True)
    assert net.queries


def test_files_of_one_repository_are_one_voice_and_official_ones_make_a_fact(
    tmp_path: Path, repository: TestRepository
) -> None:
    row = {"claim": CLAIM, "sources": []}
    answer = asked(tmp_path, row, {}, "--repo", repository.path, "--offline")
    (hit,) = [each for each in answer["hits"] if each["stance"] == "states"]
    assert (hit["id"], hit["weight"], answer["label"]) == ("docs/guide.md", 0.4, "INFERENCE")
    official = {"VOUCHGATE_OFFICIAL_PATHS": "docs/*.md"}
    answer = asked(tmp_path, row, official, "--repo", repository.path, "--offline")
    assert (answer["label"], answer["verified"]) == ("FACT", True)
    assert "docs/guide.md" in answer["proof"]


def test_a_corpus_is_asked_before_the_repositories(tmp_path: Path, repository: TestRepository) -> None:
    (tmp_path / "books").mkdir()
    (tmp_path / "books" / "lund.md").write_text(GUIDE, "utf-8")
    row = {"claim": CLAIM, "sources": []}
    options = ("--corpus", f"books={tmp_path / 'books'}", "--repo", repository.path, "--offline")
    answer = asked(tmp_path, row, {"VOUCHGATE_OFFICIAL_CORPORA": "books"}, *options)
    assert [one["path"] for one in answer["attempts"]][:2] == ["corpus", "repository"]
    stated = [hit["id"] for hit in answer["hits"] if hit["stance"] == "states"]
    assert len(stated) == 2 and "lund.md" in stated[0]
    assert (answer["label"], answer["verified"], len(answer["groups"][0])) == ("FACT", True, 2)  # one text


def test_owners_have_a_budget_each(tmp_path: Path, repository: TestRepository) -> None:
    (tmp_path / "policy.toml").write_text("[corroboration.budget.owner]\nlooks = 1\n", "utf-8")
    rows: list[dict[str, Any]] = [
        {"claim": f"The depot {n} is closed.", "sources": [], "user_id": n} for n in ("ann", "ann", "bob")
    ]
    options = ("--policy", tmp_path / "policy.toml", "--repo", repository.path, "--offline")
    done = cli("corroborate", "--harvest", *options, stdin=lines(rows), cwd=tmp_path)
    spent = [[one["why"] for one in answer["failures"]] for answer in json_lines(done.stdout)]
    assert [len(answer["attempts"]) for answer in json_lines(done.stdout)] == [1, 0, 1]
    assert spent[1] == ["the budget of the owner is spent (1 looks)"]


@pytest.mark.parametrize(
    ("options", "env", "status", "sentence"),
    [
        (("--repo", "."), {}, 2, "go with --harvest"),
        (("--harvest",), {}, 2, "there is nothing to look along"),
        (("--harvest",), {"VOUCHGATE_ENDPOINTS": "none.toml"}, 1, "none.toml"),
        (("--harvest",), {"VOUCHGATE_WORD_PROOFS": "true"}, 1, "VOUCHGATE_JUDGE_MODEL"),
        (("--harvest", "--policy", "odd.toml"), {}, 1, "'wikipedia', which nothing here brings"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    tmp_path: Path, options: tuple[str, ...], env: dict[str, str], status: int, sentence: str
) -> None:
    (tmp_path / "odd.toml").write_text('[corroboration]\npaths = ["wikipedia"]\n', "utf-8")
    done = cli("corroborate", *options, cwd=tmp_path, env=env)
    assert sentence in complaint(done, status)


def extracting(question: Asked) -> Answer:
    """A model that finds one claim in the guide, and makes one up."""
    claims = [
        {"claim": CLAIM, "quote": "the archive in Lund holds 40 million pages"},
        {"claim": "The archive was sold.", "quote": "it was sold in spring"},
    ]
    choice = {"message": {"content": json.dumps({"claims": claims})}, "finish_reason": "stop"}
    return Answer(json.dumps({"choices": [choice]}), headers={"Content-Type": "application/json"})


@pytest.fixture
def model() -> Iterator[WebServer]:
    with web_server({"/v1/chat/completions": extracting}) as server:
        yield server


def of_model(model: WebServer) -> dict[str, str]:
    return {
        "VOUCHGATE_JUDGE_URL": f"{model.url}/v1",
        "VOUCHGATE_JUDGE_MODEL": "m-1",
        "VOUCHGATE_ALLOW_NETWORKS": "127.0.0.0/8",
        "VOUCHGATE_OFFICIAL_PATHS": "docs/*.md",
    }


def test_research_and_its_replay_offline(
    tmp_path: Path, repository: TestRepository, model: WebServer
) -> None:
    kept = tmp_path / "kept.json"
    done = cli(
        *("research", QUESTION, "--json", "--record", kept, "--repo", repository.path),
        cwd=tmp_path,
        env=of_model(model),
    )
    assert (done.returncode, done.stderr) == (0, b""), done.stderr
    research = json.loads(done.stdout)
    assert [one["claim"] for one in research["facts"]] == [CLAIM]
    assert research["inferences"] == []
    assert any("1 of 2 claims were dropped" in gap["why"] for gap in research["gaps"])
    before = len(model.asked)
    again = cli("research", QUESTION, "--json", "--replay", kept, "--offline", cwd=tmp_path)
    assert (again.returncode, again.stdout, len(model.asked)) == (0, done.stdout, before)
    told = cli("research", QUESTION, "--replay", kept, cwd=tmp_path).stdout.decode()
    assert told.startswith(f"# {QUESTION}\n\n## Facts\n\n- {CLAIM}\n  - docs/guide.md")
    other = cli("research", "Who baked the bread?", "--replay", kept, cwd=tmp_path)
    assert "recording of another question" in complaint(other, 2)


def test_a_proof_is_worded_where_a_setting_says_so(
    tmp_path: Path, repository: TestRepository, model: WebServer
) -> None:
    row = {"claim": CLAIM, "sources": []}
    env = of_model(model) | {"VOUCHGATE_WORD_PROOFS": "true"}
    answer = asked(tmp_path, row, env, "--repo", repository.path)
    assert answer["wording"] == "template: the model did not answer in the form it was asked for"
    choice = {"message": {"content": json.dumps({"text": f"The guide: “{STATED}”"})}, "finish_reason": "stop"}
    model.routes["/v1/chat/completions"] = Answer(json.dumps({"choices": [choice]}))
    answer = asked(tmp_path, row, env, "--repo", repository.path)
    assert answer["wording"] == "worded by m-1" and f"The guide: “{STATED}”" in answer["proof"]


def test_research_that_finds_nothing_out_says_so_with_its_status(
    tmp_path: Path, repository: TestRepository, model: WebServer
) -> None:
    model.routes["/v1/chat/completions"] = Answer("no model here", 503)
    done = cli("research", QUESTION, "--repo", repository.path, cwd=tmp_path, env=of_model(model))
    assert done.returncode == 3
    assert b"## Facts\n\nNone.\n" in done.stdout and b"HTTP status 503" in done.stdout
    without = cli("research", QUESTION, "--repo", repository.path, cwd=tmp_path)
    assert "VOUCHGATE_JUDGE_URL" in complaint(without, 2)
    (tmp_path / "odd.json").write_text("{}", "utf-8")
    odd = cli("research", QUESTION, "--replay", tmp_path / "odd.json", cwd=tmp_path)
    assert "is no recording" in complaint(odd, 2)
