"""Issues on GitHub, GitLab and Forgejo, against real servers that answer as these do, or badly, or late."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import re
import ssl
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.web import Answer, Asked, Route, WebServer, web_server
from vouchgate.ingest.claims.bounds import TEXT_CHARACTERS
from vouchgate.ingest.claims.citation import Citation, CitationType
from vouchgate.ingest.claims.source import Found, Missing, SourceReading, Standing, Unreachable
from vouchgate.ingest.net.client import Outbound
from vouchgate.ingest.sources.forges.forge import Forge
from vouchgate.ingest.sources.forges.forgejo import Forgejo
from vouchgate.ingest.sources.forges.github import GitHub
from vouchgate.ingest.sources.forges.gitlab import GitLab

HERE = ipaddress.ip_network("127.0.0.0/8")
TLS = ssl.SSLContext(
    ssl.PROTOCOL_TLS_CLIENT
)  # nothing here is asked over TLS; making one of the public kind takes time
NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
JSON = {"Content-Type": "application/json; charset=utf-8"}
API = "/repos/acme/app"
NOT_FOUND = Answer(
    '{"message":"Not Found","documentation_url":"https://docs.example","status":"404"}', 404, JSON
)


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def site() -> Iterator[WebServer]:
    with web_server() as server:
        yield server


def answer(document: object, status: int = 200, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(json.dumps(document), status, {**JSON, **named})


def issue(key: str) -> Citation:
    return Citation(type=CitationType.ISSUE, value=key.removeprefix("issue:"), key=key)


def page(url: str) -> Citation:
    return Citation(type=CitationType.URL, value=url, key=f"url:{url}")


def run(
    work: Callable[[Forge], Awaitable[SourceReading]],
    base: str,
    kind: type[Forge] = GitHub,
    *,
    token: str | None = None,
    repository: str | None = "acme/app",
    clock: Callable[[], datetime] = lambda: NOW,
    seconds: float = 30.0,
) -> SourceReading:
    async def running() -> SourceReading:
        outbound = Outbound(allow_networks=(HERE,), spacing_seconds=0, tls=TLS)
        return await work(
            kind(outbound, base=base, token=token, repository=repository, clock=clock, seconds=seconds)
        )

    return asyncio.run(running())


def read(site: WebServer, key: str = "issue:#12", **options: Any) -> SourceReading:
    return run(lambda forge: forge.read(issue(key)), site.url, **options)


def read_url(site: WebServer, path: str, **options: Any) -> SourceReading:
    return run(lambda forge: forge.read_url(page(site.url + path)), site.url, **options)


def found(reading: SourceReading) -> Found:
    assert isinstance(reading, Found), reading
    return reading


def missing(reading: SourceReading) -> Missing:
    assert isinstance(reading, Missing), reading
    return reading


def unreachable(reading: SourceReading, code: str) -> Unreachable:
    assert isinstance(reading, Unreachable), reading
    assert reading.code == code, reading
    return reading


def github_issue(**changes: object) -> dict[str, object]:
    """An issue as GitHub's REST API gives it, without most of what is not read."""
    return {
        "url": "https://api.github.com/repos/acme/app/issues/12",
        "repository_url": "https://api.github.com/repos/acme/app",
        "html_url": "https://github.com/acme/app/issues/12",
        "id": 998877,
        "number": 12,
        "title": "Uploads stop at 2 GB",
        "user": {"login": "ada", "id": 1},
        "labels": [
            {"id": 5, "name": "bug", "color": "d73a4a"},
            {"id": 6, "name": "storage", "color": "eeeeee"},
        ],
        "state": "open",
        "locked": False,
        "comments": 3,
        "created_at": "2025-01-02T03:04:05Z",
        "updated_at": "2025-06-07T08:09:10Z",
        "closed_at": None,
        "body": "A file of more than 2 GB is cut.\r\n\r\n<!-- Thanks for the report! -->See https://docs.example.org/limits.",
        "state_reason": None,
        "active_lock_reason": None,
    } | changes


def github_repository(**changes: object) -> dict[str, object]:
    return {
        "id": 1,
        "full_name": "acme/app",
        "private": False,
        "has_issues": True,
        "has_discussions": False,
    } | changes


# --- GitHub: found


