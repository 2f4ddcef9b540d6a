"""Every character of a document is claim, exempt or markup; what is no claim has a reason from the list."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vouchgate.ingest.documents as room
from tests.unit.documents.desk import accounted, claims, kinds, read
from vouchgate.ingest.documents import LARGEST, Reason, Unreadable, read_document

WORDS = "The kiln burns oak.|Is it hot?|[citation needed]|ADR-0005|é|窯は熱い。|Sources:|Source: |https://oven.example/c"
SPACE = " |  \n|\n|\r\n|\n\n|\t|    |\u2028|\x0b|\x85|\ufeff"
SIGNS = (
    "\\|•|&amp;|# |- |1. |> |```|~~~|`|**|*|_|[|]|(|)|](|![|<|>|![a](b)|---\n|===|.. note::|::|``x``|`a <b>`_"
)
LINKS = "](https://oven.example/a)|[^1]|[^1]: |[1]|[1]: https://oven.example/b|<a href='https://oven.example'>|</a>"
TAGS = "<p>|</p>|<!--|-->|<table><tr><td>|<pre>|<script>"
PIECES = st.sampled_from([*"|".join((WORDS, SPACE, SIGNS, LINKS, TAGS)).split("|"), "|", "|-|-|\n"])


@given(st.lists(PIECES, max_size=40).map("".join), st.sampled_from(["a.md", "a.html", "a.rst", "a.txt"]))
@settings(max_examples=400, deadline=None)
def test_every_character_is_accounted_for(text: str, name: str) -> None:
    try:
        accounted(read_document(name, text.encode()))
    except Unreadable as error:
        assert str(error) == "it is empty"


@given(st.text(max_size=200), st.sampled_from(["a.md", "a.html", "a.rst", "a.txt"]))
@settings(max_examples=200, deadline=None)
def test_any_text_is_accounted_for(text: str, name: str) -> None:
    try:
        accounted(read_document(name, text.encode(errors="replace")))
    except Unreadable:
        assert "\0" in text or not text.strip("\ufeff \t\r\n\f\v")


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("begin", ["", "\ufeff"])
def test_line_ends_and_a_byte_order_mark_change_nothing_but_places(newline: str, begin: str) -> None:
    text = begin + "# Kilns\n\nThe kiln burns oak\nfrom the hill. It is old.\n\n- One was sold.\n".replace(
        "\n", newline
    )
    assert claims(text) == ["The kiln burns oak from the hill.", "It is old.", "One was sold."]
    assert [read(text).text[claim.start] for claim in read(text).claims] == ["T", "I", "O"]


def test_f1_a_document_without_claims_says_so() -> None:
    document = read("# Kilns\n\n```\nheat()\n```\n\nIs it hot?\n")
    assert document.claims == ()
    assert {block.reason for block in document.blocks} == {None, Reason.HEADING, Reason.CODE, Reason.QUESTION}


def test_f2_the_whole_text_is_read() -> None:
    text = "".join(f"The kiln number {number} burns oak.\n\n" for number in range(2000))
    assert claims(text) == [f"The kiln number {number} burns oak." for number in range(2000)]


def test_f3_no_model_decides_what_is_a_claim() -> None:
    """The room imports rules over text only: nothing that could ask anybody."""
    known = {
        "__future__",
        "bisect",
        "collections",
        "dataclasses",
        "datetime",
        "enum",
        "hashlib",
        "html",
        "posixpath",
        "re",
        "typing",
    }
    known |= {"markdown_it", "mdit_py_plugins"}
    reading = ("documents", "citations", "claims", "language", "data")
    judging = ("corroboration", "pipeline", "policy", "scoring", "support")  # what the gate for memories does
    ours = {"vouchgate.ingest." + name for name in (*reading, *judging)}
    for file in Path(inspect.getfile(room)).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                assert name.partition(".")[0] in known or ".".join(name.split(".")[:3]) in ours, (file, name)


def test_f8_no_less_is_checked_than_is_there() -> None:
    """Every letter outside of markup is in a claim or has a reason; a claim's text has every word of its sentence."""
    text = "The *kiln* burns oak `only`, see [the log](https://oven.example/a). It <b>never</b> cools &amp; cracks.\n"
    assert claims(text) == ["The kiln burns oak `only`, see the log.", "It never cools & cracks."]


