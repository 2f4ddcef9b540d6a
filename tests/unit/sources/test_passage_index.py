"""The index of passages: what a search finds in it, and how it follows documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing

import pytest

from vouchgate.ingest.sources.passage_index import PassageIndex

COMMON = {f"{number}.md": f"The service keeps files of part {number}." for number in range(200)}


def found(index: PassageIndex, words: str, most: int = 12) -> list[str]:
    return [passage.document for passage in index.search(words, most)]


def test_a_passage_with_half_of_the_words_is_found_among_many_with_common_ones() -> None:
    with closing(PassageIndex()) as index:
        index.put(COMMON | {"dome.md": "# Dome\n\nThe observatory closes its dome.\n"})
        assert found(index, "service keeps files observatory dome closes nightly never")[0] == "dome.md"
        assert found(index, "service keeps files part 117")[0] == "117.md"
        assert found(index, "Observatories closing")[:1] == ["dome.md"]


@pytest.mark.parametrize(
    "words",
    ["", '"', "— …", 'NEAR("a" "b", 2)', "body:dome OR", "* ^ - + ()", "\ud800", "\x00", "nothing of it"],
)
def test_whatever_the_words_are_a_search_ends_with_an_answer(words: str) -> None:
    with closing(PassageIndex()) as index:
        index.put({"dome.md": "The observatory."})
        assert found(index, words) == []


def test_it_follows_versions_and_keeps_what_was_read_before_time_was_up() -> None:
    read: list[str] = []
    texts = {"a.md": "Apples.", "b.md": "Berries.", "c.md": "Cherries."}

    def reading(names: Sequence[str]) -> Iterator[tuple[str, str]]:
        for name in names:
            if name == "c.md" and "c.md" not in read:
                read.append(name)
                raise TimeoutError
            read.append(name)
            yield name, texts[name]

    with closing(PassageIndex()) as index:
        with pytest.raises(TimeoutError):
            index.follow({"a.md": 1, "b.md": 1, "c.md": 1}, reading)
        assert found(index, "apples berries") == ["a.md", "b.md"]
        index.follow({"a.md": 1, "b.md": 1, "c.md": 1}, reading)
        assert read == ["a.md", "b.md", "c.md", "c.md"]
        texts["a.md"] = "Apricots."
        index.follow({"a.md": 2, "c.md": 1}, reading)
        assert read[4:] == ["a.md"]
        assert (found(index, "apples"), found(index, "berries")) == ([], [])
        assert sorted(found(index, "apricots cherries")) == ["a.md", "c.md"]