def test_an_issue_is_found_with_what_it_says(site: WebServer) -> None:
    site.routes[f"{API}/issues/12"] = answer(github_issue())
    reading = found(read(site))
    assert reading.source_id == "issue:acme/app#12"
    assert reading.standing is Standing.IN_FORCE
    assert reading.title == "Uploads stop at 2 GB"
    assert reading.text == (
        "Uploads stop at 2 GB\n\nIssue 12 is open.\n\nLabels: bug, storage\n\n"
        "A file of more than 2 GB is cut.\n\nSee https://docs.example.org/limits."
    )
    assert reading.detail == "Issue 12 of acme/app “Uploads stop at 2 GB” is open."
    assert reading.dated == datetime(2025, 6, 7, 8, 9, 10, tzinfo=UTC)
    assert reading.site == "github.com/acme"
    assert reading.links == ("example.org",)
    assert len(reading.digest) == 64
    assert not reading.official


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"state": "closed", "state_reason": "completed"}, "Issue 12 is closed as completed."),
        ({"state": "closed", "state_reason": "not_planned"}, "Issue 12 is closed as not planned."),
        (
            {"state": "closed", "state_reason": "duplicate", "locked": True},
            "Issue 12 is closed as a duplicate and locked.",
        ),
        ({"state": "closed", "state_reason": "a new one"}, "Issue 12 is closed."),
        (
            {"pull_request": {"merged_at": "2025-06-07T08:09:10Z"}, "state": "closed"},
            "Pull request 12 was merged.",
        ),
        (
            {"pull_request": {"merged_at": None}, "state": "closed"},
            "Pull request 12 was closed without being merged.",
        ),
        ({"pull_request": {"merged_at": None}, "draft": True}, "Pull request 12 is open as a draft."),
        ({"body": None, "labels": ["bug"]}, "Labels: bug"),
    ],
)
def test_its_state_is_part_of_the_text(site: WebServer, changes: dict[str, object], status: str) -> None:
    site.routes[f"{API}/issues/12"] = answer(github_issue(**changes))
    assert status in found(read(site)).text.split("\n\n")


def test_another_repository_is_asked_when_one_is_named(site: WebServer) -> None:
    changes = {"repository_url": "https://api.github.com/repos/Big-Co/lib.js", "number": 7}
    site.routes["/repos/big-co/lib.js/issues/7"] = answer(github_issue(**changes))
    assert found(read(site, "issue:big-co/lib.js#7", repository=None)).source_id == "issue:big-co/lib.js#7"


def test_what_is_sent_along(site: WebServer) -> None:
    site.routes[f"{API}/issues/12"] = answer(github_issue())
    found(read(site, token="t0p-s3cret"))
    (asked,) = site.asked
    assert asked.headers["accept"] == "application/vnd.github+json"
    assert asked.headers["x-github-api-version"] == "2022-11-28"
    assert asked.headers["authorization"] == "Bearer t0p-s3cret"


def test_a_transferred_issue_is_named_as_it_is_called_now(site: WebServer) -> None:
    site.routes[f"{API}/issues/12"] = Answer(
        "{}", 301, {**JSON, "Location": f"{site.url}/repositories/9/issues/3"}
    )
    there = github_issue(number=3, repository_url="https://api.github.com/repos/acme/Storage")
    site.routes["/repositories/9/issues/3"] = answer(there)
    reading = found(read(site))
    assert reading.source_id == "issue:acme/storage#3"
    assert reading.detail.startswith("acme/app#12 was moved: Issue 3 of acme/Storage")


def test_another_host_neither_gets_the_token_nor_is_believed(site: WebServer) -> None:
    with web_server() as other:
        other.routes["/x"] = answer(github_issue())
        site.routes[f"{API}/issues/12"] = Answer("", 301, {**JSON, "Location": f"{other.url}/x"})
        unreachable(read(site, token="t0p-s3cret"), "odd_answer")
        assert [asked.path for asked in other.asked] == ["/x"]
        assert "authorization" not in other.asked[0].headers


# --- GitHub: missing, or not to be seen