@pytest.mark.parametrize(
    ("sentence", "reason"),
    [
        ("Which kiln is hotter?", Reason.QUESTION),
        ("And how hot is it?", Reason.QUESTION),
        ("Open the door of the kiln.", Reason.IMPERATIVE),
        ("Please check the cone before firing.", Reason.IMPERATIVE),
        ("Run `make fire` twice.", Reason.IMPERATIVE),
        ("This report describes the kilns of the village.", Reason.ABOUT_DOCUMENT),
        ("In this section we compare the two glazes.", Reason.ABOUT_DOCUMENT),
        ("As an AI language model, I cannot see the kiln.", Reason.ABOUT_DOCUMENT),
        ("I think the blue glaze is nicer.", Reason.OPINION),
        ("In our view oak is the better wood.", Reason.OPINION),
        ("Looking for a kiln?", Reason.QUESTION),
        ("Look for cracks in the roof.", Reason.IMPERATIVE),
        ("Be careful with the door.", Reason.IMPERATIVE),
        ("Remember to close the door.", Reason.IMPERATIVE),
        ("Some of the reasons are:", Reason.ABOUT_DOCUMENT),
        ("It can be mended as follows:", Reason.ABOUT_DOCUMENT),
        ("There are several ways to mend it:", Reason.ABOUT_DOCUMENT),
        ("Sure, here is more about the kiln.", Reason.ABOUT_DOCUMENT),
        ("Welcome to our workshop!", Reason.ABOUT_DOCUMENT),
        ("This is not an exhaustive list.", Reason.ABOUT_DOCUMENT),
        ("If you want to see it, please write to us.", Reason.ABOUT_DOCUMENT),
        ("Beginners should avoid the big kiln.", Reason.OPINION),
        ("A second kiln would be a major step for the village.", Reason.OPINION),
        ("The sale is likely to shape the future of the village.", Reason.OPINION),
        ("The cause is unclear, and more research is needed.", Reason.OPINION),
        ("The museum is a great place for children.", Reason.OPINION),
        ("Whether it lasts remains to be seen.", Reason.OPINION),
    ],
)
def test_what_says_nothing_is_exempt(sentence: str, reason: Reason) -> None:
    assert kinds(sentence) == [(reason, sentence)]


@pytest.mark.parametrize(
    "sentence",
    [
        'The kiln asks, "Is it hot?"',
        "The kiln holds 40 pots, does it not?",
        "Use oak because it is twice as hot as pine.",
        "Use of oak fell in the valley.",
        "Run times grew by a third.",
        "Set in 1920, the film shows a potter.",
        "Run by two sisters, the workshop has no sign.",
        "Type `cone` comes from the kiln of the village.",
        "`Open` the kiln burns oak.",
        "Search in the archive takes two days.",
        "Close the kiln: it cracks in the cold.",
        "This report shows that the kiln reaches 1,300 degrees.",
        "I think the kiln reaches 1,300 degrees.",
        "We believe that oak is hotter [log](https://oven.example/a).",
        "Note that the kiln is cracked.",
        "It is important to note that the kiln is cracked.",
        "The kiln holds the following pots, and no others:",
        "The three kings of the valley are:",
        "The roof is closed if the ovens are:",
        "Thanks to the wood, the kiln is hot.",
        "Of course, oak is hotter than pine.",
        "To fire a pot, place it on the second shelf.",
        "A second kiln would be 40 m from the first.",
        "It lowers the heat, but more research is needed.",
        "`heat` is likely to change in the future.",
        "The kiln is likely to crack.",
        "Research on clay takes two days.",
        "Search for oak on the hill was slow.",
        "窯は熱い。",
    ],
)
def test_in_doubt_it_is_a_claim(sentence: str) -> None:
    assert [kind for kind, _ in kinds(sentence)] == ["claim"]


