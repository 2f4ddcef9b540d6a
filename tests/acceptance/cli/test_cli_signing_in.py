"""`person link`, `unlink` and `session` as programs, over one real database."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from tests.acceptance.cli_program import cli, json_lines
from tests.running.service import THRESHOLD
from vouchgate.settings import DATABASE
from vouchgate.storage.identity import sessions
from vouchgate.storage.store import Store

ISSUER, SUB = "https://login.example.org", "it's 248289761001"


def test_the_operator_links_a_person_and_ends_their_session(tmp_path: Path) -> None:
    def run(*words: str, status: int = 0) -> str:
        done = cli(*words, cwd=tmp_path)
        assert done.returncode == status, done.stderr
        return (done.stdout + done.stderr).decode()

    run("db", "upgrade")
    run("person", "create", "ann")
    assert "name the provider with --issuer" in run("person", "link", "ann", "--sub", SUB, status=2)
    assert "no person 'bea'" in run("person", "link", "bea", "--sub", SUB, "--issuer", ISSUER, status=1)
    this = ("--sub", SUB, "--issuer", ISSUER)
    assert "is ann" in run("person", "link", "ann", *this)
    assert "linked already" in run("person", "link", "ann", *this, status=1)
    assert SUB in run("person", "list")
    (ann,) = json_lines(cli("person", "list", "--json", cwd=tmp_path).stdout)
    assert [(one["issuer"], one["sub"]) for one in ann["identities"]] == [(ISSUER, SUB)]

    store, now = Store.open(f"sqlite:///{tmp_path / DATABASE}", threshold=THRESHOLD), datetime.now(UTC)
    browser = "Firefox on Linux"
    secret = sessions.start_as(store, ISSUER, SUB, proved_at=now, now=now, browser=browser)
    store.close()
    assert secret is not None
    assert browser in run("session", "list")
    (open_one,) = json_lines(cli("session", "list", "--json", cwd=tmp_path).stdout)
    assert (open_one["name"], open_one["method"], open_one["person_id"]) == ("ann", "oidc", ann["id"])
    assert secret not in str(open_one)
    assert "ended" in run("session", "end", open_one["id"])
    assert "no such session" in run("session", "end", open_one["id"], status=1)
    assert "nobody any more" in run("person", "unlink", *this)
    assert "nobody signs in with this" in run("person", "unlink", *this, status=1)
