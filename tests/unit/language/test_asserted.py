"""What a page has and does not say: struck, hidden, denied by what leads to it or by its heading."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.running.hangs import given_up_after
from vouchgate.ingest.language.asserted import without_unsaid


@pytest.mark.parametrize(
    ("text", "gone", "kept"),
    [
        ("~~Kept ten years.~~ Kept seven years.", ["ten"], ["seven"]),
        ("İİİİ <DEL>ten</DEL> seven", ["ten"], ["seven", "İİİİ"]),
        ("Kept <del>ten</del> <ins>seven</ins> years.", ["ten"], ["seven"]),
        ("Runs at noon.\n<!-- Interns approve. -->\nLogs are kept.", ["Interns"], ["noon", "Logs"]),
        ("A\n\n////\nInterns approve.\n////\n\nLogs are kept.\n", ["Interns"], ["Logs"]),
        ("A\n\n.. Interns approve\n   all deploys.\n\nLogs are kept.\n", ["Interns", "deploys"], ["Logs"]),
        (".. note:: Logs are kept.\n", [], ["Logs"]),
        (
            "We do not use:\n\n- Triggers\n- Copies\n  of rows\n\nWe use views.\n",
            ["Triggers", "rows"],
            ["views"],
        ),
        ("**Nobody may:**\n1. Share passwords\n", ["passwords"], []),
        ("We use:\n\n- Triggers\n", [], ["Triggers"]),
        ("Don't:\n\n- Mount secrets\n", ["secrets"], []),
        ("- ❌ Mount secrets\n- Wrong: guess\n- Bad: slow\n", ["secrets", "guess"], ["slow"]),
        ("We do not do\nany of these:\n\na) Guess\nb) Ask\n", ["Guess", "Ask"], []),
        ("The following are never started at night:\n\n- Tests\n", ["Tests"], ["night"]),
        ("It needs no compiler. It runs on:\n\n- Linux\n", [], ["Linux"]),
        ("Do not forget to:\n\n- Lock up\n", [], ["Lock"]),
        ("if x is not None:\n    - Lock up\n", [], ["Lock"]),
        ("## Abandoned carts\n\nCarts expire.\n\n## Rejected: Sendmail\n\nIt is old.", ["old"], ["expire"]),
        ("## Not chosen\n\n```sh\n# a comment\n```\n\nMirrors.\n", ["Mirrors"], []),
        ("```sh\n# not chosen\nmake\n```\n\nLogs are kept.\n", [], ["make", "Logs"]),
        ("We use (not only here):\n\n- Triggers\n", [], ["Triggers"]),
        (
            "## Use\n\nViews.\n\n### Not chosen\n\nCopies.\n\n#### Why\n\nOld.\n\n## More\n\nLogs.",
            ["Copies", "Old"],
            ["Logs"],
        ),
        ("## What we will not do\n\nSell data.\n\n## Plans\n\nBuild.", ["Sell"], ["will", "Build"]),
        ("Rejected options\n----------------\n\nMirrors.\n\nUse\n---\n\nViews.\n", ["Mirrors"], ["Views"]),
        ("## Alternatives\n\nMirrors.", ["Mirrors"], ["Alternatives"]),
        ("## No-op mode\n\nIt logs.", [], ["logs"]),
        ("Use `~~` for strikes and `~` for home.\n\n~~~\ncode\n~~~\n", [], ["strikes", "home", "code"]),
        ("An <!-- that never ends: Logs are kept.", [], ["Logs"]),
        ("~~ an odd sign, Logs are kept.", [], ["Logs"]),
    ],
)
def test_what_is_not_said_is_taken_out(text: str, gone: list[str], kept: list[str]) -> None:
    left = without_unsaid(text)
    assert len(left) == len(text)
    assert [word for word in gone if word in left] == []
    assert [word for word in kept if word not in left] == []


@given(st.text(alphabet="~<!->del/#*:- \nnot.ab", max_size=300))
def test_offsets_and_lines_hold(text: str) -> None:
    left = without_unsaid(text)
    assert len(left) == len(text)
    assert [at for at, sign in enumerate(text) if sign == "\n"] == [
        at for at, sign in enumerate(left) if sign == "\n"
    ]


@pytest.mark.parametrize(
    "run", ["<!--", "~~a ", "<del", "not:\n- a\n", "# not done\n", "////\n", "a\n===\n", ".. a\n"]
)
def test_long_runs_take_no_time(run: str) -> None:
    with given_up_after(seconds=5):
        without_unsaid(run * 20_000)
