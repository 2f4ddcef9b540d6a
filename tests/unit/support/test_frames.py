"""What the form of a page says of a sentence of it: a plan, the past, a condition, another's words, or a mistake."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.running.hangs import given_up_after
from vouchgate.ingest.claims.source import Stance
from vouchgate.ingest.language.frames import frames
from vouchgate.ingest.language.sentences import sentences
from vouchgate.ingest.support.source_text import SourceText
from vouchgate.ingest.support.stance import stances

SAID = "The ferry office sells tickets on Sundays."
PAGE = "# The pier\n\nBoats leave from the north side.\n\n{}\n\nThe pier belongs to the town, which paints it in May.\n"


def stance(claim: str, part: str) -> Stance:
    (held,) = stances(claim, SourceText(PAGE.format(part)))
    return held.stance


@pytest.mark.parametrize(
    "part",
    [
        "## Roadmap\n\n- {}",
        "## 3. Open questions\n\nWhat is left:\n\n{}",
        "## Risks\n\n### Of money\n\n{}",
        "## Before 2024\n\n{}",
        '<h2 align="center">Roadmap</h2>\n\n{}',
        "<h3>2. <b>Rejected</b></h3>\n\n{}",
        "h2. Roadmap\n\n{}",
        "Old behaviour\n-------------\n\n{}",
        "Planned for May: {}",
        "> **Outdated:** {}",
        "- Draft: it is said that\n  {}",
        "- [ ] {}",
        "If the winter is mild:\n\n- {}",
        "Only in the high season:\n\n1. {}",
        "In the next version:\n\n* {}",
        "A passenger wrote:\n\n> {}",
        "A wrong answer would be:\n\n```\n{}\n```",
        'The mayor said in 1990: "{}"',
        "Suppose this: {}",
        "| What | State |\n|---|---|\n| It has a roof. | done |\n| {} | planned |",
        "| What | State |\n|---|---|\n| {} | rejected |",
        "{} (planned)",
        "{} That is no longer the case.",
        "{}\n\nThat is no longer the case.",
        "> {}\n\nThis is wrong.",
        "Myth: {}",
        "Rumour has it: {}",
        "A competitor says:\n\n> {}",
        "- **Common misconception:** {}",
        "{} However, this is not true.",
        "{} Or does it?",
        "{} This was abandoned in May.",
        "That the ferry office sells tickets on Sundays is not the case.",
        "Selling tickets on Sundays in the ferry office was rejected.",
        "In the old system the ferry office sells tickets on Sundays.",
        "- Option B: {}",
        "- Not implemented: {}",
        "The ferry office sells tickets on Sundays - not any more.",
        "The ferry office sells tickets on Sundays; this was abandoned.",
        "{} This is a common misconception.",
        "Considered: {}",
        "Goal: {}",
        "Legacy: {}",
        "What not to do: {}",
        "Vendor: {}",
        "{} (in theory)",
        "{} This is only a proposal.",
        "{} This did not work out.",
        "{} That changed with the new pier.",
        "{} We gave this up in May.",
        "{} At least that was the plan.",
        "{} Or so the mayor says.",
        "The ferry office sells tickets on Sundays, but this was reverted.",
        "The ferry office sells tickets on Sundays, which we have since dropped.",
        "Selling tickets on Sundays in the ferry office costs too much.",
        "```diff\n- {}\n+ It has no office.\n```",
        '<s class="old">{}</s>',
        "<div hidden><div>Ada</div> {}</div>",
        '<p style="color: red; display: none">{}</p>',
        "[//]: # ({})",
    ],
)
def test_what_is_framed_does_not_hold_by_itself(part: str) -> None:
    assert stance(SAID, part.format(SAID)) is not Stance.STATES


@pytest.mark.parametrize("status", ["is open", "is open as a draft", "was closed without being merged"])
def test_what_a_change_that_was_not_merged_says_is_not_so(status: str) -> None:
    thread = "Tickets\n\nPull request 12 {}.\n\n" + SAID
    unmerged, merged = (SourceText(thread.format(said)) for said in (status, "was merged"))
    (held,), (now,) = stances(SAID, unmerged), stances(SAID, merged)
    assert (held.stance, now.stance) == (Stance.SPEAKS, Stance.STATES)
    (told,) = stances(f"By PR 12, {SAID[0].lower()}{SAID[1:]}", unmerged)
    assert told.why != "under"


@pytest.mark.parametrize(
    "part",
    [
        "{}",
        "It works so:\n\n- {}",
        "## Roadmap\n\n- Build a roof.\n\n## Tickets\n\n{}",
        "## Before you board\n\n{}",
        "- [x] {}",
        "Draft: Build a roof.\n\n{}",
        "Old: It has none.\n\nNew: {}",
        "If the winter is mild:\n\n- Boats leave later.\n\n{}",
        "| What | State |\n|---|---|\n| {} | done |\n| It has a roof. | planned |",
        "| What | State |\n|---|---|\n| It has a roof. | planned |\n\n{}",
        "{} To have none was wrong.",
        "{} That is right for all seasons.",
        "{} We removed the old roof.",
        "{} This was the plan of the mayor, and it works.",
        "The ferry office, which is open in May, has a roof. {}",
        "```diff\n- It has no office.\n+ {}\n```",
        "<strong>{}</strong>",
        "<p hidden>Ada</p>\n\n{}",
        "## Roadmap\n\n- {0}\n\n## Tickets\n\n{0}",
    ],
)
def test_what_stands_beside_a_frame_holds(part: str) -> None:
    assert stance(SAID, part.format(SAID)) is Stance.STATES


@pytest.mark.parametrize(
    ("claim", "part"),
    [
        ("A new roof is planned.", "| What | State |\n|---|---|\n| A new roof | planned |"),
        ("The old ferry office sells tickets on Sundays.", f"## Old office\n\n{SAID}"),
        (
            "If the winter is mild, the ferry office sells tickets on Sundays.",
            f"If the winter is mild:\n\n- {SAID}",
        ),
    ],
)
def test_a_claim_that_says_the_frame_has_what_it_frames(claim: str, part: str) -> None:
    assert stance(claim, part) is Stance.STATES


@given(st.text(st.sampled_from("|-#>:()[]<>`~ \nabx*_.") | st.characters(), max_size=200))
def test_any_text_is_answered(text: str) -> None:
    assert all(0 <= one.start <= one.end <= len(text) for one in frames(text, sentences(text)))


@pytest.mark.parametrize(
    "part", ["<s> ", "<div hidden> ", "<!-- ", "[a]: # (x\n", "|planned", "a (planned). "]
)
def test_long_runs_take_no_time(part: str) -> None:
    with given_up_after(10):
        SourceText("a\n\n" + part * 20_000)
