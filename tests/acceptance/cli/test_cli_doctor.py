"""`vouchgate doctor` on repositories whose protected ref is written in different places."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from tests.acceptance.cli_program import PROGRAM, clean_environment, cli
from tests.repos import TestRepository
from tests.running.service import make_token, serve
from tests.web import Answer, web_server
from vouchgate.ingest.claims.people import Role

MISSING = "Missing, in the order to mend it:"
NOBODY = "http://127.0.0.1:1"  # where no service is


def lines(tmp_path: Path, *repos: str | Path, **environment: str) -> list[str]:
    """What it says of these repositories, without the place of the tests, and before what is missing."""
    said = everything(tmp_path, *repos, VOUCHGATE_URL=NOBODY, **environment)
    return said[: said.index(MISSING)]


def everything(tmp_path: Path, *repos: str | Path, **environment: str) -> list[str]:
    """All that it says."""
    named = [part for repo in repos for part in ("--repo", str(repo))]
    done = cli("doctor", *named, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().replace(str(tmp_path), "").splitlines()


@pytest.fixture
def origin(tmp_path: Path) -> TestRepository:
    """A repository with one commit on main."""
    made = TestRepository(tmp_path / "origin")
    made.commit("Begin", {"README.md": "Hello"})
    return made


def test_a_checkout_in_which_an_agent_may_commit_is_warned_of(tmp_path: Path, origin: TestRepository) -> None:
    says, warning = lines(tmp_path, origin.path)
    assert says == "/origin: who writes main in this directory vouches."
    assert warning.startswith("warning: an agent that commits to main in /origin vouches for itself.")
    origin.git("checkout", "--quiet", "--detach")
    says, warning = lines(tmp_path, origin.path)
    assert says == "/origin: who writes what is checked out in this directory vouches."
    assert "warning: an agent that commits to what is checked out in /origin" in warning
    assert lines(tmp_path, origin.path, VOUCHGATE_REF="main")[0].endswith(
        "who writes main in this directory vouches."
    )


def test_that_git_is_missing_is_one_sentence(tmp_path: Path, origin: TestRepository) -> None:
    away = {"PATH": str(tmp_path), "VOUCHGATE_URL": NOBODY}
    done = cli("doctor", "--repo", origin.path, "--repo", tmp_path, cwd=tmp_path, env=away, anew=True)
    said = done.stdout.decode().splitlines()
    assert (done.returncode, done.stderr) == (1, b"")
    assert said[said.index(MISSING) + 1] == (
        "1. The program git cannot be run: install it, or put its folder into PATH."
    )


def test_a_clone_goes_by_its_remote_and_still_has_refs_of_its_own(
    tmp_path: Path, origin: TestRepository
) -> None:
    origin.git("clone", "--quiet", str(origin.path), str(tmp_path / "clone"))
    says, warning = lines(tmp_path, tmp_path / "clone")
    assert says == "/clone: who writes main of origin vouches, and who writes refs in this directory."
    assert warning.startswith("warning: an agent that runs git in /clone can move refs/remotes/origin/main.")
    origin.git("-C", str(tmp_path / "clone"), "update-ref", "--no-deref", "refs/remotes/origin/HEAD", "HEAD")
    assert lines(tmp_path, tmp_path / "clone")[0].startswith("/clone: who writes HEAD of origin vouches,")


def test_an_address_and_a_bare_repository_are_written_by_who_may_push(
    tmp_path: Path, origin: TestRepository
) -> None:
    bare = tmp_path / "bare.git"
    origin.git("clone", "--quiet", "--bare", str(origin.path), str(bare))
    found = lines(tmp_path, bare, f"file://{origin.path}", VOUCHGATE_MIRROR_FILES="true")
    assert found[:2] == [
        "/bare.git: who writes main in this directory vouches.",
        "file:///origin: who writes main there vouches.",
    ]
    assert not (tmp_path / "vouchgate-mirrors").exists()
    assert found[2:] == [
        "warning: file:///origin is on this machine: an agent that commits there vouches for itself."
    ]


def test_nothing_configured_and_nothing_usable_are_said(tmp_path: Path, origin: TestRepository) -> None:
    assert lines(tmp_path) == ["No repository is configured: no record, file or commit vouches for anything."]
    named = {"VOUCHGATE_URL": NOBODY, "VOUCHGATE_MIRROR_FILES": "true"}
    done = cli("doctor", "--repo", tmp_path, "--repo", f"file://{tmp_path}/gone", cwd=tmp_path, env=named)
    said = done.stdout.decode().splitlines()
    assert (done.returncode, said[0]) == (1, MISSING)
    unusable, service, token = said[1:]
    assert "gone could not be fetched. Give --repo the top directory of a git work tree, or an" in unusable
    assert (unusable[:2], service[:2], token[:2]) == ("1.", "2.", "3.")


def test_a_corpus_is_counted_and_said_to_vouch_when_it_is_official(tmp_path: Path) -> None:
    for name in ("handbook", "notes"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "page.md").write_text("# A page\n")
    named = {"VOUCHGATE_CORPORA": f"handbook={tmp_path}/handbook:notes={tmp_path}/notes"}
    assert lines(tmp_path, VOUCHGATE_OFFICIAL_CORPORA="handbook", **named)[:2] == [
        "/handbook, the corpus handbook: 1 documents; it is official: who can write there vouches.",
        "/notes, the corpus notes: 1 documents; it is not official and vouches for nothing.",
    ]


def test_what_is_missing_is_said_in_the_order_to_mend_it(
    tmp_path: Path, origin: TestRepository, migrated_file: Path
) -> None:
    def steps(*repos: Path, **environment: str) -> list[str]:
        said = everything(tmp_path, *repos, **environment)
        return [line.partition(". ")[2].partition(":")[0] for line in said[said.index(MISSING) + 1 :]]

    assert steps(VOUCHGATE_URL=NOBODY) == ["Nothing can vouch", "Nothing answers at http", "No token here"]
    assert not (tmp_path / "vouchgate.db").exists()
    broken = tmp_path / "vouchgate.db"
    broken.write_bytes(b"SQLite format 3\0" + b"torn" * 2000)
    assert steps(origin.path, VOUCHGATE_URL=NOBODY)[:2] == [
        "The database cannot be used",
        "Nothing answers at http",
    ]
    shutil.copy(migrated_file, broken)
    for where, said in (
        ("nowhere/vouchgate.db", "The database cannot be made: there is no folder /nowhere."),
        (f"{'x' * 300}.db", f"The database cannot be used: [Errno 36] File name too long: '{'x' * 300}.db'."),
    ):
        here = {"VOUCHGATE_DATABASE_URL": f"sqlite:///{where}", "VOUCHGATE_URL": NOBODY}
        told = everything(tmp_path, origin.path, **here)
        assert told[told.index(MISSING) + 1] == f"1. {said}"
    url = f"sqlite:///{broken}"
    agent, auditor = make_token(url, Role.AGENT, ["me"]), make_token(url, Role.AUDITOR, ["me"])
    nobody_rules = "Nobody rules on what waits"
    with serve(url, repos=[origin.path]) as running:
        service = {"VOUCHGATE_URL": running.url}
        assert steps(origin.path, **service) == ["No token here", nobody_rules]
        for token, said in (
            ("vg_wrong", "The token in VOUCHGATE_TOKEN is refused at http"),
            (
                auditor,
                "The token in VOUCHGATE_TOKEN is of the role auditor, and claims are sent with an agent's.",
            ),
        ):
            assert steps(origin.path, **service, VOUCHGATE_TOKEN=token) == [said, nobody_rules]
        make_token(url, Role.REVIEWER, ["me"])
        assert (
            everything(tmp_path, origin.path, **service, VOUCHGATE_TOKEN=agent)[-1] == "Nothing is missing."
        )
    with web_server({"/readyz": Answer("<p>Hello</p>", 404)}) as other:
        assert steps(origin.path, VOUCHGATE_URL=other.url)[0] == "What answers at http"


@pytest.mark.parametrize(
    ("named", "official", "says"),
    [
        ("handbook=nowhere", "", "VOUCHGATE_CORPORA: handbook: {here}/nowhere is no folder"),
        ("nowhere", "", "VOUCHGATE_CORPORA: nowhere is not like handbook=/srv/handbook"),
        ("Big One=.", "", "VOUCHGATE_CORPORA: Big One is not like handbook=/srv/handbook"),
        ("a=.:a=..", "", "VOUCHGATE_CORPORA: two corpora have one name"),
        ("a=.", "b", "VOUCHGATE_OFFICIAL_CORPORA: no corpus is called b"),
    ],
)
def test_a_corpus_that_cannot_be_used_stops_the_start(
    tmp_path: Path, named: str, official: str, says: str
) -> None:
    environment = {"VOUCHGATE_CORPORA": named, "VOUCHGATE_OFFICIAL_CORPORA": official}
    done = cli("doctor", cwd=tmp_path, env=environment)
    assert done.returncode == 1 and says.format(here=tmp_path) in done.stderr.decode()


def test_nothing_stays_of_a_repository_where_it_is_ended(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as silent:  # a host that takes connections and says nothing
        address = f"https://127.0.0.1:{silent.getsockname()[1]}/x.git"
        environment = clean_environment({"TMPDIR": str(kept), "VOUCHGATE_URL": NOBODY})
        with subprocess.Popen(
            [*PROGRAM, "doctor", "--repo", address], env=environment, cwd=tmp_path
        ) as process:
            silent.settimeout(30)
            asked, _ = silent.accept()
            with asked:
                assert list(kept.glob("vouchgate-doctor-*/*"))
                process.send_signal(signal.SIGTERM)
                assert process.wait(30) == 130
    assert not list(kept.iterdir())
