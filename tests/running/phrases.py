"""The automaton over the phrases of a lexicon, made once: every service would make it twice."""

from __future__ import annotations

from vouchgate.ingest.checks import hedge
from vouchgate.ingest.hedges.lexicon import Lexicon
from vouchgate.ingest.hedges.phrases import PhraseAutomaton

_MOST = 20  # of lexicons that tests have changed: an automaton takes a few megabytes
_MADE: dict[int, tuple[Lexicon, PhraseAutomaton]] = {}  # by the id of a lexicon, which is kept


def share_phrases() -> None:
    """From now on the detectors that are made in this process, or in those forked from it, have in common what belongs
    to a lexicon alone. It remembers what texts lead to, and nothing of the texts."""
    hedge.PhraseAutomaton = _automaton  # type: ignore[attr-defined,assignment]


def _automaton(lexicon: Lexicon) -> PhraseAutomaton:
    if id(lexicon) not in _MADE:
        if len(_MADE) == _MOST:
            _MADE.clear()
        _MADE[id(lexicon)] = lexicon, PhraseAutomaton(lexicon)
    return _MADE[id(lexicon)][1]
