"""Where a source says otherwise than a claim, and where it does not although it looks so."""

from __future__ import annotations

import tomllib
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.running.hangs import given_up_after
from tests.unit.contradictions.contradiction_pairs import AGREEING, CONTRADICTING
from vouchgate.ingest.contradictions.clock import times
from vouchgate.ingest.contradictions.dates import dates
from vouchgate.ingest.contradictions.direction import changes
from vouchgate.ingest.contradictions.lists import LISTS
from vouchgate.ingest.contradictions.lists import root_of as stem
from vouchgate.ingest.contradictions.quantity import quantities
from vouchgate.ingest.contradictions.reading import Interest, read
from vouchgate.ingest.contradictions.rules import contradictions
from vouchgate.ingest.contradictions.sentence import Sentence
from vouchgate.ingest.contradictions.version import versions

ANY_TEXT = st.text(st.characters(), max_size=200)
# Words that make rules fire, so that the properties are tried where they could break.
_TRIGGERS = [
    "the", "cache", "timeout", "Film", "Anna", "is", "was", "a", "an", "not", "never", "no", "only",
    "all", "some", "and", "5", "60", "seconds", "minutes", "1990", "born", "in", "June", "at", "most",
    "least", "more", "than", "default", "on", "off", "by", "directed", "written", "from", "to",
    "replaced", "with", "instead", "of", "before", "after", "added", "removed", "enabled", "disabled",
    "v1.2", "v1.3", "Python", "3.11", "port", "80", "album", "song", "Swedish", "use", "supports",
    "Spain", "now", "previously", "fix", ",", ";", "(", ")", "first", "third", "$", "united", "states",
    "every", "parser:", "do", "Drop", "always", "when", "if", "Monday", "14:00", "pm", "Status:", "Decision:",
    "accepted", "draft", "called", "elsewhere", "kg", "over", "calls", "(#12)", "except", "used",
]  # fmt: skip
SENTENCES = st.lists(st.sampled_from(_TRIGGERS), min_size=1, max_size=14).map(
    lambda words: " ".join(words) + "."
)
TEXTS = st.one_of(ANY_TEXT, st.lists(SENTENCES, min_size=1, max_size=4).map(" ".join))


def _sentence(text: str) -> Sentence:
    return read(text).sentences[0]


@pytest.mark.parametrize(("rule", "claim", "passage"), CONTRADICTING)
def test_a_passage_that_says_otherwise(rule: str, claim: str, passage: str) -> None:
    found = contradictions(claim, passage)
    assert rule in {conflict.rule for conflict in found}
    for conflict in found:
        assert claim[conflict.claim_start : conflict.claim_end].strip()
        assert passage[conflict.source_start : conflict.source_end].strip()


@pytest.mark.parametrize(("claim", "passage"), AGREEING)
def test_a_passage_that_does_not_say_otherwise(claim: str, passage: str) -> None:
    assert contradictions(claim, passage) == ()


def test_the_deciding_words_are_named() -> None:
    claim, passage = (
        "The pool opens at most 10 connections.",
        "The pool opens at most 25 connections for each host.",
    )
    (conflict,) = contradictions(claim, passage)
    assert claim[conflict.claim_start : conflict.claim_end] == "at most 10"
    assert passage[conflict.source_start : conflict.source_end] == "at most 25"


@pytest.mark.parametrize(("rule", "claim", "passage"), CONTRADICTING)
def test_the_claim_found_in_the_passage_takes_every_conflict_back(
    rule: str, claim: str, passage: str
) -> None:
    for whole in (f"{passage} {claim}", f"{claim}\n\n{passage}"):
        assert contradictions(claim, whole) == (), rule


def test_a_clause_is_compared_without_its_sentence() -> None:
    """With its sentence it is about too much for one of the passage."""
    claim = "Despite the storm the harbour sold more berths than ever before, and it weakened its reserves of diesel."
    passage = "The harbour strengthened its reserves of diesel."
    start = claim.index("it weakened")
    assert contradictions(claim, passage) == ()
    (found,) = contradictions(claim, passage, [(start, len(claim))])
    assert (found.rule, found.clause) == ("opposite", True)
    assert claim[found.claim_start : found.claim_end] == "weakened"
    assert passage[found.source_start : found.source_end] == "strengthened"


def test_a_clause_alone_shows_no_choice() -> None:
    claim = "The ledger is kept by the porter in Velm, and texts are kept there."
    passage = "The ledger keeps digests, not texts."
    assert contradictions(claim, passage, [(claim.index("texts"), len(claim))]) == ()


