"""`vouchgate gate-doc` as a program: a local site that plays sources, and real git repositories."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.cli_program import cli, complaint
from tests.integration.sources.test_corpora import as_somebody_else
from tests.repos import TestRepository
from tests.web import Answer, Asked, WebServer, web_server
from vouchgate.cli.app import run as main

LOG = """<html><head><title>Kiln log</title></head><body><article><h1>Kiln log</h1>
<p>The kiln of Vester reaches 1,300 degrees. It was built in 1921 by Oda Brandt. The kiln burns beech wood.
The potters of Vester fire it twice a month.</p><p>Ash from the kiln is used for glazing the bowls.</p></article>
</body></html>
"""
RECORD = """# 3. Fire with wood

## Status

Accepted

## Decision

The kiln of Vester is fired with beech wood twice a month.
"""
TRUE = "The kiln of Vester reaches 1,300 degrees ([log]({log}))."
MORE = """{true}

Oda Brandt built the kiln of Vester in 1921 ([log]({log})).

The kiln of Vester burns beech wood ([log]({log})).
"""


@pytest.fixture
def site() -> Iterator[WebServer]:
    with web_server({"/log": Answer(LOG), "/down": Answer("later", 503)}) as server:
        yield server


def page_of(site: WebServer, *more: str) -> str:
    """Three claims that hold, and more; `{log}`, `{gone}` and `{down}` are addresses."""
    text = "\n".join([MORE.replace("{true}", TRUE), *(f"\n{each}\n" for each in more)])
    for name in ("log", "gone", "down"):
        text = text.replace(f"{{{name}}}", f"{site.url}/{name}")
    return text


def run(
    cwd: Path, *words: str | Path, site: WebServer | None = None, stdin: str | bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    env = {"VOUCHGATE_CITATION_NETWORKS": site.place} if site else {}
    options = () if "--retry-seconds" in words else ("--retry-seconds", "0.05")
    return cli("gate-doc", *words, *options, cwd=cwd, env=env, stdin=stdin)


def told(done: subprocess.CompletedProcess[bytes], status: int) -> dict[str, Any]:
    assert done.returncode == status, done.stderr.decode() + done.stdout.decode()[-2000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def verdicts(report: Mapping[str, Any]) -> list[str]:
    return [claim["verdict"] for document in report["documents"] for claim in document["claims"]]


@pytest.mark.parametrize(
    ("more", "status", "last"),
    [
        (("The kiln of Vester was built in 1935 ([log]({log})).",), 1, "not passed: 1 false"),
        (("The bowls are sold in Ribe ([shop]({down})).",), 3, "not passed: 1 could not be found out"),
        (("The bowls are sold.",), 0, "passed"),
    ],
)
def test_the_status_says_what_came_of_it(
    tmp_path: Path, site: WebServer, more: tuple[str, ...], status: int, last: str
) -> None:
    (tmp_path / "kiln.md").write_text(page_of(site, *more), "utf-8")
    done = run(tmp_path, "kiln.md", site=site)
    assert (done.returncode, done.stdout.decode().splitlines()[-1]) == (status, last)
    # Each source is read once, however many claims cite it; what was down, once more.
    assert sum(path == "GET /log" for path in site.paths()) == 1
    assert sum(path == "GET /down" for path in site.paths()) == (2 if status == 3 else 0)


def test_a_source_that_comes_back_is_verified_after_all(tmp_path: Path, site: WebServer) -> None:
    asked = 0

    def back(_: Asked) -> Answer:
        nonlocal asked
        asked += 1
        return Answer("later", 503) if asked <= 2 else Answer(LOG)

    site.routes["/down"] = back
    (tmp_path / "kiln.md").write_text(page_of(site, TRUE.replace("{log}", "{down}")), "utf-8")
    report = told(run(tmp_path, "kiln.md", "--format", "json", site=site), 0)
    assert verdicts(report) == ["VERIFIED"] * 4


def test_a_recording_is_replayed_to_the_byte_without_the_network(tmp_path: Path) -> None:
    page = tmp_path / "kiln.md"
    with web_server({"/log": Answer(LOG), "/down": Answer("later", 503)}) as site:
        page.write_text(
            page_of(site, "The kiln of Vester is old ([x]({down})).", "It is red ([y]({gone}))."), "utf-8"
        )
        first = run(tmp_path, "kiln.md", "--format", "json", "--record", "kept", site=site)
        again = run(tmp_path, "kiln.md", "--format", "json", "--replay", "kept", site=site)
        asked = len(site.asked)
        assert asked == len(site.asked)
    offline = run(tmp_path, "kiln.md", "--format", "json", "--replay", "kept")
    assert (first.returncode, again.returncode, offline.returncode) == (1, 1, 1)
    assert first.stdout == again.stdout == offline.stdout
    with page.open("a") as more:
        more.write("\nThe kiln has two chimneys ([z](https://unread.example)).\n")
    report = told(run(tmp_path, "kiln.md", "--format", "json", "--replay", "kept"), 1)
    assert verdicts(report)[-1] == "UNKNOWN"
    (kept,) = [file for file in (tmp_path / "kept").iterdir() if b"beech" in file.read_bytes()]
    kept.write_bytes(kept.read_bytes().replace(b"1921", b"1922"))
    assert "was changed" in complaint(run(tmp_path, "kiln.md", "--replay", "kept"), 2)
    page.write_text(TRUE.replace("{log}", f"{site.url}/log"), "utf-8")
    (other,) = [file for file in (tmp_path / "kept").iterdir() if b"/down" in file.read_bytes()]
    other.replace(kept)
    assert "another source" in complaint(run(tmp_path, "kiln.md", "--replay", "kept"), 2)
    ran = tmp_path / "kept" / "run.json"
    ran.write_text(ran.read_text().replace('"at": "20', '"at": "19'))
    assert "was changed" in complaint(run(tmp_path, "kiln.md", "--replay", "kept"), 2)
    assert "no recording" in complaint(run(tmp_path, "kiln.md", "--replay", "nowhere"), 2)
    assert "--replay" in complaint(run(tmp_path, "kiln.md", "--replay", "kept", "--record", "new"), 2)


def test_a_cache_is_shared_and_keeps_no_failure(tmp_path: Path, site: WebServer) -> None:
    (tmp_path / "kiln.md").write_text(page_of(site, "The kiln of Vester is old ([x]({down}))."), "utf-8")
    assert run(tmp_path, "kiln.md", "--cache", "kept", site=site).returncode == 3
    site.routes |= {"/down": Answer(LOG), "/log": Answer("gone", 404)}
    site.asked.clear()
    report = told(run(tmp_path, "kiln.md", "--cache", "kept", "--format", "json", site=site), 0)
    assert verdicts(report)[:3] == ["VERIFIED"] * 3
    assert {path.split()[1] for path in site.paths()} == {"/down"}
    assert run(tmp_path, "kiln.md", "--cache", "kept", "--cache-hours", "0", site=site).returncode == 1


@pytest.fixture
def kiln(tmp_path: Path) -> TestRepository:
    """A repository with a record in force, notes and a document that cites both."""
    repository = TestRepository(tmp_path / "pottery")
    repository.commit(
        "Fire",
        {
            "docs/adr/0003-wood.md": RECORD,
            "docs/notes.md": "# Notes\n\nThe bowls of Vester are red.\n",
            "docs/kiln.md": "# Kiln\n\nThe kiln of Vester is fired with beech wood (ADR-3).\n",
        },
    )
    return repository


def test_files_beside_a_document_vouch_for_it_and_none_outside_of_the_repository(
    tmp_path: Path, kiln: TestRepository
) -> None:
    (tmp_path / "secret.md").write_text("The bowls of Vester are red.\n")
    claims = {
        "[notes](notes.md)": "VERIFIED",
        "[notes](./notes.md#notes)": "VERIFIED",
        "[notes](../docs/notes.md)": "VERIFIED",
        "[notes](/docs/notes.md)": "VERIFIED",
        "[notes](nothing.md)": "BROKEN_CITATION",
        "[page](page.md)": "BROKEN_CITATION",
        "[notes](../../secret.md)": "UNKNOWN",
        "[notes](../../../../../etc/passwd)": "UNKNOWN",
        "[notes](..%2F..%2Fsecret.md)": "UNKNOWN",
        "[notes](file:///etc/passwd)": "UNCITED",
        "[above](#bowls)": "UNCITED",
        "[docs](./)": "UNKNOWN",
    }
    page = "# Bowls\n\n" + "".join(f"The bowls of Vester are red ({link}).\n\n" for link in claims)
    kiln.commit("Bowls", {"docs/page.md": page})
    report = told(run(kiln.path, "docs/page.md", "--format", "json"), 1)
    assert dict(zip(claims, verdicts(report), strict=True)) == claims
    assert "secret" not in {
        source["title"] for claim in report["documents"][0]["claims"] for source in claim["sources"]
    }
    elsewhere = told(run(tmp_path, "pottery/docs/page.md", "--repo", "pottery", "--format", "json"), 1)
    assert verdicts(elsewhere) == list(claims.values())


def test_only_what_changed_is_checked(kiln: TestRepository) -> None:
    old = (
        "# Kiln\n\nThe kiln of Vester is fired with coal (ADR-3).\n\nThe bowls are red, see docs/notes.md.\n"
    )
    start = kiln.commit("Coal", {"docs/kiln.md": old})

    def changed(*files: str, since: str = start, status: int) -> list[str]:
        report = told(run(kiln.path, *files, "--changed-since", since, "--format", "json"), status)
        return [claim["text"] for document in report["documents"] for claim in document["claims"]]

    assert changed("docs/kiln.md", status=0) == []
    kiln.write({"docs/kiln.md": old + "\nThe kiln of Vester is fired with beech wood (ADR-3).\n"})
    assert changed("docs/kiln.md", status=0) == ["The kiln of Vester is fired with beech wood (ADR-3)."]
    # A claim whose source changed is checked again, wherever it stands.
    kiln.commit("Green", {"docs/kiln.md": old, "docs/notes.md": "# Notes\n\nThe bowls are green.\n"})
    assert changed("docs/kiln.md", status=1) == ["The bowls are red, see docs/notes.md."]
    # A new file is changed as a whole.
    kiln.write({"docs/new.md": old})
    assert len(changed("docs/new.md", status=1)) == 2
    no_such = "there is no such revision in pottery"
    for slip in ("nothing", "a..b", "HEAD:docs"):
        said = complaint(run(kiln.path, "docs/kiln.md", "--changed-since", slip), 2)
        assert said == f"vouchgate: --changed-since {slip}: {no_such}\n"
    assert "no revision" in complaint(run(kiln.path, "docs/kiln.md", "--changed-since", "--help"), 2)


def test_before_the_first_commit_all_is_new_and_a_shallow_clone_is_told(
    tmp_path: Path, kiln: TestRepository
) -> None:
    start = kiln.git("rev-parse", "HEAD").strip()
    kiln.commit("More", {"docs/kiln.md": "# Kiln\n\nThe kiln is fired with coal (ADR-3).\n"})
    kiln.git("clone", "--quiet", "--depth=1", f"file://{kiln.path}", str(tmp_path / "shallow"))
    done = run(tmp_path / "shallow", "docs/kiln.md", "--changed-since", start)
    assert "no such revision in shallow, which has not all commits: fetch more" in complaint(done, 2)
    new = TestRepository(tmp_path / "new")
    new.write({"docs/notes.md": "# Notes\n\nThe bowls of Vester are red.\n"})
    new.git("add", ".")
    report = told(run(new.path, "docs/notes.md", "--changed-since", "HEAD", "--format", "json"), 1)
    assert verdicts(report) == ["UNCITED"]


def test_only_what_is_marked_is_checked(tmp_path: Path, site: WebServer) -> None:
    marked = "The kiln of Vester was built in 1935 [verify] ([log]({log}))."
    (tmp_path / "kiln.md").write_text(page_of(site, marked, "It is red."), "utf-8")
    report = told(run(tmp_path, "kiln.md", "--only-marked", "--format", "json", site=site), 1)
    assert verdicts(report) == ["FALSE"]
    assert [slip["kind"] for slip in report["documents"][0]["slips"]] == ["citation_needed"]
    (tmp_path / "plain.md").write_text("It is red.\n")
    assert run(tmp_path, "plain.md", "--only-marked").returncode == 1
    assert run(tmp_path, "plain.md", "--only-marked", "--allow-no-claims").returncode == 0


def test_what_cites_nothing_is_looked_up_in_official_sources_alone(kiln: TestRepository) -> None:
    page = "The kiln of Vester is fired with beech wood twice a month.\n\nThe bowls of Vester are red.\n"
    kiln.commit("Page", {"docs/page.md": page})
    assert verdicts(told(run(kiln.path, "docs/page.md", "--format", "json"), 1)) == ["UNCITED"] * 2
    done = run(kiln.path, "docs/page.md", "--harvest", "--format", "json", "--record", "../kept")
    report = told(done, 1)
    # The record is official; the notes are not, and the page says the same of itself.
    assert verdicts(report) == ["VERIFIED", "UNCITED"]
    (source,) = report["documents"][0]["claims"][0]["sources"]
    assert (source["harvested"], source["official"], source["address"]) == (True, True, "ADR-003")
    replayed = run(kiln.path, "docs/page.md", "--harvest", "--format", "json", "--replay", "../kept")
    assert replayed.stdout == done.stdout
    # Two records say the same, and do not vouch for themselves: each has the other.
    again = {"docs/adr/0004-wood.md": RECORD.replace("# 3.", "# 4."), "docs/page.md": page}
    kiln.commit("Again", again)
    words: tuple[str, ...] = ("docs", "README.md", "--harvest", "--format", "json")
    kiln.write({"README.md": page})
    first = run(kiln.path, *words, "--record", "../both")
    assert verdicts(told(first, 1)).count("VERIFIED") == 5
    assert run(kiln.path, *words, "--replay", "../both").stdout == first.stdout
    official = run(kiln.path, "docs/page.md", "--harvest", "--official", "docs/*.md", "--format", "json")
    assert verdicts(told(official, 0)) == ["VERIFIED", "VERIFIED"]


def test_links_are_replayed_while_the_repository_is_read(kiln: TestRepository) -> None:
    with web_server({"/log": Answer(LOG)}) as site:
        page = page_of(site, "The bowls of Vester are red ([notes](notes.md)).")
        kiln.commit("Page", {"docs/page.md": page})
        assert run(kiln.path, "docs/page.md", "--record", "../kept", site=site).returncode == 0
    kiln.commit("Green", {"docs/notes.md": "# Notes\n\nThe bowls of Vester are not red.\n"})
    links = told(run(kiln.path, "docs/page.md", "--replay-links", "../kept", "--format", "json"), 1)
    assert verdicts(links) == ["VERIFIED", "VERIFIED", "VERIFIED", "FALSE"]
    whole = told(run(kiln.path, "docs/page.md", "--replay", "../kept", "--format", "json"), 0)
    assert links["at"] == whole["at"]


def test_a_baseline_lets_pass_until_its_day(tmp_path: Path, site: WebServer) -> None:
    (tmp_path / "kiln.md").write_text(page_of(site, "The kiln of Vester was built in 1935 ([log]({log}))."))
    report = told(run(tmp_path, "kiln.md", "--format", "json", site=site), 1)
    (name,) = [c["fingerprint"] for c in report["documents"][0]["claims"] if c["verdict"] == "FALSE"]
    today = date.fromisoformat(report["at"][:10])

    def accepted(until: date, reason: str = 'reason = "The log is wrong"') -> Path:
        file = tmp_path / "known.toml"
        file.write_text(f'[[accepted]]\nfingerprint = "{name}"\n{reason}\nuntil = {until}\n', "utf-8")
        return file

    done = run(tmp_path, "./kiln.md", "--baseline", accepted(today + timedelta(days=2)), site=site)
    assert done.returncode == 0
    assert "FALSE (accepted)" in done.stdout.decode() and "The log is wrong" in done.stdout.decode()
    over = run(tmp_path, "kiln.md", "--baseline", accepted(today - timedelta(days=2)), site=site)
    assert (over.returncode, b"accepted" in over.stdout) == (1, False)
    for reason in ("", 'reason = ""'):
        file = accepted(today, reason)
        assert "reason" in complaint(run(tmp_path, "kiln.md", "--baseline", file, site=site), 2)
    file = accepted(today)
    file.write_text(re.sub("until.*", "", file.read_text()))
    assert "until" in complaint(run(tmp_path, "kiln.md", "--baseline", file, site=site), 2)
    assert "cannot be read" in complaint(run(tmp_path, "kiln.md", "--baseline", "none.toml", site=site), 2)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "empty"),
        (b"\x7fELF\x00\x01", "binary"),
        ("Der Ofen ist hei\u00df.".encode("latin-1"), "not UTF-8"),
        (b"The kiln is hot. " * 353_000, "more than 5000000 bytes"),
    ],
)
def test_what_is_no_document_is_said_in_a_sentence(tmp_path: Path, content: bytes, says: str) -> None:
    (tmp_path / "kiln.md").write_bytes(content)
    done = run(tmp_path, "kiln.md")
    assert says in complaint(done, 2)
    assert done.stdout == b""


def test_one_that_cannot_be_read_spoils_the_run(tmp_path: Path, site: WebServer) -> None:
    (tmp_path / "a.md").write_text(page_of(site), "utf-8")
    (tmp_path / "b.md").write_bytes(b"")
    assert "b.md" in complaint(run(tmp_path, "a.md", "b.md", site=site), 2)
    (tmp_path / "empty").mkdir()
    assert "nowhere.md" in complaint(run(tmp_path, "a.md", "nowhere.md", site=site), 2)
    assert "no document" in complaint(run(tmp_path, "empty"), 2)
    for option, value in (("--format", "pdf"), ("--fail-on", "tired")):
        assert f"{option} {value}: there are" in complaint(run(tmp_path, "a.md", option, value), 2)


def test_folders_and_standard_input(tmp_path: Path, site: WebServer) -> None:
    (tmp_path / "in" / "deep").mkdir(parents=True)
    (tmp_path / "in" / "deep" / "a.md").write_text(page_of(site), "utf-8")
    (tmp_path / "in" / "b.txt").write_text("The bowls are red.\n")
    (tmp_path / "in" / "c.png").write_bytes(b"\x89PNG\x00")
    report = told(run(tmp_path, "in", "--format", "json", site=site), 0)
    assert [document["file"] for document in report["documents"]] == ["in/b.txt", "in/deep/a.md"]
    given = told(run(tmp_path, "-", "--format", "json", site=site, stdin=page_of(site)), 0)
    assert given["documents"][0]["file"] == "-"
    twice = ("in", "in/b.txt", tmp_path / "in" / "b.txt", "--format", "json")
    assert told(run(tmp_path, *twice, site=site), 0)["documents"] == report["documents"]
    absolute = told(run(tmp_path, tmp_path / "in" / "b.txt", "--format", "json"), 1)
    assert absolute["documents"][0]["file"] == "in/b.txt"


def test_where_nothing_can_be_kept_nothing_is_read(tmp_path: Path, site: WebServer) -> None:
    (tmp_path / "kiln.md").write_text(page_of(site), "utf-8")
    for option in ("--record", "--cache"):
        done = run(tmp_path, "kiln.md", option, "kiln.md/kept", site=site)
        assert complaint(done, 2) == f"vouchgate: {option} kiln.md/kept cannot be written: Not a directory\n"
    assert site.asked == []


def test_a_folder_that_may_not_be_read_spoils_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "docs" / "closed").mkdir(parents=True)
    for name in ("docs/a.md", "docs/closed/b.md"):
        (tmp_path / name).write_text("The bowls are red.\n")
    (tmp_path / "docs" / "closed").chmod(0)
    monkeypatch.chdir(tmp_path)
    with as_somebody_else(tmp_path):
        assert [main(["gate-doc", name]) for name in ("docs", "docs/closed/b.md")] == [2, 2]
        assert main(["audit", "docs"]) != 0
    (tmp_path / "docs" / "closed").chmod(0o755)
    said = capsys.readouterr().err.splitlines()
    assert said[:2] == [
        "vouchgate: docs cannot be read: docs/closed: Permission denied",
        "vouchgate: docs/closed/b.md cannot be read: Permission denied",
    ]
    assert said[2].startswith("vouchgate: docs: cannot be read: docs/closed: Permission denied")


def test_an_output_that_takes_nothing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.md").write_text("The bowls are red.\n")
    for words in (["gate-doc", "a.md"], ["prompt"]):
        with Path("/dev/full").open("w") as full, monkeypatch.context() as patched:
            patched.setattr(sys, "stdout", full)
            assert main(words) == 1
            with Path("/dev/full").open("wb", buffering=0) as raw:  # as with PYTHONUNBUFFERED
                patched.setattr(sys, "stdout", TextIOWrapper(raw, write_through=True))
                assert main(words) == 1
            patched.setattr(sys, "stdout", None)
            assert main(words) == 1
        assert capsys.readouterr().err.splitlines() == [
            "vouchgate: standard output cannot be written: No space left on device",
            "vouchgate: there is no space left for what is to be written",
            "vouchgate: standard output is closed",
        ]


def test_ci_may_want_less(tmp_path: Path, site: WebServer) -> None:
    (tmp_path / "kiln.md").write_text(
        page_of(site, "The kiln of Vester is old ([x]({down})).", "It is red.", "It is dry.")
    )
    assert run(tmp_path, "kiln.md", site=site).returncode == 3
    assert run(tmp_path, "kiln.md", "--fail-on", "false,broken", site=site).returncode == 0
    assert run(tmp_path, "kiln.md", "--fail-on", "false, unverified", site=site).returncode == 1


@pytest.mark.parametrize("nothing", ["", ",", " "])
def test_a_run_that_would_fail_on_nothing_is_refused(tmp_path: Path, nothing: str) -> None:
    (tmp_path / "page.md").write_text("The kiln of Vester was built in 1935.\n", "utf-8")
    refused = run(tmp_path, "page.md", "--fail-on", nothing)
    assert refused.returncode == 2 and b"--fail-on names nothing" in refused.stderr


@pytest.mark.parametrize("ending", ["mdx", "mkd", "xhtml", "rest"])
def test_a_folder_has_every_document_that_is_told_by_its_name(tmp_path: Path, ending: str) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / f"page.{ending}").write_text("The kiln of Vester was built in 1935.\n", "utf-8")
    assert told(run(tmp_path, "docs", "--format", "json"), 1)["documents"][0]["file"] == f"docs/page.{ending}"