def test_sentences_end_where_lists_run_on() -> None:
    assert claims("Three woods burn well: • oak • beech • birch") == [
        "Three woods burn well:",
        "oak",
        "beech",
        "birch",
    ]
    assert claims("4. Text by hand\n5. Sold in May\n") == ["Text by hand", "Sold in May"]
    assert claims("First 1. The clay is cut. 2. The pot is thrown. 3. It dries.") == [
        "First", "The clay is cut.", "The pot is thrown.", "It dries.",
    ]  # fmt: skip
    assert claims("There were 4. Then two broke.") == ["There were 4.", "Then two broke."]


def test_lines_of_a_wrapped_paragraph_are_one_text() -> None:
    wide = f"The kiln on the hill burns oak, {'and oak alone, ' * 6}since\nThe Potter's winter."
    assert len(claims(wide)) == 1
    assert claims("See the\n[Kiln book](https://oven.example/a) for more.") == ["See the Kiln book for more."]
    assert claims("The kiln is hot\n-- so they say") == ["The kiln is hot -- so they say"]
    assert claims("Name: Kiln\nTown: Oven") == ["Name: Kiln", "Town: Oven"]
    assert claims("The kiln is hot  \nThe door is shut") == ["The kiln is hot", "The door is shut"]
    assert claims("The kiln is hot\\\nThe door is shut") == ["The kiln is hot", "The door is shut"]


def test_only_a_title_in_bold_is_a_heading() -> None:
    text = "**Why oak**\nIt is hot.\n\n**The kiln is cold**\n\nIt is old. **It works.** It is red.\n\n- **Ash**\n"
    assert claims(text) == ["It is hot.", "The kiln is cold", "It is old.", "It works.", "It is red.", "Ash"]


def test_boxes_of_tasks_and_labels_of_notes_are_markup() -> None:
    assert claims("- [x] The kiln is hot\n- [ ] It is old\n") == ["The kiln is hot", "It is old"]
    assert claims("> [!NOTE]\n> The kiln is hot.\n") == ["The kiln is hot."]


def test_front_matter_is_markup_and_a_rule_is_none() -> None:
    assert claims("---\ntitle: The kiln is cold\ntags: [a]\n---\nThe kiln is hot.\n") == ["The kiln is hot."]
    assert claims("---\nThe kiln is cold, they say.\n\n---\nThe kiln is hot.\n") == [
        "The kiln is cold, they say.",
        "The kiln is hot.",
    ]


def test_a_table_is_told_by_row_and_header() -> None:
    text = "| Wood | Heat |\n|---|---|\n| oak | 1,200 |\n| pine \\| fir | 900 |\n"
    assert claims(text) == ["Wood: oak; Heat: 1,200", "Wood: pine | fir; Heat: 900"]


def test_sections_and_leads_are_known() -> None:
    text = "# Kilns\n\n## Heat\n\n**Cost**\n\nOak is dear for two reasons:\n\n- it grows slowly\n"
    text += "\n## Age\n\nIt is old.\n"
    found = read(text).claims
    assert [(claim.section, claim.lead) for claim in found] == [
        (("Kilns", "Heat", "Cost"), ""),
        (("Kilns", "Heat", "Cost"), "Oak is dear for two reasons:"),
        (("Kilns", "Age"), ""),
    ]