def test_an_issue_that_a_visible_repository_does_not_have_is_missing(site: WebServer) -> None:
    site.routes[f"{API}/issues/12"] = NOT_FOUND
    site.routes[API] = answer(github_repository())
    reading = missing(read(site))
    assert reading.status == 404
    assert "acme/app" in reading.detail
    assert site.paths() == [f"GET {API}/issues/12", f"GET {API}"]


def test_a_deleted_issue_is_missing(site: WebServer) -> None:
    site.routes[f"{API}/issues/12"] = answer({"message": "This issue was deleted"}, 410)
    assert missing(read(site)).status == 410


def test_a_repository_of_an_owner_that_does_not_exist_is_missing(site: WebServer) -> None:
    reading = missing(read(site, "issue:no-such-firm/app#1"))
    assert "no-such-firm/app" in reading.detail
    assert site.paths()[-1] == "GET /users/no-such-firm"


@pytest.mark.parametrize("token", [None, "t0p-s3cret"])
def test_a_repository_that_may_be_private_is_not_missing(site: WebServer, token: str | None) -> None:
    site.routes["/users/acme"] = answer({"login": "acme", "type": "Organization"})
    reading = unreachable(read(site, "issue:acme/secret#1", token=token), "forbidden")
    assert "is private, or does not exist" in reading.detail
    assert "t0p-s3cret" not in reading.detail


def test_the_configured_repository_is_never_missing(site: WebServer) -> None:
    reading = unreachable(read(site), "forbidden")
    assert "VOUCHGATE_GITHUB_REPO" in reading.detail
    assert "VOUCHGATE_GITHUB_TOKEN" in reading.detail


def test_a_number_may_be_that_of_a_discussion(site: WebServer) -> None:
    site.routes[f"{API}/issues/12"] = NOT_FOUND
    site.routes[API] = answer(github_repository(has_discussions=True))
    missing(read(site))
    site.routes["/acme/app/discussions/12"] = Answer("<title>Which port?</title>")
    reading = unreachable(read(site), "not_supported")
    assert f"{site.url}/acme/app/discussions/12" in reading.detail
    site.routes[API] = answer(github_repository(has_discussions=True, private=True))
    unreachable(read(site, token="t"), "not_supported")


def test_without_a_repository_a_bare_number_means_nothing(site: WebServer) -> None:
    reading = unreachable(read(site, repository=None), "not_supported")
    assert "VOUCHGATE_GITHUB_REPO" in reading.detail
    assert site.asked == []


# --- every forge: what is no answer

ODD: list[tuple[str, Route, str]] = [
    ("time-out", Answer("{}", 200, JSON, delay=1.0), "timeout"),
    ("unauthorised", answer({"message": "Bad credentials"}, 401), "forbidden"),
    ("forbidden", answer({"message": "Resource not accessible by personal access token"}, 403), "forbidden"),
    ("blocked", answer({"message": "Repository access blocked"}, 451), "forbidden"),
    ("failed", answer({"message": "Server Error"}, 502), "server_error"),
    ("teapot", answer({}, 418), "odd_answer"),
    ("no content", Answer("", 204, JSON), "odd_answer"),
    ("empty", Answer("", 200, JSON), "odd_answer"),
    ("a page", Answer("<html><title>Sign in</title></html>"), "odd_answer"),
    ("cut off", Answer('{"number": 12, "title": "Up', 200, JSON), "odd_answer"),
    ("a list", answer([github_issue()]), "odd_answer"),
    ("null", answer(None), "odd_answer"),
    ("deep", Answer("[" * 100_000, 200, JSON), "odd_answer"),
    ("huge", Answer('{"title": "' + "x" * 2_100_000 + '"}', 200, JSON), "odd_answer"),
    ("not text", Answer(b'{"title": "\xff\xfe"}', 200, JSON), "odd_answer"),
]


@pytest.mark.parametrize(("route", "code"), [row[1:] for row in ODD], ids=[row[0] for row in ODD])
@pytest.mark.parametrize(
    ("kind", "path"),
    [
        (GitHub, f"{API}/issues/12"),
        (GitLab, "/api/v4/projects/acme%2Fapp/issues/12"),
        (Forgejo, "/api/v1/repos/acme/app/issues/12"),
    ],
)
def test_what_is_no_answer(site: WebServer, kind: type[Forge], path: str, route: Route, code: str) -> None:
    site.routes[path] = route
    unreachable(read(site, kind=kind, seconds=0.2 if code == "timeout" else 5.0), code)
    assert site.paths() == [f"GET {path}"]


