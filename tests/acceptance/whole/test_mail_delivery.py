"""The served gate sends digests that the commands ask for; a link in a mail asks for a sign-in and decides nothing."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from sqlalchemy import update

from tests.acceptance.site import open_site
from tests.conftest import THRESHOLD
from tests.mailing import Post, post_office
from tests.webhooking import queue
from vouchgate.cli.app import run
from vouchgate.storage.outgoing.mail import TABLE
from vouchgate.storage.store import Store

PAGES = "https://gate.example.org"


@pytest.fixture
def post(database_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Post]:
    """A mail server, and an environment that names it."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("VOUCHGATE_")]:
        monkeypatch.delenv(name)
    with post_office(password="not for logs") as post:
        for name, value in {
            "VOUCHGATE_DATABASE_URL": database_url,
            "VOUCHGATE_SMTP_URL": f"smtp://gate@127.0.0.1:{post.port}",
            "VOUCHGATE_SMTP_PASSWORD": "not for logs",
            "VOUCHGATE_MAIL_FROM": "gate@example.org",
            "VOUCHGATE_PUBLIC_URL": PAGES,
        }.items():
            monkeypatch.setenv(name, value)
        yield post


def command(capture: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> tuple[str, str]:
    """Standard output and standard error of a command, which must end with this status."""
    capture.readouterr()
    ended = run(("mail", *arguments))
    output, errors = capture.readouterr()
    assert ended == status, output + errors
    assert "not for logs" not in output + errors
    return output, errors


@pytest.mark.on("sqlite")
def test_a_digest_leads_to_its_items_and_decides_nothing(
    post: Post, database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    environment = {name: value for name, value in os.environ.items() if name.startswith("VOUCHGATE_")}
    now, store = datetime.now(UTC), Store.open(database_url, threshold=THRESHOLD)
    (item,) = queue(store, 1, now=now)
    added, _ = command(capsys, "add", "ann@example.org", "--owner", "ann", "--hourly")
    mail = added.strip()
    assert command(capsys, "test", mail)[0] == "Taken by the mail server.\n"
    assert post.messages()[0]["Subject"] == "Vouchgate: A test"
    assert post.arrived.acquire(timeout=120)
    due = now - timedelta(minutes=1)  # as if the hour had come while nothing was served
    store.writer.run((), lambda c: c.execute(update(TABLE).values(due_at=due))).result()
    with open_site(database_url, environment=environment) as gate:
        assert post.arrived.acquire(timeout=120)
        links = set(re.findall(rf"{PAGES}\S*", post.text()))
        assert links == {f"{PAGES}/review", f"{PAGES}/review/items/{item}"}
        for link in links:
            url = link.replace(PAGES, str(gate.caller().base_url).rstrip("/"))
            answer = httpx.get(url, follow_redirects=True)
            assert "v0v" not in answer.text
            assert "Sign in" in answer.text
        waiting = gate.reviewer("ann").get(f"/v1/reviews/{item}").json()
        assert (waiting["status"], waiting["version"]) == ("pending", 1)
        assert "not for logs" not in "".join(gate.running.output)
    store.close()


@pytest.mark.on("sqlite")
def test_the_commands(
    post: Post, database_url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "No digest goes by mail" in command(capsys, "list")[1]
    assert run(("owners", "create", "ann")) == 0
    added, _ = command(
        *(capsys, "add", "ann@example.org", "--owner", "ann", "--weekday", "mon", "--weekday", "fri"),
        *("--hour", "8", "--zone", "Europe/Berlin", "--quiet", "22:00-07:30"),
    )
    mail = added.strip()
    (row,) = [json.loads(line) for line in command(capsys, "list", "--json")[0].splitlines()]
    assert (row["id"], row["owners_now"], row["schedule"]["quiet"]) == (mail, ["ann"], [1320, 450])
    assert row["state"].startswith("due ")
    assert "There is nothing to tell" in command(capsys, "send", mail)[0]
    assert post.came == []
    post.rcpt = lambda address: "550 no such user"
    assert "550 no such user" in command(capsys, "test", mail, status=1)[1]
    monkeypatch.setenv("VOUCHGATE_OFFLINE", "true")
    assert "VOUCHGATE_OFFLINE" in command(capsys, "test", mail, status=1)[1]
    assert "not sent" in command(capsys, "list")[0]
    monkeypatch.delenv("VOUCHGATE_OFFLINE")
    for arguments, status, says in [
        (("add", "ann", "--owner", "ann"), 2, "ann@example.org"),
        (("add", "ann@example.org"), 2, "a person, or owners"),
        (("add", "ann@example.org", "--owner", "bob"), 2, "no owner 'bob'"),
        (("add", "ann@example.org", "--person", "bob"), 2, "no person 'bob'"),
        (("add", "ann@example.org", "--owner", "ann", "--zone", "Mars"), 2, "time zone 'Mars'"),
        (("add", "ann@example.org", "--owner", "ann", "--quiet", "22-7"), 2, "22:00-07:00"),
        (("add", "ann@example.org", "--owner", "ann", "--weekday", "monday"), 2, "sat"),
        (("test", "mail_1"), 1, "vouchgate mail list"),
        (("remove", "mail_1"), 1, "vouchgate mail list"),
    ]:
        output, errors = command(capsys, *arguments, status=status)
        assert says in errors
        assert (output, errors.count("\n")) == ("", 1)
    command(capsys, "remove", mail)
    assert command(capsys, "list", "--json")[0] == ""
