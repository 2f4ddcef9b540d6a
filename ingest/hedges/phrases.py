"""The phrases of a lexicon as one automaton over words, so that matching costs one look-up a word.

Every phrase is a row of elements. All rows are walked at once: a state is the set of places that some phrase could
be in. Words that stand in just the same elements are one symbol. States are worked out when a text first leads to
them and kept; their number is bounded by the lexicon, not by the texts.
"""

from __future__ import annotations

from collections import defaultdict

from vouchgate.ingest.hedges.lexicon import Lexicon

PhraseState = tuple[int, int]  # number of the phrase, number of the element it waits for

DEAD = 0  # the state that no phrase can be in
START = 1
UNKNOWN = -1  # the symbol of a word that stands in no phrase


class PhraseAutomaton:
    """Walks all phrases of a lexicon at once. `steps[state].get(symbol)` is the next state if it is known already,
    else `follow` works it out; `accepts[state]` names the groups, in the lexicon's order, of phrases ending there."""

    def __init__(self, lexicon: Lexicon) -> None:
        phrases = lexicon.phrases()
        self._owners, self._phrases = [name for name, _ in phrases], [elements for _, elements in phrases]
        distinct = {element.words for elements in self._phrases for element in elements}
        self.symbols = _symbols(distinct)
        self._fits = {words: frozenset(self.symbols[word] for word in words) for words in distinct}
        self._places: list[frozenset[PhraseState]] = []
        self._numbers: dict[frozenset[PhraseState], int] = {}
        self.steps: list[dict[int, int]] = []
        self.accepts: list[tuple[str, ...]] = []
        self._state(frozenset())
        self._state(
            frozenset(place for number in range(len(self._phrases)) for place in self._reachable(number, 0))
        )
        self._follow_all(START)

    def follow(self, state: int, symbol: int) -> int:
        """The state that `symbol` leads to from `state`; remembered in `steps`."""
        found: set[PhraseState] = set()
        for number, place in self._places[state]:
            elements = self._phrases[number]
            if place < len(elements) and symbol in self._fits[elements[place].words]:
                found.update(self._behind(number, place))
        target = self._state(frozenset(found))
        self.steps[state][symbol] = target
        return target

    def _follow_all(self, state: int) -> None:
        """What `follow` does for every symbol, looking at each place once and not once for each symbol."""
        found: dict[int, set[PhraseState]] = {symbol: set() for symbol in self.symbols.values()}
        for number, place in self._places[state]:
            elements = self._phrases[number]
            if place < len(elements):
                for symbol in self._fits[elements[place].words]:
                    found[symbol].update(self._behind(number, place))
        for symbol, places in found.items():
            self.steps[state][symbol] = self._state(frozenset(places))

    def _state(self, places: frozenset[PhraseState]) -> int:
        number = self._numbers.get(places)
        if number is None:
            ended = sorted(phrase for phrase, place in places if place == len(self._phrases[phrase]))
            self._places.append(places)
            self.steps.append({})
            self.accepts.append(tuple(dict.fromkeys(self._owners[phrase] for phrase in ended)))
            # Last, so that another thread that finds the number finds all of the state.
            number = self._numbers[places] = len(self._places) - 1
        return number

    def _behind(self, number: int, place: int) -> list[PhraseState]:
        """The places a phrase can be in after a word that fits its element `place`."""
        return self._reachable(number, place if self._phrases[number][place].repeats else place + 1)

    def _reachable(self, number: int, place: int) -> list[PhraseState]:
        """The places a phrase can be in on arriving at `place`: it, and those behind elements that may be left out."""
        elements = self._phrases[number]
        places = [(number, place)]
        while place < len(elements) and elements[place].optional:
            place += 1
            places.append((number, place))
        return places


def _symbols(elements: set[frozenset[str]]) -> dict[str, int]:
    """A number for every word; words that fit just the same elements share one. Elements by their words."""
    seen: defaultdict[str, set[frozenset[str]]] = defaultdict(set)
    for words in elements:
        for word in words:
            seen[word].add(words)
    kinds: dict[frozenset[frozenset[str]], int] = {}
    return {word: kinds.setdefault(frozenset(fits), len(kinds)) for word, fits in seen.items()}
