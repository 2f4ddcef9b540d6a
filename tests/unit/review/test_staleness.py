"""What reading a memory's sources again comes to: gone, changed, as before, or not known. Pure."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.claims import NOW, examined, policy
from tests.running.hangs import given_up_after
from vouchgate.ingest.claims.citation import Citation, CitationType
from vouchgate.ingest.claims.decision import ValidationResult
from vouchgate.ingest.claims.likeness import Neighbours
from vouchgate.ingest.claims.source import Found, Missing, SourceReading, Standing, Unreachable
from vouchgate.ingest.pipeline import Examined, Inspected, examine, focus
from vouchgate.review.staleness import (
    PASSAGE_KEPT,
    SourceChanged,
    SourcesUnchanged,
    SourcesUnclear,
    Standings,
    compare,
    share_kept,
)

CLAIM = "The hosted plan gives every tenant 40 connections to the message broker at once"
PASSAGE = (
    "Every tenant of the hosted plan has 40 connections to the message broker. "
    "More of them are refused until an old one was closed."
)
WORDS = st.text(st.sampled_from("abc 0é件-"), max_size=60)


def url(name: str = "limits") -> Citation:
    """A citation of a page."""
    address = f"https://docs.example.com/{name}"
    return Citation(type=CitationType.URL, value=address, key=f"url:{address}")


ADR = Citation(type=CitationType.ADR, value="ADR-3", key="adr:3")


def page(said: str = PASSAGE, cited: Citation | None = None, **more: Any) -> Found:
    """A page that was read, with its text."""
    values: dict[str, Any] = {
        "citation": cited or url(),
        "source_id": "https://docs.example.com/limits",
        "standing": Standing.IN_FORCE,
        "detail": "The page is there.",
        "digest": hashlib.sha256(said.encode()).hexdigest(),
        "text": said,
    }
    return Found.model_validate(values | more)


def gone(cited: Citation | None = None) -> Missing:
    """A page that answered 404."""
    return Missing(citation=cited or url(), detail="It answered 404.")


def away(cited: Citation | None = None) -> Unreachable:
    """A page that did not answer."""
    return Unreachable(citation=cited or url(), code="timeout", detail="No answer.")


def looked(*readings: SourceReading, claim: str = CLAIM) -> Examined:
    """The claim with these readings, as the gate examines it."""
    plain = examined(claim).claim
    plain = plain.model_copy(update={"citations": tuple(reading.citation for reading in readings)})
    inspected = Inspected(plain, (), plain.citations)
    return examine(inspected, focus(inspected, readings), policy(), NOW)


def decided(*readings: SourceReading, claim: str = CLAIM) -> ValidationResult:
    """The decision that let the claim in on these readings."""
    one = looked(*readings, claim=claim).knowing(dedup=Neighbours())
    names: dict[str, Any] = {"decision_id": "dec_1", "memory_id": "mem_1", "queue_id": None}
    return one.answer(one.decide(), **names, took_ms=0.0)


def later(then: ValidationResult, *readings: SourceReading, learned: tuple[Found, ...] = ()) -> Standings:
    """What reading again comes to."""
    now = looked(*readings, claim=then.evidence.claim.content)
    texts = {r.citation.key: r.text for r in readings if isinstance(r, Found)}
    return compare(then, learned, now, texts)


def test_five_ways_a_page_can_be_found_again() -> None:
    then = decided(page())
    assert later(then, page()) == SourcesUnchanged(())
    assert later(then, gone()) == SourceChanged("It answered 404.", ())
    assert later(then, away()) == SourcesUnclear((), (away(),))
    assert later(then, page("")) == SourcesUnclear((), looked(page("")).readings)  # as it is kept
    rewritten = (
        "Tenants of the hosted plan: ask our sales people which connections to the message broker you get."
    )
    changed = later(then, page(rewritten))
    assert isinstance(changed, SourceChanged)
    assert changed.reason.startswith("https://docs.example.com/limits ")


def test_one_source_that_went_away_is_enough_and_one_unread_leaves_it_open() -> None:
    pages = [page(cited=url(name)) for name in ("a", "b", "c")]
    then = decided(*pages)
    assert isinstance(later(then, pages[0], gone(url("b")), away(url("c"))), SourceChanged)
    assert isinstance(later(then, pages[0], pages[1], away(url("c"))), SourcesUnclear)
    assert isinstance(later(then, *reversed(pages)), SourcesUnchanged)


def test_what_was_refuted_when_it_was_let_in_is_no_news() -> None:
    then = decided(gone())
    assert isinstance(later(then, gone()), SourcesUnchanged)
    assert isinstance(later(then, page()), SourcesUnchanged)
    proposed = page(cited=ADR, standing=Standing.PROPOSED)
    then = decided(proposed)
    assert isinstance(later(then, proposed), SourcesUnchanged)
    assert isinstance(later(then, page(f"{PASSAGE} Accepted.", ADR)), SourcesUnchanged)
    assert isinstance(later(then, page(cited=ADR, standing=Standing.REJECTED)), SourceChanged)
    assert isinstance(later(then, gone(ADR)), SourceChanged)


def test_of_a_record_every_change_counts_and_of_a_page_only_that_of_the_passage() -> None:
    addition = f"{PASSAGE} A new chapter on queues was added."
    assert isinstance(later(decided(page()), page(addition)), SourcesUnchanged)
    assert isinstance(later(decided(page(cited=ADR)), page(addition, ADR)), SourceChanged)


def test_what_could_not_be_read_at_first_is_learned_and_then_counts() -> None:
    then = decided(away())
    first = later(then, page())
    assert isinstance(first, SourcesUnchanged)
    (known,) = first.learned
    assert (known.citation, known.digest) == (url(), page().digest)
    assert isinstance(later(then, page(), learned=first.learned), SourcesUnchanged)
    other = (
        "Tenants of the hosted plan: ask our sales people which connections to the message broker you get."
    )
    assert isinstance(later(then, page(other), learned=first.learned), SourceChanged)
    assert later(then, away(), learned=first.learned) == SourcesUnclear(first.learned, (away(),))
    assert isinstance(later(then, gone()), SourceChanged)


def test_news_about_the_rules_is_no_news_about_the_source() -> None:
    """A text that has not changed is not stale because it is judged otherwise today."""
    off_topic = page("A page about boats, sails, masts, oars, harbours and the weather at sea.")
    then = decided(off_topic)
    lenient = then.model_copy(update={"findings": tuple(f for f in then.findings if f.check != "support")})
    assert isinstance(later(lenient, off_topic), SourcesUnchanged)


def test_a_value_that_changed_on_the_page_is_seen() -> None:
    then = decided(page())
    changed = later(then, page(PASSAGE.replace("40", "25")))
    assert isinstance(changed, SourceChanged), "neither the passage nor the support check saw it"


HANDBOOK = (
    "The handbook of the gateway is kept by the platform team, who answer questions on weekdays. "
    "{} The search endpoint allows 100 requests per minute. The export endpoint allows 30 requests per minute. "
    "Every endpoint of the gateway answers in JSON, and tells the time at which it answered."
)


@pytest.mark.parametrize(
    ("says", "said_now"),
    [
        (
            "The login endpoint allows 30 requests per minute.",
            "The login endpoint allows 10 requests per minute.",
        ),
        ("The gateway keeps sessions in Redis.", "The gateway does not keep sessions any more."),
        ("The gateway keeps sessions in Redis.", "The gateway kept sessions in Redis until 2024."),
        ("Maria leads the search team.", "Jonas leads the search team."),
        ("The API supports version 2 of the protocol.", "The API supports version 3 of the protocol."),
        ("Orders over 50 euros ship free.", "Orders over 80 euros ship free."),
    ],
)
def test_a_sentence_that_changed_among_others_that_did_not_is_seen(says: str, said_now: str) -> None:
    then = decided(page(HANDBOOK.format(says)), claim=f"{says} ({url().value})")
    assert then.rule == "stated"
    harmless = HANDBOOK.format(says).replace("on weekdays", "on every day")
    assert isinstance(later(then, page(harmless)), SourcesUnchanged)
    changed = later(then, page(HANDBOOK.format(said_now)))
    assert isinstance(changed, SourceChanged), "its neighbours kept the passage"
    assert "any more" in changed.reason or "where the claim says" in changed.reason


def test_what_no_source_stated_when_it_was_let_in_is_no_news() -> None:
    claim = f"The login endpoint is limited for good reasons. ({url().value})"
    then = decided(page(HANDBOOK.format("The login endpoint allows 30 requests per minute.")), claim=claim)
    assert then.rule != "stated"
    now = page(HANDBOOK.format("The login endpoint allows 10 requests per minute."))
    assert isinstance(later(then, now), SourcesUnchanged)


def test_each_change_of_a_record_and_of_what_a_page_states_has_a_sentence_of_its_own() -> None:
    """By which an owner who confirmed a memory despite one is told of the next."""
    says = "The login endpoint allows {} requests per minute."
    claims = (decided(page(cited=ADR)), decided(page(says.format(30)), claim=says.format(30)))
    record, stated = claims
    edits = [later(record, page(f"{PASSAGE} {more}", ADR)) for more in ("Or so.", "Or so.", "Or less.")]
    values = [
        later(stated, page(f"{says.format(n)} {more}")) for n, more in ((10, ""), (10, "Hi."), (20, "Hi."))
    ]
    for first, same, other in (edits, values):
        assert isinstance(first, SourceChanged)
        assert isinstance(same, SourceChanged)
        assert isinstance(other, SourceChanged)
        assert first.reason == same.reason != other.reason


RECORD = "# 3. Connections\n\nDate: {}\n\nStatus: {}\n\n## Decision\n\n{}\n"


def test_a_record_that_was_let_in_as_proposed_is_watched_once_it_is_accepted() -> None:
    def record(status: Standing, said: str = PASSAGE, day: str = "2026-05-01") -> Found:
        return page(RECORD.format(day, status.value.title(), said), ADR, standing=status, form="record")

    then = decided(record(Standing.PROPOSED))
    less = PASSAGE.replace("40", "25")
    assert isinstance(later(then, record(Standing.IN_FORCE, less)), SourceChanged)
    accepted = later(then, record(Standing.IN_FORCE, day="2026-05-09"))
    assert isinstance(accepted, SourcesUnchanged)
    assert [each.standing for each in accepted.learned] == [Standing.IN_FORCE]
    now = {"learned": accepted.learned}
    assert isinstance(later(then, record(Standing.IN_FORCE, day="2026-05-09"), **now), SourcesUnchanged)
    for edited in (record(Standing.IN_FORCE, less), record(Standing.PROPOSED), gone(ADR)):
        assert isinstance(later(then, edited, **now), SourceChanged)


def test_a_page_that_was_let_in_though_it_was_not_in_force_is_told_of_once_it_is_worse() -> None:
    draft = page(standing=Standing.PROPOSED)
    then = decided(draft)
    assert isinstance(later(then, draft), SourcesUnchanged)
    assert isinstance(later(then, page(standing=Standing.REJECTED)), SourceChanged)
    final = later(then, page())
    assert isinstance(final, SourcesUnchanged)
    assert isinstance(later(then, draft, learned=final.learned), SourceChanged)


def test_citations_the_decision_did_not_know_say_nothing() -> None:
    assert isinstance(later(decided(page()), page(), gone(url("new"))), SourcesUnchanged)


# --- the measure


ADVERT = "Today only: warm socks, three pairs for the price of two. {} visitors were here since this morning."


@pytest.mark.parametrize(
    "text",
    [
        PASSAGE,
        PASSAGE.upper(),
        PASSAGE.replace(" ", "\n  "),
        f"{ADVERT.format(812)} {PASSAGE} {ADVERT.format(7)}",
        PASSAGE.replace("broker. ", f"broker. {ADVERT.format(12)} "),
        PASSAGE.replace("More of them", "Further ones"),
        PASSAGE.replace("an old one was closed", "one is closed"),
    ],
)
def test_a_page_that_still_says_it(text: str) -> None:
    assert share_kept(CLAIM, PASSAGE, text) >= PASSAGE_KEPT


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Every. Tenant. Of. The. Plan.",
        "We were bought by somebody who sells socks.",
        "More of them are refused until an old one was closed.",  # what is left is not what mattered
        "How many connections a tenant has to the broker depends on the plan; the hosted one has a few.",
    ],
)
def test_a_page_that_does_not(text: str) -> None:
    assert share_kept(CLAIM, PASSAGE, text) < PASSAGE_KEPT


@given(claim=WORDS, passage=WORDS, before=WORDS, after=WORDS)
def test_a_passage_is_found_in_any_text_that_holds_it(
    claim: str, passage: str, before: str, after: str
) -> None:
    assert share_kept(claim, passage, f"{before} {passage} {after}") == 1.0
    assert 0.0 <= share_kept(claim, passage, before) <= 1.0


def test_it_is_linear_in_hostile_text() -> None:
    text = "aa " * 400_000 + "件" * 400_000
    with given_up_after(6):
        share_kept(text[:8000], text[:2000], text)
