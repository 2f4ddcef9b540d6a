"""Where the sentences of a document end: in lists that run on, behind abbreviations and numbers."""

from __future__ import annotations

import pytest

from tests.unit.documents.desk import claims, kinds


@pytest.mark.parametrize("name", ["page.md", "page.txt"])
@pytest.mark.parametrize(
    "parts",
    [
        ["The kiln has three faults:", "the door is cracked", "the chimney leaks"],
        ["The clay is cut.", "The pot is thrown.", "It dries for a week."],
        ["There are two steps:", "The clay is cut", "The pot is thrown"],
    ],
)
def test_a_list_that_runs_on_is_cut(parts: list[str], name: str) -> None:
    bullets = "• ".join(f"{part} " for part in parts)
    assert [said for _, said in kinds(bullets, name)] == parts
    numbers = " ".join(f"{number}. {part}" for number, part in enumerate(parts, 4))
    assert [said for _, said in kinds(numbers, name)] == parts


def test_a_bullet_needs_no_space() -> None:
    parts = ["The museum is open:", "Monday to Friday, 9 to 5", "Saturday, 10 to 2"]
    assert [said for _, said in kinds(" •".join(parts))] == parts


@pytest.mark.parametrize(
    "marked",
    [
        "There are two steps: |1) the clay is cut |2) the pot is thrown",
        "Its rules are: |1. No smoking. |2. No fires after 9 p.m.",
        "The recipe: |1. 2 kg of clay |2. 1 l of water |3. 50 g of salt",
        "It began: |1. 1920 – the kiln is built |2. 1935 – the roof falls in |3. 1950 – it is sold",
        "The reasons are simple: |(1) Oak is cheap. |(2) Oak is near.",
    ],
)
def test_numbers_that_lead_in_are_no_words(marked: str) -> None:
    said = [said for _, said in kinds(marked.replace("|", ""))]
    assert said == [part.strip().lstrip("(").lstrip("123").lstrip(".)").strip() for part in marked.split("|")]


@pytest.mark.parametrize(
    "marked",
    [
        "The kiln burns (1) oak, (2) pine and (3) birch.",
        "The law asks for two things: (1) a permit and (2) a guard.",
        "Use version 2. |It is better than version 1. |Nobody has 3.",
        "Part 1. The duty of the potter. |Part 2. The duty of the buyer.",
        "a) The clay is cut. |b) The pot is thrown.",
        "Sold in 1920. |4. Edition",
        "See Fig. 2. |The kiln stands on the left.",
        "The shop opens at 3 p.m. and closes at 6 p.m. |On Sundays it is shut.",
        "It moved to the U.S. |It was sold there by Brandt Inc. |The buyer was J. Reed.",
        "The village lies at 1,200 m. |It has 40 houses, a church, etc. |Many are empty.",
        "It was read by Reed et al. in 2019.",
        '"Is it safe?" the mayor asked. |Nobody knew.',
    ],
)
def test_a_mark_ends_a_sentence_or_does_not(marked: str) -> None:
    assert [said for _, said in kinds(marked.replace("|", ""))] == [
        part.strip() for part in marked.split("|")
    ]


@pytest.mark.parametrize("name", ["page.md", "page.rst", "page.txt", "page.html"])
@pytest.mark.parametrize(
    ("before", "number"),
    [("The height limit of the kiln of Vester was raised in May to", "14."), ("It has exactly", "12.")],
)
def test_a_number_at_the_begin_of_a_line_ends_its_sentence(name: str, before: str, number: str) -> None:
    assert claims(f"{before}\n{number} It is red.\n", name) == [f"{before} {number}", "It is red."]
    assert claims(f"- {before}\n  {number} It is red.\n", name)[0].removeprefix("- ") == f"{before} {number}"


@pytest.mark.parametrize("name", ["page.md", "page.rst", "page.txt"])
def test_numbers_of_items_are_none_all_the_same(name: str) -> None:
    assert claims("It goes so:\n7. The oak burns\n8. The kiln is hot\n", name)[1:] == [
        "The oak burns",
        "The kiln is hot",
    ]


def test_a_space_that_does_not_break_parts_words() -> None:
    assert claims("The kiln is not&nbsp;red.") == ["The kiln is not red."]