@pytest.mark.parametrize(
    "changes",
    [
        {"number": 13},
        {"number": "12"},
        {"repository_url": "https://api.github.com/repos/acme/other"},
        {"title": None},
        {"title": ["a"]},
        {"state": "hidden"},
        {"state": 1},
        {"body": 7},
        {"updated_at": "yesterday"},
        {"updated_at": []},
        {"labels": "bug"},
        {"pull_request": []},
        {"html_url": None},
    ],
)
def test_a_wrong_value_is_no_answer(site: WebServer, changes: dict[str, object]) -> None:
    site.routes[f"{API}/issues/12"] = answer(github_issue(**changes))
    unreachable(read(site), "odd_answer")


def test_a_page_in_place_of_the_repository_is_no_answer(site: WebServer) -> None:
    site.routes[f"{API}/issues/12"] = NOT_FOUND
    site.routes[API] = Answer("<html>Sign in</html>")
    unreachable(read(site), "odd_answer")


def test_a_server_that_is_not_there(site: WebServer) -> None:
    unreachable(run(lambda forge: forge.read(issue("issue:#12")), "http://127.0.0.1:9"), "connection")


def test_a_refused_address_is_not_asked() -> None:
    unreachable(run(lambda forge: forge.read(issue("issue:#12")), "http://10.1.2.3:8080"), "refused")


@pytest.mark.parametrize("kind", [GitHub, GitLab, Forgejo])
@pytest.mark.parametrize(
    "key",
    [
        "issue:../users#1",
        "issue:acme/..#1",
        "issue:./app#1",
        "issue:acme/app/../other#1",
        "issue:acme/app?x=1#1",
        "issue:acme/app%2f..#1",
        "issue:acme/a pp#1",
        "issue:acme#1",
        "issue:acme//app#1",
        "issue:#0",
        "issue:#12/comments",
        "issue:#99999999999999",
        "issue:acme/app#1\n",
        "adr:12",
    ],
)
def test_nothing_but_names_reaches_the_forge(site: WebServer, kind: type[Forge], key: str) -> None:
    unreachable(read(site, key, kind=kind), "not_supported")
    assert site.asked == []


def test_a_repository_that_cannot_be_one_is_refused_at_the_start(site: WebServer) -> None:
    with pytest.raises(ValueError, match="VOUCHGATE_GITHUB_REPO"):
        read(site, repository="acme/..")


def test_text_of_any_kind_can_be_kept(site: WebServer) -> None:
    body = "nul \x00 bell \x07 end" + "\n" + "word " * 60_000
    site.routes[f"{API}/issues/12"] = answer(github_issue(title="A\x00B\n\nC" + "x" * 400, body=body))
    reading = found(read(site))
    assert reading.title.startswith("A B C")
    assert len(reading.title) == 300
    assert len(reading.text) == TEXT_CHARACTERS
    assert "\x00" not in reading.text


# --- rates


def reset(after: timedelta) -> str:
    return str(int((NOW + after).timestamp()))


REFUSALS = [
    (
        answer(
            {"message": "API rate limit exceeded"},
            403,
            X_RateLimit_Remaining="0",
            X_RateLimit_Reset=reset(timedelta(minutes=9)),
        ),
        timedelta(minutes=9),
    ),
    (
        answer(
            {"message": "You have exceeded a secondary rate limit."},
            403,
            Retry_After="30",
            X_RateLimit_Remaining="50",
        ),
        timedelta(seconds=30),
    ),
    (answer({"message": "You have exceeded a secondary rate limit."}, 403), timedelta(minutes=1)),
    (answer({}, 429), timedelta(minutes=1)),
    (answer({}, 429, Retry_After="Wed, 04 Mar 2026 12:05:00 GMT"), timedelta(minutes=5)),
    (answer({}, 429, Retry_After="999999999"), timedelta(hours=1)),
    (
        answer({}, 429, RateLimit_Remaining="0", RateLimit_Reset=reset(timedelta(days=900))),
        timedelta(hours=1),
    ),
    (answer({}, 429, Retry_After="later", X_RateLimit_Reset="soon"), timedelta(minutes=1)),
]


