"""How far references reach: which sentences each of them is to vouch for.

A reference reaches back to the one before it, and at most its paragraph, item or row. One on a line of its own under a
paragraph, list or table is for that: an address, `Source: …`, a list of sources. One in the sentence that leads in to a
list is for the items that have none of their own.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from vouchgate.ingest.documents.layout import Flow, FlowKind
from vouchgate.ingest.documents.types import Reference


@dataclass(slots=True)
class Sentence:
    """A sentence or row of the document, in the flow of that number."""

    start: int
    end: int
    flow: int
    sources: bool  # it only says where something is from


@dataclass(frozen=True, slots=True)
class _Standing:
    """Where a reference stands: in which flow, at or after which sentence, and whether on a line of its own."""

    flow: int
    home: int | None
    alone: bool


class Reach:
    """Works out what the references of one document vouch for."""

    def __init__(
        self,
        text: str,
        flows: list[Flow],
        sentences: list[Sentence],
        leads: dict[int, int],
        listing: set[int],
    ) -> None:
        """`leads` names, for a block, the flow whose last sentence leads in to it; `listing` are flows, by number, that
        list sources for the whole document."""
        self._text, self._flows, self._sentences = text, flows, sentences
        self._leads, self._listing = leads, listing
        self._starts = [sentence.start for sentence in sentences]
        self._flow_starts = [flow.lines[0][0] for flow in flows]
        self._speaking = [number for number, sentence in enumerate(sentences) if not sentence.sources]
        self._spoken = [sentences[number].start for number in self._speaking]
        self._blocks: dict[int, int] = {}  # where each begins
        self._items: dict[int, int] = {}
        for flow in flows:
            self._blocks.setdefault(flow.block, flow.lines[0][0])
            self._items.setdefault(flow.item, flow.lines[0][0])
        self._headings = [
            number for number, flow in enumerate(flows) if flow.kind is FlowKind.HEADING and flow.level
        ]

    def of(self, references: list[Reference]) -> list[list[int]]:
        """For each reference, in the order of the text, the sentences that it is to vouch for, by number."""
        found: list[list[int]] = []
        last: tuple[Reference, _Standing] | None = None
        group: list[int] = []
        for reference in references:
            standing = self._standing(reference.start)
            if standing.flow < 0 or standing.flow in self._listing:
                found.append([])
                continue
            if last is None or not self._together(*last, reference, standing):
                group = self._reached(reference, standing, last[0].start if last else -1)
            found.append(group)
            last = reference, standing
        return self._led(references, found)

    def _standing(self, place: int) -> _Standing:
        flow = bisect_right(self._flow_starts, place) - 1
        home = bisect_right(self._starts, place) - 1
        if home >= 0 and self._sentences[home].sources and place < self._sentences[home].end:
            return _Standing(flow, home, True)
        start, end = self._line(flow, place)
        last = (
            bisect_left(self._spoken, end) - 1
        )  # of what is said, what begins last before the end of the line
        alone = last < 0 or self._sentences[self._speaking[last]].end <= start
        return _Standing(flow, home if home >= 0 else None, alone)

    def _line(self, flow: int, place: int) -> tuple[int, int]:
        if flow < 0:
            return place, place
        lines = self._flows[flow].lines
        return lines[max(bisect_right(lines, (place, len(self._text))) - 1, 0)]

    def _together(self, one: Reference, here: _Standing, other: Reference, there: _Standing) -> bool:
        """Whether two references, one behind the other, vouch for the same: nothing is said between them."""
        if one.start == other.start:
            return True
        if here.home == there.home and here.flow == there.flow:
            if here.alone and there.alone:
                return True
            return not any(character.isalnum() for character in self._text[one.end : other.start])
        said = bisect_right(self._spoken, one.start) < bisect_right(self._spoken, other.start)
        return there.alone and not said and self._above(other, there.flow) is not None

    def _reached(self, reference: Reference, standing: _Standing, before: int) -> list[int]:
        flow, home = self._flows[standing.flow], standing.home
        if flow.kind is FlowKind.HEADING:
            return [] if flow.level else self._in_block(flow.block)
        if standing.alone:
            begin = self._above(reference, standing.flow)
        elif home is None or self._sentences[home].flow != standing.flow:  # it stands before what it is for
            following = bisect_left(self._starts, reference.start)
            return [following]
        else:
            begin = flow.lines[0][0]
        if begin is None:
            return []
        lower = bisect_left(self._spoken, max(begin, before))
        upper = bisect_right(self._spoken, reference.start)
        if lower == upper > 0 and reference.start < self._sentences[self._speaking[upper - 1]].end:
            lower -= 1  # another reference stands before it in the same sentence
        return self._speaking[lower:upper]

    def _above(self, reference: Reference, number: int) -> int | None:  # noqa: PLR0911  (one for each shape)
        """Where the paragraph, item, list or table begins that a reference on a line of its own is for."""
        index = bisect_right(self._spoken, reference.start) - 1
        if index < 0:
            return None
        said = self._sentences[self._speaking[index]]
        flow = self._flows[number]
        if said.flow == number:
            if not flow.item:
                return flow.lines[0][0]
            return (
                self._block_begin(flow.block)
                if self._outdented(number, reference)
                else self._items[flow.item]
            )
        if bisect_right(self._headings, said.flow) != bisect_right(self._headings, number):
            return None  # under a heading of its own
        if flow.kind is FlowKind.NOTE:
            return None  # it is for what refers to the note
        if flow.item and self._items[flow.item] <= said.start:
            return self._items[flow.item]
        above = self._flows[said.flow]
        return self._block_begin(above.block)

    def _outdented(self, number: int, reference: Reference) -> bool:
        """Whether the line of a reference begins further left than the item that it goes on with."""
        start, _ = self._line(number, reference.start)
        first = self._flows[number].lines[0][0]
        newline = self._text.rfind("\n", first, start)
        return newline >= 0 and start - newline < first - self._text.rfind("\n", 0, first)

    def _block_begin(self, block: int) -> int:
        lead = self._leads.get(block)
        return self._blocks[block] if lead is None else self._flows[lead].lines[0][0]

    def _in_block(self, block: int) -> list[int]:
        found: list[int] = []
        for index in range(bisect_left(self._spoken, self._blocks[block]), len(self._speaking)):
            if self._flows[self._sentences[self._speaking[index]].flow].block != block:
                break
            found.append(self._speaking[index])
        return found

    def _led(self, references: list[Reference], found: list[list[int]]) -> list[list[int]]:
        """Adds to references in a sentence that leads in to a list the items that have none of their own."""
        own = {number for reached in found for number in reached}
        last_of_flow = {sentence.flow: number for number, sentence in enumerate(self._sentences)}
        led: dict[int, list[int]] = {}
        for block, flow in self._leads.items():
            if flow in last_of_flow:
                items = [number for number in self._in_block(block) if number not in own]
                led[last_of_flow[flow]] = items
        return [
            [*reached, *(item for item in led[reached[-1]] if item not in reached)]
            if reached and reached[-1] in led and reference.start < self._sentences[reached[-1]].end
            else reached
            for reference, reached in zip(references, found, strict=True)
        ]