def test_what_is_nested_too_deep_is_still_read() -> None:
    assert claims("> " * 200 + "The kiln is hot.") == ["The kiln is hot."]
    assert claims("- " * 200 + "The kiln is hot.") == ["The kiln is hot."]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "it is empty"),
        (b"\xef\xbb\xbf \n\t", "it is empty"),
        (b"The kiln\0is hot.", "it is binary: it has a zero byte"),
        ("Der Ofen glüht.".encode("latin-1"), "it is not UTF-8: byte 12 is part of no character"),
        ("The kiln".encode("utf-16"), "it is not UTF-8: byte 1 is part of no character"),
        (b"a" * (LARGEST + 1), "it has more than 5000000 bytes"),
    ],
)
def test_what_is_no_document_is_refused_with_a_sentence(content: bytes, why: str) -> None:
    with pytest.raises(Unreadable) as refused:
        read_document("page.md", content)
    assert str(refused.value) == why


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("It was built in [1935](log.md).", "It was built in 1935."),
        ("Sales grew by [12%](log.md).", "Sales grew by 12%."),
        ("It has [4](log.md) doors.", "It has 4 doors."),
        ("It burned [4](log.md) times.", "It burned 4 times."),
        ("It is [½](log.md) full.", "It is ½ full."),
        ("It is old ([built in 1935](log.md)).", "It is old (built in 1935)."),
        ("It is old ([1935](log.md)).", "It is old (1935)."),
        ("It is old ([12% more](log.md), [not red](log.md)).", "It is old (12% more, not red)."),
        ('It was built in <a href="log.md">1935</a>.', "It was built in 1935."),
    ],
)
def test_a_link_on_a_value_keeps_it(text: str, said: str) -> None:
    assert claims(text) == [said]


@pytest.mark.parametrize(
    "noted",
    [
        "It is hot [1](a.md).",
        "It is hot [[1]](a.md)[[2]](b.md).",
        'It is hot<sup><a href="a.md">7</a></sup>.',
        "It is hot [†](a.md).",
        "It is hot [¹](a.md).",
        "It is hot ([#820](a.md)).",
        "It is hot ([8167801](https://forge.example/commit/8167801)).",
        "It is hot ([log](a.md), [2019 report](b.md), [page 12](c.md), [what it says](d.md)).",
    ],
)
def test_the_number_of_a_note_and_the_name_of_a_source_are_no_words(noted: str) -> None:
    assert [said.replace(" .", ".") for said in claims(noted)] == ["It is hot."]


def test_bare_numbers_of_notes_are_counted_from_one() -> None:
    assert claims("It is hot [1](a.md). It is old [2](b.md).") == ["It is hot.", "It is old."]


BURNED = "The kiln of Vester burned down in 1935."


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("[The kiln of Vester burned down in 1935](log.md).", "page.md"),
        (f"[{BURNED}](log.md)", "page.md"),
        (f"It is old.[^1]\n\n[^1]: {BURNED} See the [log](log.md).", "page.md"),
        (f"## Sources\n\n{BURNED}\n", "page.md"),
        (f"{BURNED}\nIt is red.\n---\n", "page.md"),
        (f"# {BURNED}\n", "page.md"),
        (f"| {BURNED} |\n|---|\n| red |\n", "page.md"),
        (f"<h2>{BURNED}</h2>", "page.html"),
        (f"{BURNED}\n{'-' * len(BURNED)}\n", "page.txt"),
    ],
)
def test_a_sentence_is_a_claim_wherever_it_stands(text: str, name: str) -> None:
    assert BURNED in claims(text, name)


@pytest.mark.parametrize("lead", ["The kiln burned oak in 1935", "The kiln heats the bowls"])
def test_a_sentence_that_leads_in_with_a_source_is_a_claim(lead: str) -> None:
    assert claims(f"{lead} ([log](log.md)):\n\n- hot\n") == [f"{lead}:", "hot"]
    assert claims("**Published sources** ([log](log.md)):\n\n- hot\n") == ["hot"]


@pytest.mark.parametrize(
    "text",
    [
        "[The history of the kilns of Vester, part two.](log.md)",
        "# How it was built\n",
        "It is old.[^1]\n\n[^1]: Smith, J. (2019). How kilns changed the world. Kiln Press.",
        "## Sources\n\n- Kilns of Vester, translated by Oda Brandt, second edition, revised.\n",
    ],
)
def test_a_title_and_the_entry_of_a_source_are_none(text: str) -> None:
    assert claims(text) in ([], ["It is old."])
