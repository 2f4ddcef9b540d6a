"""Does the source speak of the claim? Subject, scope, composition with the contradiction rules, and the finding."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.running.hangs import given_up_after
from tests.unit.support.support_pairs import (
    CONFLICTS,
    NOTHING_TO_CHECK,
    PAIRS,
    SAYS_SOMETHING,
    Conflict,
    Pair,
)
from vouchgate.ingest.checks.support import Support, SupportVerdict, compare, judge
from vouchgate.ingest.citations import detect_citations, given_citation
from vouchgate.ingest.claims.citation import Citation, CitationType
from vouchgate.ingest.claims.claim import Span, Verdict
from vouchgate.ingest.claims.source import Found, Stance, Standing
from vouchgate.ingest.language.terms import Kind, term_key, words_of
from vouchgate.ingest.support.holding import hold
from vouchgate.ingest.support.scope import scope_of
from vouchgate.ingest.support.topic import OFF_TOPIC, ON_TOPIC, Subject, match

ADR = given_citation(CitationType.ADR, "12")


def _found(text: str, title: str = "", citation: Citation = ADR) -> Found:
    return Found(
        citation=citation,
        source_id="ADR-012",
        standing=Standing.IN_FORCE,
        detail="It is there.",
        title=title,
        excerpt=text,
    )


def _against(claim: str, source: str) -> Support:
    title, _, text = source.partition("\n")
    return compare(claim, text, title=title)


# ---- Subject ----


def test_hardly_a_source_that_speaks_of_the_claim_is_called_off_topic() -> None:
    verdicts = [_against(pair.claim, pair.source).verdict for pair in PAIRS]
    assert SupportVerdict.OFF_TOPIC not in verdicts
    assert verdicts.count(SupportVerdict.ON_TOPIC) >= 0.9 * len(PAIRS)


def test_the_sources_of_other_claims_of_the_same_field_are_off_topic() -> None:
    crossed = [(one.claim, two.source) for one, two in permutations(PAIRS, 2) if one.field == two.field]
    off = sum(_against(claim, source).verdict is SupportVerdict.OFF_TOPIC for claim, source in crossed)
    assert len(crossed) > 100
    assert off >= 0.97 * len(crossed)


@pytest.mark.parametrize("pair", PAIRS[:3], ids=lambda pair: pair.claim[:20])
def test_the_source_alone_decides_without_its_title_too(pair: Pair) -> None:
    assert compare(pair.claim, pair.source).verdict is SupportVerdict.ON_TOPIC


def test_a_short_passage_may_call_its_subject_by_a_pronoun() -> None:
    claim = "Orsolya Varga painted murals for the opera."
    passage = "She painted three murals for the opera in Szeged."
    assert compare(claim, passage).verdict is SupportVerdict.ON_TOPIC
    assert compare(claim, passage.replace("She", "Bela Nagy")).score < compare(claim, passage).score


def test_a_page_with_the_words_scattered_is_less_near_than_one_with_them_together() -> None:
    filler = "The quarry was measured twice, and its keeper wrote the result into a ledger of wax. " * 6
    words = ("Parcels", "wait", "in the archive", "until the courier", "whistles")
    together = compare(
        "Parcels wait in the archive until the courier whistles", filler + " ".join(words) + "."
    )
    apart = compare("Parcels wait in the archive until the courier whistles", filler.join(words))
    assert together.score > apart.score


def test_the_title_counts_as_close_to_every_place() -> None:
    filler = "It was measured twice, and the result was written into a ledger of wax by its keeper. " * 12
    text = filler + "Parcels wait for the courier."
    with_title = compare("In Brenwick archive parcels wait for the courier", text, title="Brenwick archive")
    in_text = compare("In Brenwick archive parcels wait for the courier", "Brenwick archive. " + text)
    assert with_title.score > in_text.score


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("The time-out is long", "The timeout was raised."),
        ("The timeout is long", "The time out was raised."),
        ("node_fetch is wrapped", "Wraps nodeFetch."),
        ("Beyonce toured", "Beyoncé tours again."),
        ("The co\u00adnnector was opened", "Opens the connector."),
        ("140,000 parcels", "140000 of the parcels."),
        ("It is written by Varga", "Varga wrote it."),
    ],
)
def test_spellings_of_one_word_meet(claim: str, source: str) -> None:
    found = match(claim, words_of(claim), Subject(source))
    assert not [word for word in found.missing if word.kind is not Kind.COMMON]


def test_forms_of_a_word_have_one_stem() -> None:
    for forms in (
        ("release", "releases", "released", "releasing"),
        ("compile", "compiled", "compilation"),
        ("nominate", "nominated", "nomination", "nominations"),
        ("stop", "stopped", "stopping"),
        ("database", "databases"),
        ("city", "cities"),
    ):
        assert len(set(map(term_key, forms))) == 1, forms


# ---- What a claim says beyond its citation ----


@pytest.mark.parametrize("claim", NOTHING_TO_CHECK)
def test_a_claim_that_only_points_has_nothing_to_check(claim: str) -> None:
    for citation in detect_citations(claim):
        finding = judge(claim, [citation], _found("About something else."))
        assert (finding.verdict, finding.code) == (Verdict.PASS, "support_nothing_to_check")


@pytest.mark.parametrize(("claim", "said"), SAYS_SOMETHING)
def test_what_else_it_says_is_held_against_the_source(claim: str, said: str) -> None:
    scope = scope_of(claim, detect_citations(claim))
    assert scope.text.split() == said.split()
    assert len(scope.text) == len(claim)


def test_each_of_several_sources_is_held_against_the_sentence_that_cites_it() -> None:
    claim = "Parcels wait 45 days (ADR-012). Letters leave at noon, see #77. More is in PEP 8."
    adr, issue, pep = detect_citations(claim)
    parcels, letters = "The archive keeps each parcel; parcels wait 45 days.", "Every letter leaves at noon."
    assert judge(claim, [adr], _found(parcels)).verdict is Verdict.PASS
    assert judge(claim, [adr], _found(letters)).code == "support_off_topic"
    assert judge(claim, [issue], _found(letters)).verdict is Verdict.PASS
    assert judge(claim, [issue], _found(parcels)).code == "support_off_topic"
    assert scope_of(claim, [pep]).text.strip().startswith("Letters leave at noon")


def test_a_sentence_that_only_points_speaks_for_the_one_before_it_else_for_the_one_after() -> None:
    claim = "Parcels wait 45 days. See ADR-012. Letters leave at noon (#77)."
    adr, _ = detect_citations(claim)
    assert scope_of(claim, [adr]).text.strip() == "Parcels wait 45 days."
    claim = "See ADR-012. Parcels wait 45 days (#77)."
    adr, _ = detect_citations(claim)
    assert scope_of(claim, [adr]).text.split() == ["Parcels", "wait", "45", "days", "."]


def test_a_citation_beside_the_text_is_held_against_the_whole_claim() -> None:
    claim = "Parcels wait 45 days (#77). Letters leave at noon."
    finding = judge(claim, [ADR], _found("Every letter leaves at noon."))
    assert finding.code == "support_on_topic"
    assert finding.spans == (Span(start=28, end=50),)


def test_a_page_named_in_front_carries_no_other_sentence_that_cites_it() -> None:
    source = _found("Parcels wait 45 days in the archive.", "How long parcels wait")
    claim = "How long parcels wait. The vault of the night office opens with the code 1234, see ADR-012."
    finding = judge(claim, detect_citations(claim), source)
    assert finding.code == "support_off_topic"
    (span,) = finding.spans
    assert claim[span.start : span.end].startswith("The vault")
    mild = "Parcels wait 45 days. The desk knows, see ADR-012."  # too little to say that it is about something else
    assert judge(mild, detect_citations(mild), source).verdict is Verdict.PASS


# ---- Conflicts ----


@pytest.mark.parametrize("row", CONFLICTS, ids=lambda row: row.ours)
def test_a_conflict_names_the_words_in_both_texts(row: Conflict) -> None:
    claim = f"Per ADR-012: {row.claim}"
    finding = judge(claim, detect_citations(claim), _found(row.source, "A title"))
    assert (finding.verdict, finding.code) == (Verdict.FAIL, "support_conflict")
    (span,) = finding.spans
    ours = claim[span.start : span.end]
    start, end = finding.facts["source_start"], finding.facts["source_end"]
    assert isinstance(start, int) and isinstance(end, int)
    theirs = row.source[start:end]
    assert row.ours in ours
    assert row.theirs in theirs
    assert finding.facts["source_words"] == theirs
    assert finding.message == f"ADR-012 says “{theirs}” where the claim says “{ours}”."
    assert finding.facts["rule"]


@pytest.mark.parametrize(
    "asked",
    [
        "Does the relay keep mail for 90 days? It keeps mail.",
        "The relay keeps mail.\n\n## Should the relay keep mail for 90 days?",
        "The relay keeps mail for 90 days? Ask its owner. It keeps mail.",
    ],
)
def test_what_a_source_asks_contradicts_nothing(asked: str) -> None:
    claim, said = "The relay keeps mail for 30 days.", "The relay keeps mail for 90 days. It keeps mail."
    for source, conflicts in ((asked, False), (said, True)):
        found = _found(source, "The relay")
        held = hold(claim, (ADR,), found, ()).held
        assert held is not None
        assert (held[0].stance is Stance.REFUTES) is conflicts
        assert (judge(claim, [ADR], found).code == "support_conflict") is conflicts


def test_the_number_of_a_citation_is_no_value_of_the_claim() -> None:
    claim = "The upload time-out is 60 seconds (#30)."
    finding = judge(claim, detect_citations(claim), _found(CONFLICTS[1].source))
    assert finding.code == "support_on_topic"


def test_a_conflict_needs_a_source_that_speaks_of_the_claim() -> None:
    finding = judge("The kiln is fired for 30 seconds", [ADR], _found(CONFLICTS[1].source))
    assert finding.code != "support_conflict"


def test_a_sentence_that_another_source_answers_for_makes_no_conflict() -> None:
    claim = "The upload time-out is 30 seconds (#77). Slow lines cut off uploads (ADR-012)."
    issue, adr = detect_citations(claim)
    assert judge(claim, [issue], _found(CONFLICTS[1].source)).code == "support_conflict"
    assert judge(claim, [adr], _found(CONFLICTS[1].source)).code == "support_on_topic"


# ---- What cannot be told ----


def test_a_source_without_text_is_unreadable_unless_its_title_speaks_of_the_claim() -> None:
    for text in ("", " \n "):
        finding = judge("Parcels wait 45 days", [ADR], _found(text, "Quarterly report"))
        assert (finding.verdict, finding.code) == (Verdict.UNKNOWN, "support_unreadable")
    assert judge("Parcels wait 45 days", [ADR], _found("", "Parcels wait 45 days")).verdict is Verdict.PASS
    assert judge("See ADR-012", [ADR], _found("")).code == "support_nothing_to_check"


@pytest.mark.parametrize(
    ("claim", "source", "rule"),
    [
        ("小包は四十五日間保管される", "Parcels are kept for 45 days.", "script"),
        ("Parcels are kept for 45 days", "Посылки хранятся сорок пять дней.", "script"),
        (
            "Pakete werden nicht länger als eine Woche verwahrt",
            "The office keeps all mail for seven days.",
            "language",
        ),
        (
            "All mail is kept by the office",
            "Les colis sont gardés dans une salle et pas dans le couloir.",
            "language",
        ),
    ],
)
def test_another_script_or_language_cannot_be_read(claim: str, source: str, rule: str) -> None:
    finding = judge(claim, [ADR], _found(source))
    assert (finding.verdict, finding.code, finding.facts["rule"]) == (
        Verdict.UNKNOWN,
        "support_unreadable",
        rule,
    )


@pytest.mark.parametrize(
    "claim",
    [
        "T h e v a u l t o p e n s w i t h a c o d e, see ADR-012",
        "ⓉⒽⒺ ⓋⒶⓊⓁⓉ ⓄⓅⒺⓃⓈ (ADR-012)",
        "🇻🇦🇺🇱🇹 🇴🇵🇪🇳🇸 ADR-012",
        "⠧⠁⠥⠇⠞ ⠕⠏⠑⠝⠎ ADR-012",
        "v<b></b>a<b></b>u<b></b>l<b></b>t<b></b> is open, see ADR-012",
        "Parcels wait 45 days. T h e v a u l t o p e n s, see ADR-012",
    ],
)
def test_words_in_disguise_are_not_nothing(claim: str) -> None:
    finding = judge(claim, detect_citations(claim), _found("Parcels wait 45 days."))
    assert (finding.code, finding.facts["rule"]) == ("support_unreadable", "script")


@pytest.mark.parametrize(
    "claim",
    [
        "✅ See ADR-012 🎉",
        "Parcels wait n + x - y days if a < b and c is I, see ADR-012",
        "Parcels wait:\n├── 45 days\n├── in the archive\n└── on a shelf, see ADR-012",
        "Parcels in `<del>` and ~ 45 days, see ADR-012: Map<String, Int> keeps `a ~~b~~`",
        "Parcels don't wait, it's 45 days, we've seen they'd wait and I'm sure he'll, she'll, you'll, it'll (ADR-012)",
    ],
)
def test_signs_formulas_and_trees_are_no_disguise(claim: str) -> None:
    assert not scope_of(claim, detect_citations(claim)).disguised


@pytest.mark.parametrize(
    "claim",
    [
        "~~Parcels wait 45 days~~ (ADR-012)",
        "Parcels wait <del>45</del> days (ADR-012)",
        "Parcels wait 45 days <!-- Mallory holds the key --> (ADR-012)",
        'Parcels wait <b title="leaked">45</b> days (ADR-012)',
    ],
)
def test_what_is_struck_or_hidden_in_a_claim_is_a_disguise(claim: str) -> None:
    assert scope_of(claim, detect_citations(claim)).disguised


def test_a_source_that_goes_on_may_speak_of_it_where_nobody_looked() -> None:
    whole = _found("Tomatoes want six hours of sun a day, a deep pot, and water in the morning.")
    claim = "Parcels are kept for 45 days before they are sent back"
    assert judge(claim, [ADR], whole).code == "support_off_topic"
    finding = judge(claim, [ADR], whole.model_copy(update={"cut": True}))
    assert (finding.verdict, finding.code) == (Verdict.UNKNOWN, "support_unreadable")
    assert judge("Tomatoes want six hours of sun", [ADR], whole.model_copy(update={"cut": True})).verdict is (
        Verdict.PASS
    )


def test_one_small_word_that_is_missing_is_too_little_to_say_off_topic() -> None:
    claim = "Not fixed in commit 3f2a91c7"
    finding = judge(claim, detect_citations(claim), _found("Parcels wait 45 days."))
    assert (finding.verdict, finding.code) == (Verdict.UNKNOWN, "support_unclear")


def test_how_a_change_was_committed_is_nothing_its_text_could_lack() -> None:
    claim = "Committed as 3f2a91c7 with a conventional message including 'Closes #85'"
    finding = judge(claim, detect_citations(claim), _found("fix: parcels wait 45 days"))
    assert (finding.verdict, finding.code) == (Verdict.UNKNOWN, "support_unclear")
    other = judge(
        "Committed as 3f2a91c7 by Ede in the kiln of Vester", detect_citations(claim), _found("Parcels wait.")
    )
    assert other.code == "support_off_topic"


def test_between_the_thresholds_it_is_unclear() -> None:
    support = compare("Public endpoints carry their version in the path.", "The version stands in the path.")
    assert OFF_TOPIC <= support.score < ON_TOPIC
    assert support.verdict is SupportVerdict.UNKNOWN


def test_a_title_on_topic_over_a_text_about_something_else_is_a_disagreement() -> None:
    finding = judge("Parcels wait", [ADR], _found("The kiln was fired on Monday.", "Parcels wait"))
    assert finding.facts["disagree"] is True
    agreed = judge("Parcels wait", [ADR], _found("Parcels wait on shelves.", "Parcels wait"))
    assert "disagree" not in agreed.facts


# ---- The finding ----


def test_a_finding_off_topic_names_the_source_and_what_it_lacks() -> None:
    claim = "Per ADR-012, the kiln is fired with birch"
    finding = judge(claim, detect_citations(claim), _found("Parcels wait 45 days.", "Parcels"))
    assert (finding.check, finding.verdict, finding.code) == ("support", Verdict.FAIL, "support_off_topic")
    assert finding.message == (
        "ADR-012 does not speak of what the claim says; it has nothing of “kiln”, “fired”, “birch”."
    )
    assert finding.citation == ADR
    assert finding.facts["rule"] == "overlap"


_TEXT = st.text(alphabet=st.sampled_from("aBé .!?\n-|#\"'(1。\u0301\ud800\u200b𝟙"), max_size=300) | st.text(
    max_size=300
)


@given(_TEXT, _TEXT, _TEXT)
def test_any_text_is_answered_and_spans_lie_in_the_texts(claim: str, source: str, title: str) -> None:
    support = compare(claim, source, title=title, citations=detect_citations(claim))
    assert 0 <= support.score <= 1
    for span, text in ((support.claim, claim), (support.source, source)):
        if span is not None:
            assert 0 <= span[0] < span[1] <= len(text)
    assert support == compare(claim, source, title=title, citations=detect_citations(claim))


@given(st.sampled_from(PAIRS), st.sampled_from(PAIRS))
def test_a_source_with_the_claim_in_it_is_never_off_topic(one: Pair, other: Pair) -> None:
    assert compare(one.claim, f"{other.source} {one.claim}").verdict is SupportVerdict.ON_TOPIC


@pytest.mark.parametrize(
    "piece",
    ["word ", "a-b ", "aB1 ", "ADR-1 ", "see #1, ", "5 ms ", "x. ", "é ", "No. ", "foo-a foo-b ", "is not "],
)
def test_time_grows_with_the_claim_and_no_faster(piece: str) -> None:
    """A claim four times as long as any that is taken: a quadratic way would take a minute for it."""
    size = 4 * 8192
    with given_up_after(2):
        compare((piece * size)[:size], (piece * 2000)[:2000])