def test_a_page_that_begins_with_an_order_is_no_message_of_a_change() -> None:
    """Of a change the past tense tells how things were before it."""
    passage = "Add this page to yours. The ferry stopped at the northern pier of Velm."
    claim = "The ferry stops at the southern pier of Velm."
    assert contradictions(claim, passage, message=True) == ()
    assert [found.rule for found in contradictions(claim, passage, message=False)] == ["opposite"]


def test_a_sentence_of_another_subject_is_not_compared() -> None:
    assert contradictions("The mailer retries five times.", "The crawler retries three times.") == ()


def test_only_the_sentence_in_conflict_is_named() -> None:
    claim = "The proxy keeps cookies. The gateway listens on port 9090."
    (conflict,) = contradictions(claim, "The gateway listens on port 8080. The proxy keeps cookies.")
    assert claim[conflict.claim_start : conflict.claim_end] == "port 9090"


@given(TEXTS, TEXTS)
def test_never_raises_and_offsets_lie_inside(claim: str, passage: str) -> None:
    for conflict in contradictions(claim, passage):
        assert 0 <= conflict.claim_start < conflict.claim_end <= len(claim)
        assert 0 <= conflict.source_start < conflict.source_end <= len(passage)


@given(TEXTS)
def test_a_text_never_contradicts_itself(text: str) -> None:
    assert contradictions(text, text) == ()


@given(SENTENCES, TEXTS)
def test_a_passage_with_the_claim_in_it_agrees(claim: str, passage: str) -> None:
    assert contradictions(claim, f"{passage}\n\n{claim}") == ()
    assert contradictions(claim, f"{claim}\n\n{passage}") == ()


@pytest.mark.parametrize(
    "bit",
    [
        "default on ", "not a ", "1 day ", "from a to b ", "only a and ", "The cache has 5 rows. ", "A is a film. ",
        "'", "made by A ", "added removed ", "born in 1990. ", "v1.2 ", "a, ", "((((", "1,", "a-", "$1 ",
        "use A instead of B. ", "add a The ", "Status: draft. ", "14:00 ", "only when always ", "sent to X ", "un-non-",
    ],
)  # fmt: skip
def test_time_grows_with_the_length(bit: str) -> None:
    """A claim four times as long as any that is taken: a quadratic way would take a minute for it."""
    size = 4 * 8192
    claim = (bit.replace("5", "6").replace("1990", "1991") * size)[:size]
    with given_up_after(1):
        contradictions(claim, (bit * 2000)[:2000])


@pytest.mark.parametrize(
    ("text", "low", "high", "measure"),
    [
        ("It waits 30s.", 30, 30, "time"),
        ("It waits half of 2 minutes.", 120, 120, "time"),
        ("It runs every second.", 1, 1, "time"),
        ("It took 1,500 ms.", 1.5, 1.5, "time"),
        ("It holds 4KiB.", 4096, 4096, "size"),
        ("It holds 2.5 million rows.", 2_500_000, 2_500_000, ""),
        ("It has twelve doors.", 12, 12, ""),
        ("It needs between 3 and 9 nodes.", 3, 9, ""),
        ("It needs 3-9 nodes.", 3, 9, ""),
        ("It cost over $20 million.", 20_000_000, float("inf"), "$"),
        ("It has at least 4 doors.", 4, float("inf"), ""),
        ("It has 4 doors or more.", 4, 4, ""),
        ("It has fewer than 4 doors.", float("-inf"), 4, ""),
        ("It has about 100 doors.", 90, 110, ""),
    ],
)
def test_quantities(text: str, low: float, high: float, measure: str) -> None:
    found = quantities(_sentence(text))
    assert [(q.low, q.high, q.measure) for q in found][-1] == pytest.approx((low, high, measure))


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("It began in 1990.", 1),
        ("It began on 3 May 1990.", 1),
        ("It began on May 3, 1990 and ended in 1991.", 2),
        ("It began on 1990-05-03.", 1),
        ("It has 1990 rows.", 0),
        ("Version 2021.3 began.", 0),
        ("It may 1990.", 0),
    ],
)
def test_dates(text: str, count: int) -> None:
    assert len(dates(_sentence(text))) == count


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It needs Python 3.11.", [("python", (3, 11))]),
        ("It needs v1.8.2 of the tool.", [("", (1, 8, 2))]),
        ("It speaks HTTP/2.", [("http", (2,))]),
        ("It took 3.5 seconds.", []),
        ("RFC 9110 says so.", []),
        ("It has 3.5 times the speed.", []),
    ],
)
def test_versions(text: str, found: list[tuple[str, tuple[int, ...]]]) -> None:
    assert [(version.product, version.parts) for version in versions(_sentence(text))] == found


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        ("Switch the build from bazel to meson.", "bazel", "meson"),
        ("Replace urllib with requests.", "urllib", "request"),
        ("Rename `parse_url` to `split_url`.", "parse_url", "split_url"),
        ("Requests replaced urllib.", "urllib", "request"),
        ("The sync was replaced by the queue.", "sync", "queu"),
        ("Update it to 2.4 from 2.3.", "2.3", "2.4"),
    ],
)
def test_changes(text: str, old: str, new: str) -> None:
    found = changes(_sentence(text))
    assert found and all(old in change.old and new in change.new for change in found)


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("It closes at 14:00.", [840]),
        ("It closes at 2 pm.", [840]),
        ("It closes at 2.30pm.", [870]),
        ("It opens at 12 am and closes at noon.", [0, 720]),
        ("It took 14 hours.", []),
        ("The ratio is 14:75.", []),
        ("It closes at 13 pm.", []),
    ],
)
def test_times(text: str, minutes: list[int]) -> None:
    assert [time.minutes for time in times(_sentence(text))] == minutes


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("parser: accept empty documents", "accept"),
        ("Do not start the pager.", "do"),
        ("Cache entries are kept.", None),
        ("Test 12 covers it.", None),
        ("The parser accepts it.", None),
    ],
)
def test_orders(text: str, command: str | None) -> None:
    sentence = _sentence(text)
    assert (None if sentence.command is None else sentence.lows[sentence.command]) == command


