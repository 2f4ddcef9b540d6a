"""When digests are due, by whose clock, and what a mail server's URL means."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from vouchgate.settings import Settings, SettingsError, load_settings
from vouchgate.storage.outgoing.mail_schedule import MailSchedule, after_quiet, next_due
from vouchgate.workers.smtp import MailServer, Tls, parse_server

BERLIN = (
    "Europe/Berlin"  # 2026: an hour is skipped on 29 March at 2:00, and comes twice on 25 October from 2:00
)
NIGHT = (22 * 60, 7 * 60)


def local(schedule: MailSchedule, start: str, count: int) -> list[str]:
    """The next moments, by the clock of the schedule."""
    at = datetime.fromisoformat(start).replace(tzinfo=ZoneInfo(schedule.zone)).astimezone(UTC)
    found = []
    for _ in range(count):
        at = next_due(schedule, at)
        found.append(f"{at.astimezone(ZoneInfo(schedule.zone)):%a %d %H:%M %z}")
    return found


@pytest.mark.parametrize(
    ("schedule", "start", "moments"),
    [
        # daily, at the same hour of the wall over both changes
        ({"hours": (8,)}, "2026-03-28T08:00", ["Sun 29 08:00 +0200", "Mon 30 08:00 +0200"]),
        ({"hours": (8,)}, "2026-10-24T07:59", ["Sat 24 08:00 +0200", "Sun 25 08:00 +0100"]),
        # an hour that is skipped counts as the next one, one that comes twice once
        ({"hours": (2, 9)}, "2026-03-29T00:00", ["Sun 29 03:00 +0200", "Sun 29 09:00 +0200"]),
        ({"hours": (2, 9)}, "2026-10-25T00:00", ["Sun 25 02:00 +0200", "Sun 25 09:00 +0100"]),
        # weekdays
        ({"hours": (8, 17), "weekdays": (0, 4)}, "2026-11-20T08:00", ["Fri 20 17:00 +0100", "Mon 23 08:00 +0100"]),
        # quiet hours over midnight: once, when they end
        ({"hours": (21, 23, 3), "quiet": NIGHT}, "2026-11-20T20:00", ["Fri 20 21:00 +0100", "Sat 21 07:00 +0100"]),
        ({"hours": (23,), "quiet": NIGHT}, "2026-03-28T12:00", ["Sun 29 07:00 +0200", "Mon 30 07:00 +0200"]),
        ({"hours": (23,), "quiet": NIGHT}, "2026-10-24T12:00", ["Sun 25 07:00 +0100", "Mon 26 07:00 +0100"]),
        # quiet hours that end in the hour that is skipped, and in the one that comes twice
        ({"hours": (0,), "quiet": (0, 150)}, "2026-03-28T12:00", ["Sun 29 03:30 +0200", "Mon 30 02:30 +0200"]),
        ({"hours": (0,), "quiet": (0, 150)}, "2026-10-24T12:00", ["Sun 25 02:30 +0200", "Mon 26 02:30 +0100"]),
        # what would come on a day without digests waits for the next
        (
            {"hours": (8, 23), "weekdays": (0, 4), "quiet": NIGHT},
            "2026-11-20T09:00",
            ["Mon 23 08:00 +0100", "Fri 27 08:00 +0100"],
        ),
    ],
)  # fmt: skip
def test_when_it_is_due(schedule: dict[str, Any], start: str, moments: list[str]) -> None:
    assert local(MailSchedule(zone=BERLIN, **schedule), start, 2) == moments


@given(
    st.sets(st.integers(0, 23), min_size=1),
    st.none() | st.tuples(st.integers(0, 1439), st.integers(0, 1439)).filter(lambda pair: pair[0] != pair[1]),
    st.sampled_from(["UTC", BERLIN, "America/St_Johns", "Australia/Lord_Howe", "Pacific/Apia"]),
    st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1), timezones=st.just(UTC)),
)
def test_a_digest_a_day_at_least_and_never_in_quiet_hours(
    hours: set[int], quiet: tuple[int, int] | None, zone: str, start: datetime
) -> None:
    schedule = MailSchedule(hours=tuple(hours), zone=zone, quiet=quiet)
    moments = [start]
    for _ in range(5):
        moments.append(next_due(schedule, moments[-1]))
    for earlier, later in pairwise(moments):
        assert timedelta() < later - earlier <= timedelta(hours=49)
        assert after_quiet(schedule, later) == later


@pytest.mark.parametrize(
    "wrong",
    [
        {"hours": ()},
        {"hours": (24,)},
        {"hours": (8,), "weekdays": (7,)},
        {"hours": (8,), "zone": "Europe/Atlantis"},
        {"hours": (8,), "zone": "../../etc/passwd"},
        {"hours": (8,), "zone": "Europe"},
        {"hours": (8,), "quiet": (60, 60)},
        {"hours": (23,), "weekdays": (4,), "quiet": NIGHT},
    ],
)
def test_what_can_never_be_due_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        MailSchedule(**wrong)


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("smtp://mail.example.org", MailServer("mail.example.org", 587, Tls.STARTTLS)),
        (
            "smtp://a:" + "b%40c@mail.example.org:2525",
            MailServer("mail.example.org", 2525, Tls.STARTTLS, "a", "b@c"),
        ),
        ("smtps://mail.example.org/", MailServer("mail.example.org", 465, Tls.FROM_THE_START)),
        ("smtp://relay.example.org?starttls=no", MailServer("relay.example.org", 25, Tls.NONE)),
        ("smtp://127.0.0.1", MailServer("127.0.0.1", 25, Tls.NONE)),
        ("smtp://a:" + "b@[::1]:25", MailServer("::1", 25, Tls.NONE, "a", "b")),
        ("smtp://localhost?starttls=yes", MailServer("localhost", 587, Tls.STARTTLS)),
    ],
)
def test_servers(url: str, server: MailServer) -> None:
    assert parse_server(url) == server


@pytest.mark.parametrize(
    "url",
    [
        "mail.example.org",
        "https://mail.example.org",
        "smtp://",
        "smtp://mail.example.org:99999",
        "smtp://mail.example.org/inbox",
        "smtp://mail.example.org?tls=no",
        "smtp://mail.example.org?starttls=maybe",
        "smtps://mail.example.org?starttls=no",
        "smtp://gate@mail.example.org",
        "smtp://gate:" + "hunter2@mail.example.org?starttls=no",
    ],
)
def test_servers_that_are_refused_without_a_word_of_the_password(url: str) -> None:
    with pytest.raises(ValueError, match=r"smtp://|password") as refused:
        parse_server(url)
    assert "hunter2" not in str(refused.value)


MAIL = {
    "VOUCHGATE_SMTP_URL": "smtp://gate@mail.example.org",
    "VOUCHGATE_SMTP_PASSWORD": "hunter2",
    "VOUCHGATE_MAIL_FROM": "gate@example.org",
    "VOUCHGATE_PUBLIC_URL": "https://gate.example.org",
}


def settings(monkeypatch: pytest.MonkeyPatch, values: dict[str, str]) -> Settings:
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    return load_settings(values)


def test_settings_of_mail_go_together_and_are_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    made = settings(
        monkeypatch,
        MAIL
        | {"VOUCHGATE_SMTP_URL": "smtp://mail.example.org?starttls=no"}
        | {"VOUCHGATE_SMTP_PASSWORD": ""},
    )
    assert "mail.example.org" not in repr(made)
    made = settings(monkeypatch, MAIL)
    assert "hunter2" not in repr(made) + made.model_dump_json()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"VOUCHGATE_MAIL_FROM": ""}, "VOUCHGATE_MAIL_FROM"),
        ({"VOUCHGATE_PUBLIC_URL": ""}, "VOUCHGATE_PUBLIC_URL"),
        ({"VOUCHGATE_SMTP_URL": ""}, "VOUCHGATE_SMTP_URL"),
        ({"VOUCHGATE_MAIL_FROM": "Gate <gate@example.org>"}, "VOUCHGATE_MAIL_FROM"),
        ({"VOUCHGATE_SMTP_URL": "smtp://gate@mail.example.org?starttls=no"}, "over TLS only"),
    ],
)
def test_half_a_setup_does_not_start(
    monkeypatch: pytest.MonkeyPatch, change: dict[str, str], says: str
) -> None:
    with pytest.raises(SettingsError, match=says) as refused:
        settings(monkeypatch, MAIL | change)
    assert "hunter2" not in str(refused.value)