@pytest.mark.parametrize(("refusal", "pause"), REFUSALS)
def test_a_refusal_for_the_rate_is_heeded_by_every_later_reading(
    site: WebServer, refusal: Answer, pause: timedelta
) -> None:
    site.routes[f"{API}/issues/12"] = refusal
    clock = Clock()

    async def twice(forge: Forge) -> SourceReading:
        first = unreachable(await forge.read(issue("issue:#12")), "rate_limited")
        assert first.retry_after == NOW + pause
        clock.now = NOW + pause - timedelta(seconds=1)
        second = unreachable(await forge.read(issue("issue:#12")), "rate_limited")
        assert second.retry_after == NOW + pause
        assert len(site.asked) == 1
        return second

    run(twice, site.url, clock=clock)


def test_after_the_pause_it_is_asked_again(site: WebServer) -> None:
    site.routes[f"{API}/issues/12"] = answer(
        {}, 403, X_RateLimit_Remaining="0", X_RateLimit_Reset=reset(timedelta(minutes=9))
    )
    clock = Clock()

    async def again(forge: Forge) -> SourceReading:
        await forge.read(issue("issue:#12"))
        site.routes[f"{API}/issues/12"] = answer(github_issue())
        clock.now = NOW + timedelta(minutes=9)
        return await forge.read(issue("issue:#12"))

    found(run(again, site.url, clock=clock))


def test_of_many_readings_at_once_two_ask_before_the_refusal_is_known(site: WebServer) -> None:
    refusal = answer({}, 403, X_RateLimit_Remaining="0", X_RateLimit_Reset=reset(timedelta(minutes=9)))
    site.routes.update({f"{API}/issues/{number}": refusal for number in range(1, 41)})

    async def many(forge: Forge) -> SourceReading:
        readings = await asyncio.gather(*(forge.read(issue(f"issue:#{number}")) for number in range(1, 41)))
        for reading in readings:
            unreachable(reading, "rate_limited")
        return readings[0]

    run(many, site.url)
    assert len(site.asked) <= 2


@pytest.mark.parametrize("left", ["0", "1", "2"])
def test_with_hardly_any_requests_left_no_reading_is_begun(site: WebServer, left: str) -> None:
    site.routes[f"{API}/issues/12"] = answer(
        github_issue(), X_RateLimit_Remaining=left, X_RateLimit_Reset=reset(timedelta(minutes=20))
    )

    async def twice(forge: Forge) -> SourceReading:
        found(await forge.read(issue("issue:#12")))
        return await forge.read(issue("issue:#12"))

    reading = unreachable(run(twice, site.url), "rate_limited")
    assert reading.retry_after == NOW + timedelta(minutes=20)
    assert len(site.asked) == 1


def test_a_reading_that_was_begun_may_use_the_last_requests(site: WebServer) -> None:
    site.routes[f"{API}/issues/12"] = answer(
        {}, 404, X_RateLimit_Remaining="2", X_RateLimit_Reset=reset(timedelta(minutes=20))
    )
    site.routes[API] = answer(github_repository())
    missing(read(site))


# --- URLs


