"""Issue and pull request citations in sentences, and hashes that are none."""

import pytest

from vouchgate.ingest.citations import detect_citations


def issues(text: str) -> list[tuple[str, str]]:
    found = detect_citations(text)
    assert {citation.type for citation in found} <= {"issue", "path"}
    return [(one.value, one.key.removeprefix("issue:")) for one in found if one.type == "issue"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Fixed by #77.", [("#77", "#77")]),
        ("(#4711)", [("#4711", "#4711")]),
        ("[#4711]", [("#4711", "#4711")]),
        ("[#4711](#notes)", [("#4711", "#4711")]),
        ("#77: flaky", [("#77", "#77")]),
        ("#612345, as Ann says", [("#612345", "#612345")]),
        ("Closes #77,#78", [("#77", "#77"), ("#78", "#78")]),
        ("#77-#79", [("#77", "#77"), ("#79", "#79")]),
        ("#77/#79", [("#77", "#77"), ("#79", "#79")]),
        ("PR #77 and issue #78", [("#77", "#77"), ("#78", "#78")]),
        ("pull request #77", [("#77", "#77")]),
        ("issue#77, PR#78, gh#79", [("#77", "#77"), ("#78", "#78"), ("#79", "#79")]),
        ("Merged as PR 77", [("PR 77", "#77")]),
        ("Pull request 77 did it", [("Pull request 77", "#77")]),
        ("see GH-77 and gh-10077.", [("GH-77", "#77"), ("gh-10077", "#10077")]),
        ("Acme/Web-App#5 is upstream", [("Acme/Web-App#5", "acme/web-app#5")]),
        ("(vercel/next.js#500)", [("vercel/next.js#500", "vercel/next.js#500")]),
        ("bug #77's log", [("#77", "#77")]),
        ("＃77 is full-width", [("＃77", "#77")]),
        ("Fixes #1", [("#1", "#1")]),
        ("Fix the colour of links (#123456)", [("#123456", "#123456")]),
        ("`#77`", [("#77", "#77")]),
        ("fix(core): retry (#77) (#78)", [("#77", "#77"), ("#78", "#78")]),
        ("We saw #77 — twice", [("#77", "#77")]),
        ("Fixed in ticket #77, see the ticket #78", [("#77", "#77"), ("#78", "#78")]),
        ("Ticket #77: the queue is bounded (ticket #78)", [("#77", "#77"), ("#78", "#78")]),
        ("参照#77。", [("#77", "#77")]),
        ("参照acme/web#77", [("acme/web#77", "acme/web#77")]),
    ],
)
def test_issue(text: str, expected: list[tuple[str, str]]) -> None:
    assert issues(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "# 12 reasons",
        "## 7 steps",
        "The accent is #8a2be2, the text #000 or #000000.",
        "color: #333; background:#123456",
        "The background is #123456 in the dark theme",
        "['#112233', '#AABBCC']",
        "Grey is #777777",
        "It&#8217;s &#39;quoted&#39;",
        "guide/setup.md#12 and notes.txt#3",
        "src/lib.c#12, ./a/b/c#4",
        "//depot/x.png#2",
        "The channel #2-general and the tag #2024goals",
        "C#7 and F#4",
        "X##1 and \\#1",
        "[#1-9]+",
        "the #1 cause of our #2 problem",
        "Step #3, line #42, error #188, test #1234, Fig. #2",
        "Ticket #48210 was closed on 2 May, and order #312 was paid.",
        "Bea opened ticket #12 for invoice #7",
        "#0 and #007",
        "[back](#12)",
        "href=#12",
        "*#31# hides it",
        "#1.5 and #12%",
        "#1  0x00005555 in main ()",
        "#12345678 is too long",
        "The PR 3 days later, PR 2 of 3",
        "PRO-12, gh-pages, gh-12x",
    ],
)
def test_not_an_issue(text: str) -> None:
    assert issues(text) == []
