"""What the page of one item says, from answers that the pipeline really gives."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.answers import (
    CHANGED,
    DETECTOR,
    LOW,
    NOW,
    PAGE,
    POLICY,
    SENT,
    STORED,
    UNCLEAR,
    VECTOR,
    answer_of,
    claim_of,
    item_of,
    marked,
    memory_of,
    missing,
    near,
    page,
    paraphrase,
    policy_with,
    read,
    text,
    unreachable,
    view_of,
)
from vouchgate.ingest.claims.claim import MemoryType, Source
from vouchgate.ingest.claims.decision import RejectedBefore, ValidationResult
from vouchgate.ingest.claims.likeness import DedupUnavailable, ItemKind, Neighbours, SimilarMemory
from vouchgate.ingest.claims.memory import MemoryStatus
from vouchgate.ingest.claims.source import Found, Missing, SourceReading, Standing, Unreachable
from vouchgate.ingest.claims.waiting import ReviewStatus
from vouchgate.ingest.pipeline import inspect
from vouchgate.ingest.policy import Policy
from vouchgate.review.pages.wording.text import UNSEEN

HEDGED = "The import may time out on large files, usually at night."
PLAIN = "Redis is on port 6379."
CONFLICT = answer_of(claim_of(CHANGED), dedup=near(), policy=LOW)
STRICT = policy_with(auto_approve_ai_synthesis=False)
FLOOR = policy_with(confidence_floor=0.9)
CAREFUL = policy_with(spoken_of="queue", unlisted_pages="queue")
SPOKEN = f"Parcels and letters for countries abroad leave by ship, see {PAGE}"

# The answer, the policy, its rule, what the page says of why, and the finding that is shown first.
CASES = {
    "conflict": (
        CONFLICT,
        LOW,
        "conflict",
        "It says nearly the same as a stored memory, with other words: 6, 5.",
        "conflict",
    ),
    "conflict with an item": (
        answer_of(claim_of(CHANGED), dedup=near(ItemKind.PENDING), policy=LOW),
        LOW,
        "conflict",
        "It says nearly the same as a claim that waits too, with other words: 6, 5.",
        "conflict",
    ),
    "hedge": (
        answer_of(claim_of(HEDGED)),
        POLICY,
        "technical_hedge",
        "The claim says what is possible, likely or usual, not what is: may, usually.",
        "technical_hedge",
    ),
    "dedup unknown": (
        answer_of(claim_of(PLAIN), dedup=DedupUnavailable(detail="The index is being built.")),
        POLICY,
        "dedup_unknown",
        "It could not be found out whether the same is stored already. The index is being built.",
        "dedup_unavailable",
    ),
    "dedup crowded": (
        answer_of(claim_of(PLAIN), dedup=Neighbours(items=(), complete=False)),
        POLICY,
        "dedup_unknown",
        "It could not be found out whether the same is stored already. So many earlier claims share a part with"
        " this one that not all of them were compared.",
        "dedup_crowded",
    ),
    "paraphrase": (
        paraphrase(),
        VECTOR,
        "dedup_unknown",
        "May say the same as an earlier claim in other words.",
        "paraphrase",
    ),
    "missing": (
        missing("ADR-999 says so of Redis."),
        POLICY,
        "refuted",
        "No ADR-999 exists.",
        "citation_missing",
    ),
    "the source says otherwise": (
        page(),
        POLICY,
        "refuted",
        f"{PAGE} says “14:00” where the claim says “18:00”.",
        "support_conflict",
    ),
    "unchecked": (
        unreachable("ADR-7 says so of Redis."),
        POLICY,
        "citation_unknown",
        "What it cites could not be checked yet. It did not answer.",
        "citation_unchecked",
    ),
    "ungrounded": (
        answer_of(claim_of(PLAIN)),
        POLICY,
        "ungrounded",
        "Nothing but the agent vouches for it: it cites nothing that can be checked.",
        "no_citation",
    ),
    "no text": (
        answer_of(claim_of(UNCLEAR), read(inspect(claim_of(UNCLEAR), DETECTOR), excerpt="")),
        POLICY,
        "ungrounded",
        "ADR-007 has no text that the claim could be held against.",
        "support_unreadable",
    ),
    "a low score": (
        page(f"We ship parcels and letters to every country of the union, see {PAGE}", policy=FLOOR),
        FLOOR,
        "ungrounded",
        "What it cites counts too little: its score is 0.73, and 0.90 is needed.",
        None,
    ),
    "more than its source": (
        page(f"Parcels go to every country of the union by train, see {PAGE}."),
        POLICY,
        "uncovered",
        "“Parcels go to every country of the union by train, see https://docs.example.com…” is not covered by what"
        " the claim cites: no source has “go”, “train”.",
        "uncovered",
    ),
    "only spoken of": (
        page(SPOKEN, policy=CAREFUL, official=True),
        CAREFUL,
        "ungrounded",
        "Its sources speak of every statement, and are not shown to say it.",
        None,
    ),
    "only unlisted pages": (
        page(f"We ship parcels and letters to every country of the union, see {PAGE}", policy=CAREFUL),
        CAREFUL,
        "ungrounded",
        "Only pages of publishers that nobody listed say it.",
        None,
    ),
    "a strict policy": (
        answer_of(claim_of(UNCLEAR), policy=STRICT),
        STRICT,
        "ungrounded",
        "It cites what was found, and the policy leaves what a model concluded to its owner all the same.",
        None,
    ),
}


@pytest.mark.parametrize(("answer", "policy", "rule", "why", "first"), CASES.values(), ids=CASES)
def test_why_an_item_waits_is_said_in_a_sentence(
    answer: ValidationResult, policy: Policy, rule: str, why: str, first: str | None
) -> None:
    assert answer.rule == rule
    view = view_of(answer, policy=policy)
    assert text(view.why) == why
    deciding = [finding for finding in answer.findings if finding.code == first]
    shown = [finding for finding in view.findings if finding.decides]
    assert [text(finding.says) for finding in shown] == [finding.message for finding in deciding]
    assert view.findings[: len(shown)] == tuple(shown)


def test_findings_go_from_what_decided_to_what_is_fine() -> None:
    claim = claim_of("Redis may be slow, say ADR-1, ADR-2 and ADR-3.")
    one, two, three = inspect(claim, DETECTOR).cited()
    readings: list[SourceReading] = [
        Unreachable(citation=one, code="dns", detail="No name."),
        Missing(citation=two, detail="Not there."),
        Found(
            citation=three, source_id="ADR-003", standing=Standing.IN_FORCE, detail="There.", official=True
        ),
    ]
    view = view_of(answer_of(claim, readings))
    assert [finding.kind for finding in view.findings] == [
        "doubt",
        "bad",
        "unknown",
        "unknown",
        "good",
        "good",
        "good",
    ]
    assert [finding.decides for finding in view.findings] == [True, *[False] * 6]
    assert [finding.check for finding in view.findings[:4]] == [
        "Hedges",
        "Citation",
        "Citation",
        "What the source says",
    ]
    assert [text(finding.citation) for finding in view.findings[:4]] == ["", "ADR-2", "ADR-1", "ADR-3"]


def test_an_answer_of_another_policy_is_shown_without_saying_which_finding_decided() -> None:
    view = view_of(CASES["a strict policy"][0], policy=POLICY)
    assert text(view.why) == "Ungrounded assertion needs verification"
    assert not any(finding.decides for finding in view.findings)


def test_what_was_written_on_the_item_since_is_what_is_shown() -> None:
    answer = CASES["unchecked"][0]
    later = "Could not be verified: tried again 8 times, at last: It did not answer."
    assert text(view_of(answer, item_of(answer, reason=later)).why) == later
    answer = CASES["hedge"][0]
    more = f"{answer.reason}. No ADR-999 exists."
    assert text(view_of(answer, item_of(answer, reason=more)).why) == (
        "The claim says what is possible, likely or usual, not what is: may, usually. No ADR-999 exists."
    )
    assert text(view_of(answer, item_of(answer, rule="refuted")).why) == answer.reason


def test_without_its_decision_an_item_is_shown_and_can_only_be_rejected() -> None:
    item = item_of(CASES["hedge"][0])
    view = view_of(None, item)
    assert text(view.claim) == HEDGED
    assert text(view.why) == item.reason
    assert (view.findings, view.sources, view.effect.options) == ((), (), ())
    assert view.effect.blocked.startswith("Its decision cannot be read")


# --- the claim


def test_hedges_citations_and_changed_values_are_marked_in_the_claim() -> None:
    view = view_of(CASES["hedge"][0])
    assert marked(view.claim, "hedge") == ["may", "usually"]
    assert {piece.note for piece in view.claim if piece.marks} == {
        "says what is possible, likely or usual, not what is"
    }
    view = view_of(CASES["the source says otherwise"][0])
    assert marked(view.claim, "citation") == [PAGE]
    assert marked(view.claim, "conflict") == ["18:00"]
    view = view_of(CONFLICT, policy=LOW)
    assert marked(view.claim, "changed") == ["6"]
    assert [(legend.mark, legend.notes) for legend in view.legend] == [
        ("changed", ("differs from the earlier claim",))
    ]


def test_offsets_count_characters_beyond_the_first_plane_as_one() -> None:
    view = view_of(answer_of(claim_of("😀𝔘\u202e The import may fail, says ADR-7 😀.")))
    assert marked(view.claim, "hedge") == ["may"]
    assert marked(view.claim, "citation") == ["ADR-7"]
    assert marked(view.claim, UNSEEN) == ["U+202E"]
    assert view.title == "😀𝔘⟨U+202E⟩ The import may fail, says ADR-7 😀."
    assert view.claim_text == "😀𝔘\u202e The import may fail, says ADR-7 😀."


@pytest.mark.parametrize(
    ("standing", "note"),
    [
        (Standing.IN_FORCE, "found"),
        (Standing.SUPERSEDED, "superseded"),
        (Standing.PROPOSED, "proposed"),
        (Standing.AMBIGUOUS, "more than one thing has this name"),
    ],
)
def test_a_citation_says_what_became_of_it(standing: Standing, note: str) -> None:
    claim = claim_of(UNCLEAR)
    view = view_of(answer_of(claim, read(inspect(claim, DETECTOR), standing=standing)))
    assert [piece.note for piece in view.claim if "citation" in piece.marks] == [note]


def test_a_thing_cited_in_two_spellings_is_marked_twice() -> None:
    view = view_of(missing("ADR-999 says so, and adr 999 is in force."))
    assert marked(view.claim, "citation") == ["ADR-999", "adr 999"]
    assert [piece.note for piece in view.claim if piece.marks] == ["does not exist", "cited"]


# --- the earlier claims


def test_a_conflict_is_shown_with_what_differs_and_how_the_memory_stands() -> None:
    conflict = view_of(CONFLICT, conflict=memory_of(), policy=LOW).conflict
    assert conflict is not None
    assert (conflict.id, conflict.kind, conflict.status) == ("mem_1", "memory", "active")
    assert conflict.similarity == "86 % of the words"
    assert conflict.note == "Held as an inference of medium confidence, from user."
    assert conflict.stored is not None
    assert conflict.stored.ago == "13 days ago"
    assert (text(conflict.diff.old), text(conflict.diff.new)) == (STORED, CHANGED)
    assert (marked(conflict.diff.old, "changed"), marked(conflict.diff.new, "changed")) == (["5"], ["6"])
    assert [text(word) for word in conflict.changed] == ["6", "5"]


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (MemoryStatus.RETRACTED, "withdrawn"),
        (MemoryStatus.SUPERSEDED, "replaced"),
        (MemoryStatus.EXPIRED, "time is over"),
    ],
)
def test_a_conflict_with_what_is_not_in_force_any_more_leaves_one_way_to_approve(
    status: MemoryStatus, said: str
) -> None:
    view = view_of(CONFLICT, conflict=memory_of(status=status), policy=LOW)
    assert view.conflict is not None
    assert view.conflict.status == status.value
    assert said in view.conflict.note
    assert [option.label for option in view.effect.options] == ["Approve"]


def test_the_text_of_an_earlier_claim_that_was_not_read_again_is_that_of_the_decision() -> None:
    for answer, policy, status, note in (
        (CONFLICT, LOW, "unknown", "It cannot be found any more."),
        (CASES["conflict with an item"][0], LOW, "pending", "It waits for review too"),
        (paraphrase(), VECTOR, "unknown", "As it was when the claim was sent."),
    ):
        conflict = view_of(answer, policy=policy).conflict
        assert conflict is not None
        assert conflict.status == status
        assert conflict.note.startswith(note)
        assert text(conflict.text) == text(conflict.diff.old) != ""
        assert conflict.paraphrase == (answer.rule == "dedup_unknown")
    assert view_of(CASES["ungrounded"][0]).conflict is None


def test_near_memories_are_shown_with_their_similarity_and_a_diff() -> None:
    similar = (SimilarMemory(memory_id="mem_9", similarity=0.9199, content="Redis is on port 6380."),)
    view = view_of(CASES["ungrounded"][0], similar=similar)
    (shown,) = view.similar
    assert (shown.id, shown.similarity, view.similar_note) == ("mem_9", "91 %", "")
    assert (marked(shown.diff.old, "removed"), marked(shown.diff.new, "added")) == (["6380"], ["6379"])
    assert view_of(CASES["ungrounded"][0], similar=()).similar_note == "Nothing near it is stored."
    assert view_of(CASES["ungrounded"][0], similar=None).similar_note.endswith("not known.")


# --- who, when, and what became of it


def test_waiting_sender_and_rejection_are_said_in_words() -> None:
    claim = claim_of(PLAIN, asserted_source=Source.USER, memory_type=MemoryType.PREFERENCE)
    answer = answer_of(claim)
    before = RejectedBefore(queue_id="rev_0", reason="Not \u202etrue", rejected_at=SENT - timedelta(days=4))
    view = view_of(
        answer,
        item_of(answer, seen=4, metadata={"b": {"x": [1]}, "a": "y" * 300, "n": None}),
        rejected=before,
        next_check=NOW + timedelta(minutes=3),
    )
    assert view.waited == "waits 3 days, expires in 27 days, sent 4 times"
    assert text(view.sent_by) == "agent “first agent”, as ai_synthesis: it said user, which it may not"
    assert text(view_of(answer, sender=None).sent_by).startswith("token tok_1, as ai_synthesis")
    assert view.priority == ("waits 3 days",)
    assert view.next_check is not None
    assert view.next_check.ago == "in 3 minutes"
    assert view.rejected is not None
    assert (view.rejected.id, view.rejected.when.ago) == ("rev_0", "7 days ago")
    assert marked(view.rejected.reason, UNSEEN) == ["U+202E"]
    shown = [(text(fact.name), text(fact.value)) for fact in view.metadata]
    assert shown == [("a", "y" * 300), ("b", '{"x": [1]}'), ("n", "null")]
    assert (view.memory_type, view.created.date) == ("preference", "2026-03-01 12:00 UTC")


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (ReviewStatus.APPROVED, "Approved by tok_2: it is a memory now."),
        (ReviewStatus.REJECTED, "Rejected by tok_2: it will not be stored."),
        (ReviewStatus.EXPIRED, "Its time ran out, and nobody decided."),
        (ReviewStatus.PROMOTED, "Stored by itself: what it cites was found when it was looked at again."),
    ],
)
def test_what_became_of_a_decided_item(status: ReviewStatus, words: str) -> None:
    answer = CASES["ungrounded"][0]
    decided = SENT + timedelta(hours=5)
    item = item_of(
        answer, status=status, decided_at=decided, decided_by="tok_2", note="Because.", memory_id="mem_2"
    )
    view = view_of(answer, item, now=decided + timedelta(minutes=17), undo_until=decided + timedelta(hours=1))
    assert view.became is not None
    assert (text(view.became.words), view.became.memory_id) == (words, "mem_2")
    assert (text(view.became.reason), view.became.undo_words) == (
        "Because.",
        "can be taken back for 43 minutes",
    )
    assert view.became.when is not None
    assert view.became.when.ago == "17 minutes ago"
    assert (view.waiting, view.effect.options, view.effect.blocked) == (False, (), "")
    assert view.waited == "waited 5 hours"
    late = view_of(answer, item, undo_until=decided)
    assert late.became is not None
    assert late.became.undo_words == ""
    assert view_of(answer).became is None