@pytest.mark.parametrize(
    ("kind", "base", "url", "key"),
    [
        (GitHub, "https://api.github.com", "https://github.com/Acme/App/issues/12", "issue:acme/app#12"),
        (GitHub, "https://api.github.com", "https://www.github.com/acme/app/pull/12/files#diff-1", "issue:acme/app#12"),
        (GitHub, "https://api.github.com/", "http://github.com/acme/app/issues/12?x=1#issue-5", "issue:acme/app#12"),
        (GitHub, "https://api.github.com", "https://github.com/acme/app/discussions/12", None),
        (GitHub, "https://api.github.com", "https://github.com/acme/app/issues", None),
        (GitHub, "https://api.github.com", "https://github.com/acme/app/issues/new", None),
        (GitHub, "https://api.github.com", "https://github.com/acme/app/pull/12.diff", None),
        (GitHub, "https://api.github.com", "https://github.com/acme/../issues/12", None),
        (GitHub, "https://api.github.com", "https://github.com.example.org/acme/app/issues/12", None),
        (GitHub, "https://api.github.com", "https://github.com@example.org/acme/app/issues/12", None),
        (GitHub, "https://api.github.com", "https://github.com:8443/acme/app/issues/12", None),
        (GitHub, "https://api.github.com", "https://[::1/acme/app/issues/12", None),
        (GitHub, "https://git.example.org/api/v3", "https://git.example.org/acme/app/issues/12", "issue:acme/app#12"),
        (GitHub, "https://git.example.org/api/v3", "https://github.com/acme/app/issues/12", None),
        (GitHub, "https://api.firm.ghe.com", "https://firm.ghe.com/acme/app/issues/12", "issue:acme/app#12"),
        (GitLab, "https://gitlab.com", "https://gitlab.com/a/b/c/-/issues/12#note_5", "issue:a/b/c#12"),
        (GitLab, "https://gitlab.com", "https://gitlab.com/a/b/-/work_items/12", "issue:a/b#12"),
        (GitLab, "https://gitlab.com", "https://gitlab.com/a/b/-/merge_requests/12/diffs", "issue:a/b!12"),
        (GitLab, "https://gitlab.com", "https://gitlab.com/a/b/issues/12", "issue:a/b#12"),
        (GitLab, "https://gitlab.com", "https://gitlab.com/a/-/issues/12", None),
        (GitLab, "https://example.org/gitlab/", "https://example.org/gitlab/a/b/-/issues/12", "issue:a/b#12"),
        (GitLab, "https://example.org/gitlab", "https://example.org/a/b/-/issues/12", None),
        (Forgejo, "https://codeberg.org", "https://codeberg.org/a/b/pulls/12", "issue:a/b#12"),
        (Forgejo, "https://codeberg.org", "https://codeberg.org/a/b/wiki/12", None),
    ],
)  # fmt: skip
def test_which_pages_are_issues(kind: type[Forge], base: str, url: str, key: str | None) -> None:
    forge = kind(Outbound(tls=TLS), base=base, clock=lambda: NOW)
    assert forge.issue_at(url) == key


@given(st.text(max_size=60), st.sampled_from([GitHub, GitLab, Forgejo]))
def test_no_url_is_too_odd_to_be_looked_at(path: str, kind: type[Forge]) -> None:
    forge = kind(Outbound(tls=TLS), base="https://git.example.org", clock=lambda: NOW)
    for url in (path, f"https://git.example.org/{path}", f"https://git.example.org/a/b/issues/1{path}"):
        key = forge.issue_at(url)
        assert key is None or re.fullmatch(r"issue:[a-z0-9_.-]+(/[a-z0-9_.-]+)+[#!][1-9][0-9]*", key)


def test_a_page_is_read_through_the_api(site: WebServer) -> None:
    site.routes[f"{API}/issues/12"] = answer(github_issue(pull_request={"merged_at": None}))
    reading = found(read_url(site, "/Acme/App/pull/12/files", repository=None))
    assert reading.source_id == "issue:acme/app#12"
    assert reading.citation.type is CitationType.URL
    assert site.paths() == [f"GET {API}/issues/12"]


def test_a_page_of_another_place_is_not_asked_for(site: WebServer) -> None:
    reading = run(lambda forge: forge.read_url(page("https://example.org/a/b/issues/1")), site.url)
    unreachable(reading, "not_supported")
    assert site.asked == []


def test_a_cited_comment_is_part_of_the_text(site: WebServer) -> None:
    site.routes[f"{API}/issues/12"] = answer(github_issue())
    site.routes[f"{API}/issues/comments/77"] = answer(
        {"id": 77, "body": "Fixed by chunked uploads.", "issue_url": f"https://api.github.com{API}/issues/12"}
    )
    reading = found(read_url(site, "/acme/app/issues/12#issuecomment-77"))
    assert reading.text.endswith("\n\nFixed by chunked uploads.")
    missing(read_url(site, "/acme/app/issues/12#issuecomment-78"))


def test_a_comment_of_another_issue_is_missing(site: WebServer) -> None:
    site.routes[f"{API}/issues/12"] = answer(github_issue())
    site.routes[f"{API}/issues/comments/77"] = answer(
        {"id": 77, "body": "Elsewhere.", "issue_url": f"https://api.github.com{API}/issues/112"}
    )
    missing(read_url(site, "/acme/app/issues/12#issuecomment-77"))


