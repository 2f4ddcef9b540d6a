"""The served gate tells owners what waits, the commands make and look after webhooks, and a receiver verifies what
comes with the library that other people use."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook as Consumer

from tests.acceptance.site import open_site, queue
from tests.web import Answer, WebServer, web_server
from vouchgate.cli.app import run

PAGES = "https://gate.example.org"
ENVIRONMENT = {"VOUCHGATE_ALLOW_NETWORKS": "127.0.0.0/8", "VOUCHGATE_PUBLIC_URL": PAGES}


@dataclass
class Desk:
    """The operator at the command line, on the database of a service, and a receiver of messages."""

    site: WebServer
    capture: pytest.CaptureFixture[str]

    def command(self, *arguments: str, status: int = 0) -> tuple[str, str]:
        """Standard output and standard error of a command, which must end with this status."""
        self.capture.readouterr()
        ended = run(arguments)
        output, errors = self.capture.readouterr()
        assert ended == status, output + errors
        return output, errors

    def create(self, owner: str) -> tuple[str, str]:
        """A webhook of this owner: its id and its secret."""
        self.command("owners", "create", owner)
        output, errors = self.command("webhook", "create", "--owner", owner, "--url", f"{self.site.url}/hook")
        secret = output.removesuffix("\n")
        assert len(secret) == len("whsec_") + 44
        assert secret not in errors
        return errors.split()[1], secret

    def listed(self, hook: str) -> dict[str, Any]:
        """What `webhook list` says of it."""
        output, _ = self.command("webhook", "list", "--json")
        (found,) = (row for row in map(json.loads, output.splitlines()) if row["id"] == hook)
        assert isinstance(found, dict)
        return found

    def messages(self, secret: str, count: int) -> list[dict[str, Any]]:
        """The messages that came, once there are so many, verified by somebody else's code."""
        until(lambda: len(self.site.asked) >= count)
        verify = Consumer(secret).verify
        return [verify(asked.body, dict(asked.headers)) for asked in self.site.asked]


@pytest.fixture
def desk(
    database_url: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Iterator[Desk]:
    """With a receiver that takes everything in."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("VOUCHGATE_")]:
        monkeypatch.delenv(name)
    for name, value in {**ENVIRONMENT, "VOUCHGATE_DATABASE_URL": database_url}.items():
        monkeypatch.setenv(name, value)
    with web_server({"/hook": Answer()}) as site:
        yield Desk(site, capsys)


def until(look: Callable[[], Any], seconds: float = 120) -> Any:
    """What `look` gives, once that is something."""
    end = time.monotonic() + seconds
    while not (seen := look()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)
    return seen


@pytest.mark.on("postgresql")
def test_an_owner_is_told_whatever_is_killed_or_gone(desk: Desk, database_url: str) -> None:
    hook, secret = desk.create("ann")
    with open_site(database_url, environment=ENVIRONMENT) as gate:
        items = [queue(gate.agent("ann"), f"Valve v{n}v stands in cellar c{n}c.") for n in range(3)]
        gate.running.process.send_signal(signal.SIGKILL)
        gate.running.process.wait(120)
    assert desk.site.asked == []
    desk.site.routes["/hook"] = Answer(status=410)
    with open_site(database_url, environment=ENVIRONMENT) as gate:
        (message,) = desk.messages(secret, 1)
        assert message["type"] == "review.waiting"
        assert [item["queue_id"] for item in message["data"]["queued"]] == items
        assert (message["data"]["waiting"], message["data"]["url"]) == (3, f"{PAGES}/review")
        (degraded,) = until(lambda: gate.caller().get("/readyz").json()["degraded"])
        assert degraded.startswith("A webhook has not been answered since ")
        assert "given up after 1 try since" in desk.listed(hook)["state"]
        desk.site.routes["/hook"] = Answer()
        desk.command("webhook", "resume", hook)
        assert desk.messages(secret, 2) == [message] * 2
        assert len({asked.headers["webhook-id"] for asked in desk.site.asked}) == 1
        until(lambda: not gate.caller().get("/readyz").json()["degraded"])
        assert desk.listed(hook)["state"] == "well"
        page = until(lambda: (text := gate.caller().get("/metrics").text).count('result="told"') and text)
        for result in ("given_up", "told"):
            assert f'vouchgate_webhook_messages_total{{result="{result}"}} 1.0' in page
        desk.command("webhook", "remove", hook)
        actions = gate.actions("ann")
        assert actions == ["owner.created", "webhook.created", *["claim.queued"] * 3, "webhook.removed"]
        assert secret not in "".join(gate.running.output)


@pytest.mark.on("sqlite")
def test_the_commands(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "There is no webhook" in desk.command("webhook", "list")[1]
    hook, secret = desk.create("ann")
    (table, _), (rows, _) = desk.command("webhook", "list"), desk.command("webhook", "list", "--json")
    assert hook in table
    assert secret not in table + rows
    assert desk.command("webhook", "test", hook)[0] == "Taken in: HTTP status 200.\n"
    (message,) = desk.messages(secret, 1)
    assert (message["type"], message["data"]["owner_id"]) == ("webhook.test", "ann")
    desk.site.routes["/hook"] = Answer(status=302, headers={"Location": "/elsewhere"})
    output, _ = desk.command("webhook", "test", hook, status=1)
    assert output.startswith("Not taken in: HTTP status 302: redirects are not followed")
    monkeypatch.delenv("VOUCHGATE_ALLOW_NETWORKS")
    output, _ = desk.command("webhook", "test", hook, status=1)
    assert "refused" in output
    monkeypatch.setenv("VOUCHGATE_OFFLINE", "true")
    assert "VOUCHGATE_OFFLINE" in desk.command("webhook", "test", hook, status=1)[1]
    assert desk.listed(hook)["state"] == "not sent: offline"
    assert len(desk.site.asked) == 2


@pytest.mark.on("sqlite")
def test_what_is_wrong_is_said_in_one_line(desk: Desk) -> None:
    desk.command("owners", "create", "ann")
    assert (
        "not https" in desk.command("webhook", "create", "--owner", "ann", "--url", "http://example.com/")[1]
    )
    hints = desk.command("webhook", "create", "--owner", "ann", "--url", "https://example.com/")[1]
    assert "not https" not in hints
    refused = ("webhook", "create", "--owner", "anne", "--url", "https://example.com/")
    for _ in range(2):  # nobody became an owner by that
        assert "no owner 'anne' (did you mean ann?)" in desk.command(*refused, status=1)[1]
    for arguments, status, says in [
        (("create", "--owner", "ann", "--url", "ftp://example.com/"), 2, "only http and https"),
        (("create", "--owner", "ann", "--url", "https://me:pw@example.com/"), 2, "user name"),
        (("create", "--owner", "", "--url", "https://example.com/"), 1, "no owner ''"),
        (("create", "--url", "https://example.com/"), 2, "--owner"),
        (("test", "hook_1"), 1, "vouchgate webhook list"),
        (("resume", "hook_1"), 1, "vouchgate webhook list"),
        (("remove", "hook_1"), 1, "vouchgate webhook list"),
        (("lst",), 2, "No such command"),
    ]:
        output, errors = desk.command("webhook", *arguments, status=status)
        assert says in errors
        assert (output, errors.count("\n")) == ("", 1)