@pytest.mark.parametrize(
    ("text", "past"),
    [
        ("The parser rejected empty documents.", True),
        ("It was slow.", True),
        ("The flag was removed.", False),
        ("The field is required.", False),
        ("The file opened by the parser is closed.", False),
    ],
)
def test_the_past(text: str, past: bool) -> None:
    assert _sentence(text).past is past


def test_a_subject_line_ends_where_the_text_goes_on() -> None:
    reading = read("parser: accept empty documents The parser rejected them. Treat them as text.")
    assert [len(sentence.words) for sentence in reading.sentences] == [5, 5, 5]
    assert [sentence.old for sentence in reading.sentences] == [False, True, False]


def test_sections_of_a_decision_record_tell_the_time() -> None:
    reading = read("ADR 3: Logs Context: We use files. They fill the disk. Decision: We use a queue.")
    assert [sentence.section for sentence in reading.sentences] == ["", "then", "then", "now"]


@given(SENTENCES, TEXTS)
def test_what_is_not_read_has_no_word_of_the_claim(claim: str, passage: str) -> None:
    ours = read(claim)
    whole, read_now = read(passage), read(passage, Interest.of(ours))
    assert {s for s in whole.sentences if any(s.keys & one.keys for one in ours.sentences)} <= set(
        read_now.sentences
    )


def test_sentences_end_where_they_end() -> None:
    texts = [
        " ".join(s.lows)
        for s in read("Fix the lock\n\nIt waits 1.5 s, e.g. on disk. Then (again.) It ends").sentences
    ]
    assert [text.split()[-1] for text in texts] == ["lock", ".", ")", "ends"]


def test_polarity_reaches_to_the_end_of_the_clause() -> None:
    sentence = _sentence("It does not read files, but it writes logs if asked.")
    said = dict(zip(sentence.lows, sentence.polarity, strict=True))
    assert (said["read"], said["files"], said["writes"], said["logs"], said["asked"]) == (-1, -1, 1, 1, 0)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("director", "directed"),
        ("removes", "removed"),
        ("verifies", "verified"),
        ("running", "runs"),
        ("boxes", "box"),
    ],
)
def test_stems_join_the_forms_of_a_word(one: str, other: str) -> None:
    assert stem(one) == stem(other)


@pytest.mark.parametrize(("one", "other"), [("former", "form"), ("user", "us"), ("number", "numb")])
def test_stems_keep_words_apart(one: str, other: str) -> None:
    assert stem(one) != stem(other)


def test_no_word_of_a_pair_of_opposites_is_read_as_the_other() -> None:
    for word, others in LISTS.opposites.items():
        assert word not in others


def test_no_word_is_in_two_exclusive_groups() -> None:
    raw = tomllib.loads(files("vouchgate.ingest.data").joinpath("contradiction.toml").read_text("utf-8"))
    words = [word for group in raw["groups"].values() for word in group]
    assert sorted(words) == sorted(set(words))