def test_a_comment_on_a_line_of_a_pull_request(site: WebServer) -> None:
    site.routes[f"{API}/issues/12"] = answer(github_issue(pull_request={"merged_at": None}))
    site.routes[f"{API}/pulls/comments/5"] = answer(
        {"id": 5, "body": "Use a larger chunk.", "pull_request_url": f"https://api.github.com{API}/pulls/12"}
    )
    assert "Use a larger chunk." in found(read_url(site, "/acme/app/pull/12#discussion_r5")).text


# --- GitLab


def gitlab_issue(**changes: object) -> dict[str, object]:
    return {
        "id": 41,
        "iid": 12,
        "project_id": 5,
        "title": "Uploads stop at 2 GB",
        "description": "A file is cut.",
        "state": "opened",
        "updated_at": "2025-06-07T08:09:10.123Z",
        "closed_at": None,
        "labels": ["bug"],
        "moved_to_id": None,
        "confidential": False,
        "discussion_locked": None,
        "web_url": "https://gitlab.com/acme/tools/app/-/issues/12",
        "references": {"short": "#12", "relative": "#12", "full": "acme/tools/app#12"},
    } | changes


LAB = "/api/v4/projects/acme%2Ftools%2Fapp"


def gitlab(site: WebServer, key: str = "issue:#12", **options: Any) -> SourceReading:
    return read(site, key, kind=GitLab, repository="acme/tools/app", **options)


def test_gitlab_an_issue(site: WebServer) -> None:
    site.routes[f"{LAB}/issues/12"] = answer(gitlab_issue())
    reading = found(gitlab(site, token="glpat-1"))
    assert reading.source_id == "issue:acme/tools/app#12"
    assert reading.text == "Uploads stop at 2 GB\n\nIssue 12 is open.\n\nLabels: bug\n\nA file is cut."
    assert site.asked[0].headers["private-token"] == "glpat-1"


def test_gitlab_a_merge_request(site: WebServer) -> None:
    document = gitlab_issue(state="merged", draft=False, references={"full": "acme/tools/app!12"})
    site.routes[f"{LAB}/merge_requests/12"] = answer(document)
    reading = found(read_url(site, "/acme/tools/app/-/merge_requests/12", kind=GitLab))
    assert reading.source_id == "issue:acme/tools/app!12"
    assert "Merge request 12 was merged." in reading.text


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"state": "closed"}, "is closed."),
        ({"state": "closed", "moved_to_id": 99}, "is closed, because it was moved to another project."),
        ({"discussion_locked": True}, "is open and locked."),
    ],
)
def test_gitlab_states(site: WebServer, changes: dict[str, object], status: str) -> None:
    site.routes[f"{LAB}/issues/12"] = answer(gitlab_issue(**changes))
    assert f"Issue 12 {status}" in found(gitlab(site)).text


def test_gitlab_missing_and_hidden(site: WebServer) -> None:
    site.routes[f"{LAB}/issues/12"] = answer({"message": "404 Not found"}, 404)
    assert "VOUCHGATE_GITLAB_REPO" in unreachable(gitlab(site), "forbidden").detail
    unreachable(gitlab(site, "issue:other/app#12"), "forbidden")
    site.routes[LAB] = answer({"id": 5, "path_with_namespace": "acme/tools/app"})
    missing(gitlab(site))


def test_gitlab_a_note(site: WebServer) -> None:
    site.routes[f"{LAB}/issues/12"] = answer(gitlab_issue())
    site.routes[f"{LAB}/issues/12/notes/7"] = answer({"id": 7, "body": "Chunked uploads help."})
    assert (
        "Chunked uploads help."
        in found(read_url(site, "/acme/tools/app/-/issues/12#note_7", kind=GitLab)).text
    )
    missing(read_url(site, "/acme/tools/app/-/issues/12#note_8", kind=GitLab))


@pytest.mark.parametrize(
    "changes", [{"iid": 13}, {"references": {"full": "12"}}, {"references": None}, {"state": "gone"}]
)
def test_gitlab_odd_answers(site: WebServer, changes: dict[str, object]) -> None:
    site.routes[f"{LAB}/issues/12"] = answer(gitlab_issue(**changes))
    unreachable(gitlab(site), "odd_answer")


