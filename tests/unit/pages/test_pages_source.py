"""What the page says of a cited source: where it really is, what of it decides, and what it is worth."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.answers import (
    DETECTOR,
    NOW,
    PAGE,
    PAGE_TEXT,
    POLICY,
    SENT,
    UNCLEAR,
    answer_of,
    claim_of,
    marked,
    missing,
    page,
    policy_with,
    read,
    text,
    unreachable,
)
from vouchgate.ingest.claims.source import Judged, NotJudged, Standing, Unreachable
from vouchgate.ingest.claims.trust import OwnPublishers
from vouchgate.ingest.pipeline import inspect
from vouchgate.review.pages.source import SourceView, source_views
from vouchgate.review.pages.wording.links import leads_elsewhere, link_of
from vouchgate.review.pages.wording.text import UNSEEN
from vouchgate.review.pages.wording.times import age, moment, moment_or_none


def source(answer: Any, **more: Any) -> SourceView:
    (found,) = source_views(answer, more.get("policy", POLICY), more.get("now", NOW))
    return found


def adr(**more: Any) -> SourceView:
    claim = claim_of(UNCLEAR)
    return source(answer_of(claim, read(inspect(claim, DETECTOR), **more)))


# --- what was found


def test_a_source_that_says_otherwise_shows_the_place() -> None:
    found = source(page(dated=SENT - timedelta(days=800), title="Shipping"))
    assert (text(found.heading), text(found.cited), found.cited_kind) == (PAGE, PAGE, "web page")
    assert (found.state_words, found.kind, found.status) == ("found", "bad", "HTTP 200")
    assert marked(found.passage, "conflict") == marked(found.excerpt, "conflict") == ["14:00"]
    assert text(found.excerpt) == PAGE_TEXT
    assert "placed by 14:00 leave the warehouse" in text(found.passage)
    assert text(found.passage).startswith("… ")
    assert text(found.passage).endswith(" …")
    assert text(found.passage).strip("… ") in PAGE_TEXT
    assert (found.longer, len(text(found.passage)) < 400) == (True, True)
    assert (text(found.title), found.age) == ("Shipping", "2 years old")
    assert [text(finding.says) for finding in found.findings if finding.decides] == [
        f"{PAGE} says “14:00” where the claim says “18:00”."
    ]


def test_a_source_that_speaks_of_it_shows_where() -> None:
    sent = f"Returns are free of charge within thirty days of delivery ({PAGE})."
    found = source(page(sent))
    assert found.kind == "good"
    assert marked(found.passage, "conflict") == []
    assert "Returns are free of charge within thirty days of delivery" in "".join(
        piece.text for piece in found.passage if "near" in piece.marks
    )


def test_a_short_excerpt_is_shown_whole_and_one_without_a_place_from_its_beginning() -> None:
    short = adr(excerpt="Tomatoes want six hours of sun a day, and water.")
    assert (short.longer, short.passage) == (False, short.excerpt)
    assert adr(excerpt=" \n").passage == ()
    nothing = source(page(f"See {PAGE}", excerpt="word " * 300))
    assert text(nothing.passage) == "word " * 79 + "word …"
    assert nothing.longer
    unbroken = source(page(f"See {PAGE}", excerpt="x" * 2000))
    assert text(unbroken.passage) == "x" * 400 + " …"


@pytest.mark.parametrize(("form", "between"), [("record", "\n…\n"), ("page", "\n\n")])
def test_what_is_left_blank_of_a_source_is_no_empty_room(form: str, between: str) -> None:
    gap = "\n     " * 5 + "\n"
    wide = f"# 7. Shipping{gap}{PAGE_TEXT}{gap}The end"
    found = source(page(form=form, excerpt=wide))
    assert text(found.excerpt) == between.join(["# 7. Shipping", PAGE_TEXT.strip(), "The end"])
    assert marked(found.passage, "conflict") == marked(found.excerpt, "conflict") == ["14:00"]
    assert text(source(page(form=form, excerpt="One\n\nTwo\n\n\nThree")).excerpt) == "One\n\nTwo\n\n\nThree"


def test_facts_of_another_excerpt_mark_nothing() -> None:
    answer = page()
    broken = [
        finding.model_copy(update={"facts": {**finding.facts, "source_start": 1900, "source_end": 99_999}})
        for finding in answer.findings
    ]
    found = source(answer.model_copy(update={"findings": tuple(broken)}))
    assert marked(found.excerpt, "conflict") == []
    assert text(found.passage).startswith("We ship parcels")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("timeout", "it took too long to answer"),
        ("rate_limited", "it wants to be asked later"),
        ("a_code_\u202eof_its_own", "a_code_⟨U+202E⟩of_its_own"),
    ],
)
def test_what_could_not_be_checked_says_why(code: str, words: str) -> None:
    later = NOW + timedelta(hours=2)
    found = source(unreachable(f"See {PAGE} of Redis.", code, status=503, retry_after=later))
    assert found.state_words == f"could not be checked: {words}"
    assert (found.status, found.kind, found.excerpt, found.score) == ("HTTP 503", "unknown", (), "")
    assert found.read_again is not None
    assert found.read_again.ago == "in 2 hours"
    assert found.link is not None


def test_every_code_of_a_reading_has_words() -> None:
    codes = set(re.findall(r"`([a-z_]+)`", Unreachable.__doc__ or "")) - {"code"}
    assert len(codes) == 17
    for code in codes:
        words = source(unreachable("ADR-7 says so of Redis.", code)).state_words
        assert words.removeprefix("could not be checked: ") != code


def test_what_does_not_exist() -> None:
    found = source(missing(f"See {PAGE} of Redis.", status=404))
    assert (found.state_words, found.kind, found.status) == ("does not exist", "bad", "HTTP 404")
    assert (found.age, found.reputation, found.official, found.leads_to) == ("", "", False, None)
    assert text(found.heading) == PAGE


# --- what it is worth


@pytest.mark.parametrize(
    ("standing", "successor", "words"),
    [
        (Standing.IN_FORCE, None, ""),
        (Standing.SUPERSEDED, "ADR-004", "superseded by ADR-004"),
        (Standing.REVERTED, "commit:a1b2c3d", "reverted by commit:a1b2c3d"),
        (Standing.DEPRECATED, None, "deprecated"),
        (Standing.REJECTED, None, "rejected"),
        (Standing.PROPOSED, None, "proposed only"),
        (Standing.DETACHED, None, "on no branch and under no tag"),
        (Standing.AMBIGUOUS, None, "more than one thing has this name"),
    ],
)
def test_how_a_record_stands(standing: Standing, successor: str | None, words: str) -> None:
    found = adr(standing=standing, successor=successor)
    assert text(found.standing) == words
    assert (found.score == "1.00") == (standing is Standing.IN_FORCE)
    assert found.official


def test_reputation_and_score_are_said_in_words() -> None:
    assert adr().reputation == "the grounding repository's own record"
    unlisted = source(page(dated=SENT))
    assert unlisted.reputation == "not listed, which is neither praise nor blame (0.5 of 1)"
    assert unlisted.score == "0.83"
    assert unlisted.score_note == (
        "From: it can be read, reputation 0.5, age worth 1.0. A source counts from 0.50."
    )
    official = source(page(), policy=policy_with(official_domains=("example.com",)))
    assert official.reputation.startswith("official by the policy; ")
    assert official.official
    banned = source(page(), policy=policy_with(banned_domains=("example.com",)))
    assert (banned.reputation, banned.score) == ("on the banned list", "0.00")
    answer = page(dated=SENT)
    own = answer.evidence.model_copy(update={"publishers": OwnPublishers(trusted=("example.com",))})
    trusted = source(answer.model_copy(update={"evidence": own}))
    assert (trusted.reputation, trusted.official) == ("trusted by you (0.7 of 1)", False)
    assert "reputation 0.7," in trusted.score_note
    journal = source(page(source_id="https://www.nature.com/articles/x", site="nature.com"))
    assert journal.reputation == "peer reviewed (1.0 of 1)"


def test_a_page_has_a_publisher_to_trust_or_ban_and_a_record_has_none() -> None:
    found = source(page(source_id="https://github.com/Ada/notes", site="github.com/ada"))
    assert (text(found.publisher), found.publisher_href) == (
        "github.com/ada",
        "/review/publishers?publisher=github.com%2Fada",
    )
    assert (adr().publisher, adr().publisher_href) == ((), "")


@pytest.mark.parametrize(
    ("contains", "attributed", "words"),
    [
        ("yes", "yes", "The judge (m1) finds the claim in it."),
        ("partly", "yes", "The judge (m1) finds a part of the claim in it."),
        ("partly", "no", "The judge (m1) finds a part of the claim in it, and not as what it says itself."),
        ("yes", "no", "The judge (m1) finds the claim in it, and not as what it says itself."),
        ("no", "no", "The judge (m1) does not find the claim in it."),
    ],
)
def test_what_the_judge_said(contains: Any, attributed: Any, words: str) -> None:
    found = adr(judgement=Judged(model="m1", contains=contains, attributed=attributed, quote="its words"))
    assert (text(found.judgement), text(found.quote)) == (words, "its words")


def test_a_judge_that_did_not_answer_says_so() -> None:
    found = adr(judgement=NotJudged(model="m1", code="timeout", detail="It took too long."))
    assert text(found.judgement) == "The judge gave no answer that counts. It took too long."
    assert found.kind == "unknown"
    assert adr().judgement == ()


# --- where it is


def test_a_redirect_says_where_it_leads() -> None:
    final = "https://other.example.org/shipping?x=1"
    found = source(page(source_id=final, site="example.org"))
    assert found.link is not None
    assert found.leads_to is not None
    assert (found.link.host, found.link.href) == ("docs.example.com", PAGE)
    assert (found.leads_to.host, found.leads_to.href) == ("other.example.org", final)
    assert source(page()).leads_to is None
    assert adr().link is None


@pytest.mark.parametrize(
    ("cited", "final", "elsewhere"),
    [
        ("http://a.example/x", "https://a.example/x", False),
        ("https://a.example", "https://a.example/", False),
        ("https://a.example/x#part", "https://a.example/x", False),
        ("https://a.example:443/x", "https://a.example/x", False),
        ("https://A.example/x", "https://a.example/x", False),
        ("https://a.example/x", "https://a.example/y", True),
        ("https://a.example/x", "https://a.example/x?y", True),
        ("https://a.example/x", "https://b.example/x", True),
        ("https://a.example/x", "https://a.example:8443/x", True),
        ("https://a@b.example/x", "https://b.example/x", True),
    ],
)
def test_what_counts_as_another_address(cited: str, final: str, elsewhere: bool) -> None:
    assert leads_elsewhere(cited, final) is elsewhere


@pytest.mark.parametrize(
    ("url", "host", "named", "href"),
    [
        ("https://example.com/a b", "", "", None),
        ("https://example.com/é?q=ü#ö", "example.com", "", "https://example.com/%C3%A9?q=%C3%BC#%C3%B6"),
        (
            "https://bücher.example/x",
            "xn--bcher-kva.example",
            "bücher.example",
            "https://xn--bcher-kva.example/x",
        ),
        (
            "https://xn--bcher-kva.example/",
            "xn--bcher-kva.example",
            "bücher.example",
            "https://xn--bcher-kva.example/",
        ),
        (
            "https://аррӏе.example/",
            "xn--80ak6aa92e.example",
            "аррӏе.example",
            "https://xn--80ak6aa92e.example/",
        ),
        ("https://[2001:DB8::1]:8443/x", "2001:db8::1", "", "https://[2001:db8::1]:8443/x"),
        ("http://192.0.2.1/", "192.0.2.1", "", "http://192.0.2.1/"),
        ("https://good.example@evil.example/", "", "", None),
        ("https://good.example\\@evil.example/", "", "", None),
        ("javascript:alert(1)", "", "", None),
        ("data:text/html,x", "", "", None),
        ("ftp://example.com/", "", "", None),
        ("//example.com/x", "", "", None),
        ("https://0x7f.1/", "", "", None),
        ("https://example.com:99999/", "", "", None),
        ('https://example.com/"><script>', "example.com", "", "https://example.com/%22%3E%3Cscript%3E"),
        ("https://example.com/%2e%2e?a=%zz", "example.com", "", "https://example.com/%2e%2e?a=%zz"),
        ("", "", "", None),
    ],
)
def test_a_link_says_its_real_host_and_opens_only_the_web(
    url: str, host: str, named: str, href: str | None
) -> None:
    link = link_of(url)
    assert (link.host, link.named, link.href) == (host, named, href)
    assert bool(link.note) == (bool(named) or href is None)
    assert text(link.shown) == url


def test_an_address_shows_what_cannot_be_seen_in_it() -> None:
    link = link_of("https://example.com/\u202egpj.exe")
    assert marked(link.shown, UNSEEN) == ["U+202E"]
    assert link.href == "https://example.com/%E2%80%AEgpj.exe"


@given(
    st.text(max_size=40)
    | st.text(st.characters(), max_size=30).map("https://".__add__)
    | st.text(st.sampled_from("a.b:/@?#%[]\\x-nüа1 \u202e"), max_size=30).map("https://".__add__)
    | st.text(st.sampled_from("abn-1zü."), max_size=20).map("https://xn--".__add__)
)
def test_any_address_can_be_shown_and_opens_the_host_that_is_named(url: str) -> None:
    link = link_of(url)
    assert (link.href is None) == (link.host == "")
    if link.href is not None:
        assert link.href.isascii()
        assert link.href.isprintable()
        parts = urlsplit(link.href)
        assert (parts.scheme in ("http", "https"), parts.hostname) == (True, link.host)
        assert not set(link.href) & set("\"'<> \\`") - {"'"}
    assert not leads_elsewhere(url, url)


# --- times


@pytest.mark.parametrize(
    ("away", "ago"),
    [
        (timedelta(0), "just now"),
        (timedelta(seconds=-59), "just now"),
        (timedelta(seconds=-61), "1 minute ago"),
        (timedelta(hours=-25), "1 day ago"),
        (timedelta(days=27, hours=3), "in 27 days"),
    ],
)
def test_a_time_is_said_from_now(away: timedelta, ago: str) -> None:
    assert moment(NOW + away, NOW).ago == ago


def test_a_time_has_its_zone() -> None:
    east = datetime(2026, 3, 1, 12, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    assert (moment(east, NOW).date, moment(east, NOW).iso) == (
        "2026-03-01 12:00 UTC+0530",
        "2026-03-01T12:00:00+05:30",
    )
    assert moment(datetime(2026, 3, 1, 12), NOW).date == "2026-03-01 12:00 UTC"
    assert moment(datetime(1, 2, 3, 4, 5, 6, 7), NOW).date == "0001-02-03 04:05 UTC"
    assert moment_or_none(None, NOW) is None


@pytest.mark.parametrize(
    ("days", "words"),
    [
        (0, "0 minutes old"),
        (59, "59 days old"),
        (62, "2 months old"),
        (700, "22 months old"),
        (731, "2 years old"),
    ],
)
def test_an_age_is_in_its_largest_unit(days: int, words: str) -> None:
    assert age(NOW - timedelta(days=days), NOW) == words


def test_an_age_that_is_none() -> None:
    assert age(None, NOW) == "age not known"
    assert age(NOW + timedelta(days=1), NOW) == "dated in the future"


@given(st.datetimes(timezones=st.none() | st.just(UTC) | st.timezones()))
def test_any_date_of_a_page_can_be_shown(dated: datetime) -> None:
    assert moment(dated, NOW).ago
    assert age(dated, NOW)