# --- Forgejo


def forgejo_issue(**changes: object) -> dict[str, object]:
    return {
        "id": 3,
        "url": "https://codeberg.org/api/v1/repos/acme/app/issues/12",
        "html_url": "https://codeberg.org/acme/app/issues/12",
        "number": 12,
        "title": "Uploads stop at 2 GB",
        "body": "A file is cut.",
        "labels": [{"id": 1, "name": "bug", "exclusive": False}],
        "state": "open",
        "is_locked": False,
        "updated_at": "2025-06-07T08:09:10+02:00",
        "pull_request": None,
        "repository": {"id": 9, "name": "app", "owner": "acme", "full_name": "acme/app"},
    } | changes


FORGE = "/api/v1/repos/acme/app"


def test_forgejo_an_issue(site: WebServer) -> None:
    site.routes[f"{FORGE}/issues/12"] = answer(forgejo_issue())
    reading = found(read(site, kind=Forgejo, token="tok"))
    assert reading.source_id == "issue:acme/app#12"
    assert reading.text == "Uploads stop at 2 GB\n\nIssue 12 is open.\n\nLabels: bug\n\nA file is cut."
    assert reading.dated == datetime(2025, 6, 7, 6, 9, 10, tzinfo=UTC)
    assert site.asked[0].headers["authorization"] == "token tok"


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"state": "closed", "labels": None}, "Issue 12 is closed."),
        ({"state": "closed", "pull_request": {"merged": True}}, "Pull request 12 was merged."),
        (
            {"state": "closed", "pull_request": {"merged": False}},
            "Pull request 12 was closed without being merged.",
        ),
        (
            {"pull_request": {"merged": False, "draft": True}, "is_locked": True},
            "is open as a draft and locked.",
        ),
    ],
)
def test_forgejo_states(site: WebServer, changes: dict[str, object], status: str) -> None:
    site.routes[f"{FORGE}/issues/12"] = answer(forgejo_issue(**changes))
    assert status in found(read(site, kind=Forgejo)).text


def test_forgejo_missing_hidden_and_renamed(site: WebServer) -> None:
    assert "VOUCHGATE_FORGEJO_REPO" in unreachable(read(site, kind=Forgejo), "forbidden").detail
    site.routes[FORGE] = answer({"id": 9, "full_name": "acme/app"})
    missing(read(site, kind=Forgejo))
    old = "/api/v1/repos/acme/old/issues/12"
    site.routes[old] = Answer("", 307, {**JSON, "Location": f"{site.url}{FORGE}/issues/12"})
    site.routes[f"{FORGE}/issues/12"] = answer(forgejo_issue())
    assert found(read(site, "issue:acme/old#12", kind=Forgejo)).source_id == "issue:acme/app#12"


def test_forgejo_a_comment(site: WebServer) -> None:
    site.routes[f"{FORGE}/issues/12"] = answer(forgejo_issue())
    site.routes[f"{FORGE}/issues/comments/7"] = answer(
        {
            "id": 7,
            "body": "Chunked uploads help.",
            "issue_url": "https://codeberg.org/acme/app/issues/12",
            "pull_request_url": "",
        }
    )
    assert (
        "Chunked uploads help."
        in found(read_url(site, "/acme/app/issues/12#issuecomment-7", kind=Forgejo)).text
    )
    missing(read_url(site, "/acme/app/issues/12#issuecomment-8", kind=Forgejo))


def test_giving_up_is_left_to_the_caller(site: WebServer) -> None:
    site.routes[f"{API}/issues/12"] = Answer("{}", 200, JSON, delay=1.0)

    async def cancelled(forge: Forge) -> SourceReading:
        reading = asyncio.ensure_future(forge.read(issue("issue:#12")))
        await asyncio.sleep(0.1)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        site.routes[f"{API}/issues/12"] = answer(github_issue())
        return await forge.read(issue("issue:#12"))

    found(run(cancelled, site.url))


def test_every_request_is_a_get(site: WebServer) -> None:
    def asked(request: Asked) -> Answer:
        assert request.body == b""
        return answer(github_issue())

    site.routes[f"{API}/issues/12"] = asked
    found(read(site))
    assert {one.method for one in site.asked} == {"GET"}
