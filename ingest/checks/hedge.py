"""Hedge detection: does the writer stand behind the claim, or guess, doubt, suggest, soften or round?

Pure: text and lexicon in, matches out. The words are in the lexicon (`ingest/data/hedges.toml`), the phrases are
walked by `ingest.hedges.phrases`, and what tells a hedge from its look-alikes is in `ingest.hedges.rules`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from itertools import takewhile

from vouchgate.ingest.check import Check
from vouchgate.ingest.claims.claim import Finding, Span, Verdict
from vouchgate.ingest.claims.hedges import BLOCKING_HEDGES, HedgeAction, HedgeCategory, HedgeMatch
from vouchgate.ingest.hedges.languages import hedges_in
from vouchgate.ingest.hedges.lexicon import LATER_LISTS, HedgeGroup, Lexicon
from vouchgate.ingest.hedges.literals import Interval, code_spans, quotations
from vouchgate.ingest.hedges.phrases import DEAD, START, UNKNOWN, PhraseAutomaton
from vouchgate.ingest.hedges.reported import is_reported
from vouchgate.ingest.hedges.rules import RULES
from vouchgate.ingest.hedges.tokens import Tokens
from vouchgate.ingest.language.normalise import INVISIBLE, Normalised, normalise
from vouchgate.ingest.language.terms import is_plain_english

CHECK = "hedge"
_LONGEST = 16  # words of one match; the longest phrases people write stay well below
_OWN_WORDS = 3  # fewer words than this around a quotation or code span, and it is the claim itself

# Invisible characters that some writers put in place of a space: between letters they hide the gap between words.
_HIDDEN_GAP = re.compile(rf"(?<=\S)[{INVISIBLE}](?=\S)")
# With more of them than spaces, and words of at least this many characters between them on average, they are the
# spaces of the text; strewn between single letters they are only noise.
_MEAN_WORD = 2

# For every word the number of its literal, for every number how to take it.
_Literals = tuple[list[int], list[int]]
_SAID, _CODE, _QUOTED, _WHOLE_CODE, _REPORTED = range(5)  # how the words of a literal are to be taken


class HedgeDetector:
    """Finds the hedges of one lexicon. Safe to share between threads; build it once, for each policy."""

    def __init__(self, lexicon: Lexicon) -> None:
        self._automaton = PhraseAutomaton(lexicon)
        self._groups = lexicon.groups
        self._languages = lexicon.languages
        self._aliases = {word: tuple(meaning.split()) for word, meaning in lexicon.aliases.items()}
        self._lists = dict.fromkeys(LATER_LISTS, frozenset[str]()) | {
            name: frozenset(words) for name, words in lexicon.words.items()
        }

    def detect(self, text: str) -> tuple[HedgeMatch, ...]:
        """The hedges in the text as sent, in order of their start; no two overlap."""
        return self.detect_normalised(text, normalise(text))

    def detect_normalised(self, text: str, normalised: Normalised) -> tuple[HedgeMatch, ...]:
        """As `detect`, for a text that has been normalised already: `normalised` must be `normalise(text)`."""
        tokens = self._tokens(normalised)
        found = self._matches(text, normalised, tokens)
        if self._languages and not is_plain_english(text):
            found = _merged(found, hedges_in(text, self._languages))
        if not text.isascii():
            spaced = _HIDDEN_GAP.sub(" ", text)
            if spaced != text:
                found = _merged(found, self._hidden(text, normalise(spaced)))
        return tuple(found)

    def _hidden(self, text: str, spaced: Normalised) -> list[HedgeMatch]:
        """Phrases that show only when invisible characters are read as spaces. Single words are left out, unless
        nearly all spaces of the text are of this kind: a hyphenated tomato holds a "may". Offsets hold, because a
        space takes as much room as what it stands for."""
        gaps = len(_HIDDEN_GAP.findall(text))
        if gaps > sum(map(text.count, " \t\n")) and len(text) - gaps > _MEAN_WORD * gaps:
            return self._matches(text, spaced, self._tokens(spaced))
        return [
            match
            for match in self._matches(text, spaced, self._tokens(spaced))
            if match.category in BLOCKING_HEDGES
            and _HIDDEN_GAP.search(text, match.start, match.end)
            and " " in normalise(_HIDDEN_GAP.sub(" ", match.text)).text
        ]

    def _tokens(self, normalised: Normalised) -> Tokens:
        return Tokens(normalised.text, self._aliases, self._lists["through_digits"])

    def _matches(self, text: str, normalised: Normalised, tokens: Tokens) -> list[HedgeMatch]:
        symbols = [self._automaton.symbols.get(word, UNKNOWN) for word in tokens.words]
        starts = self._automaton.steps[START]
        literals: _Literals | None = None
        found: list[HedgeMatch] = []
        done = 0
        for at, symbol in enumerate(symbols):
            if at < done or not starts.get(symbol, DEAD):
                continue
            hit = self._longest(tokens, symbols, at)
            if hit is None:
                continue
            end, group = hit
            if literals is None:
                literals = self._literals(tokens)
            if not self._mentioned(tokens, literals, at, end, group):
                start_at, end_at = normalised.span(tokens.starts[at], tokens.ends[end - 1])
                found.append(
                    HedgeMatch(
                        category=group.category, text=text[start_at:end_at], start=start_at, end=end_at
                    )
                )
            done = end
        return found

    def _longest(self, tokens: Tokens, symbols: list[int], at: int) -> tuple[int, HedgeGroup] | None:
        """The longest phrase from `at` whose rules hold, and its group; of equals the one that blocks."""
        automaton = self._automaton
        steps, accepts = automaton.steps, automaton.accepts
        ends: list[tuple[int, tuple[str, ...]]] = []
        state = START
        for end, symbol in enumerate(symbols[at : at + _LONGEST], at + 1):
            if symbol == UNKNOWN:
                break
            following = steps[state].get(symbol)
            state = automaton.follow(state, symbol) if following is None else following
            if state == DEAD:
                break
            if names := accepts[state]:
                ends.append((end, names))
        if not ends:
            return None
        review: tuple[int, HedgeGroup] | None = None
        for end, names in reversed(ends):
            for name in names:
                group = self._groups[name]
                if self._holds(tokens, group, at, end):
                    if group.category in BLOCKING_HEDGES:
                        return end, group
                    review = review or (end, group)
        return review

    def _holds(self, tokens: Tokens, group: HedgeGroup, at: int, end: int) -> bool:
        return all(RULES[rule](tokens, self._lists, at, end) for rule in group.when) and not any(
            RULES[rule](tokens, self._lists, at, end) for rule in group.unless
        )

    def _literals(self, tokens: Tokens) -> _Literals:
        """For every word the number of the literal it is in, and for every number its kind. A text with hardly a
        word outside its quotations is speech, however it is quoted."""
        code = code_spans(tokens.text)
        quoted = []
        for quotation in quotations(tokens.text):
            if is_reported(tokens, self._lists, quotation):
                quoted.append((quotation, _REPORTED))
            elif self._is_string(tokens, quotation):
                quoted.append((quotation, _QUOTED))
        merged = _disjoint(code, quoted)
        inside = tokens.literals([interval for interval, _ in merged])
        kinds = [0, *(kind for _, kind in merged)]
        own = sum(
            1 for word, number in zip(tokens.words, inside, strict=True) if not number and word.isalpha()
        )
        if own < _OWN_WORDS:
            alone = {_CODE: _WHOLE_CODE, _REPORTED: _REPORTED}
            kinds = [alone.get(kind, _SAID) for kind in kinds]
        return inside, kinds

    def _mentioned(self, tokens: Tokens, literals: _Literals, at: int, end: int, group: HedgeGroup) -> bool:
        """Whether a match is mentioned, not said: it lies within one literal, or is a weak one that touches one. A
        blocking phrase is said when it runs across the edge (I `think`), when it fills the literal and a clause
        follows (`I think` the), or when the literal is all there is of the claim."""
        inside, kinds = literals
        numbers = set(inside[at:end])
        touched = {kinds[number] for number in numbers} - {_SAID}
        if not touched:
            return False
        if len(numbers) == 1 and touched == {_REPORTED}:
            return True
        filled = inside[at] not in (*inside[max(at - 1, 0) : at], *self._behind(tokens, inside, end))
        if group.category not in BLOCKING_HEDGES:
            return not (filled and touched == {_CODE} and self._is_said(tokens, at, end))
        if len(numbers) > 1 or (touched == {_WHOLE_CODE} and end - at > 1):
            return False
        return not (filled and end - at > 1) or self._is_named(tokens, at, end, code=touched == {_CODE})

    def _behind(self, tokens: Tokens, inside: list[int], end: int) -> list[int]:
        """The number of the literal that the next word is in. A mark behind a code span belongs to its last word."""
        while self._lists["said_in_code"] and tokens.word(end) in (".", "?", ",") and end < len(inside):
            end += 1
        return inside[end : end + 1]

    def _is_named(self, tokens: Tokens, at: int, end: int, *, code: bool) -> bool:
        """Whether a blocking phrase that fills a literal names something: a string, as in "the `I guess` button". It
        does not where a clause follows (I `think` the), nor in code without a word beside that says so."""
        if tokens.word(end) in self._lists["subject_opener"]:
            return False
        if not (code and self._lists["said_in_code"]):
            return True
        before = takewhile(lambda word: word not in (".", "?", ","), tokens.words[max(0, at - 3) : at][::-1])
        return not self._lists["quote_before"].isdisjoint(before) or (
            tokens.word(end) in self._lists["quote_after"] - self._lists["goes_on"]
        )

    def _is_said(self, tokens: Tokens, at: int, end: int) -> bool:
        """Whether a hedge that fills a code span stands where a sentence has an adverb: `is `probably` 8080`."""
        if end - at > 1 or tokens.word(at) not in self._lists["said_in_code"]:
            return False
        before, after = tokens.word(at - 1), tokens.word(end)
        if before in self._lists["label_before"] or before in self._lists["quote_before"]:
            return False
        return after not in (".", "?", ",") and after not in self._lists["quote_after"]

    def _is_string(self, tokens: Tokens, quotation: Interval) -> bool:
        """Whether a word beside the quotation, in the same sentence, says that it is a string and not speech."""
        first = bisect_left(tokens.starts, quotation[0])
        after = bisect_left(tokens.starts, quotation[1])
        before = list(
            takewhile(lambda word: word not in (".", "?"), tokens.words[max(0, first - 4) : first][::-1])
        )
        if not self._lists["quote_before"].isdisjoint(before):
            return True
        return bool(before) and tokens.word(after) in self._lists["quote_after"]


def _merged(plain: list[HedgeMatch], hidden: list[HedgeMatch]) -> list[HedgeMatch]:
    """Two readings of a text, in order, without overlaps; of two that overlap the blocking one."""
    merged: list[HedgeMatch] = []
    for match in sorted(plain + hidden, key=lambda match: (match.start, -match.end)):
        if not merged or match.start >= merged[-1].end:
            merged.append(match)
        elif match.category in BLOCKING_HEDGES and merged[-1].category not in BLOCKING_HEDGES:
            merged[-1] = match
    return merged


def _disjoint(code: list[Interval], quoted: list[tuple[Interval, int]]) -> list[tuple[Interval, int]]:
    """Code spans and quotations in order, without those that begin inside another."""
    merged: list[tuple[Interval, int]] = []
    for interval, kind in sorted([(i, _CODE) for i in code] + quoted):
        if not merged or interval[0] >= merged[-1][0][1]:
            merged.append((interval, kind))
    return merged


def action_of(matches: tuple[HedgeMatch, ...]) -> HedgeAction:
    """What the matches call for; one that blocks outweighs any number that send to review."""
    if any(match.category in BLOCKING_HEDGES for match in matches):
        return HedgeAction.BLOCK
    return HedgeAction.REVIEW if matches else HedgeAction.CONTINUE


_SAYS = {
    HedgeCategory.PERSONAL_SPECULATION: "The claim is the writer's own speculation",
    HedgeCategory.ADMITTED_UNCERTAINTY: "The claim admits that it was not known or not checked",
    HedgeCategory.UNDECIDED_SUGGESTION: "The claim is a suggestion that nobody has decided on",
    HedgeCategory.TECHNICAL_HEDGE: "The claim says what is possible, likely or usual, not what is",
    HedgeCategory.APPROXIMATION: "The claim gives a rough figure",
}


def judge(matches: tuple[HedgeMatch, ...]) -> Finding:
    """The finding of the check `hedge`: PASS `no_hedge`, or FAIL (blocks) or DOUBT (sends to review) with the first
    deciding category as its code. `facts["words"]` holds the words, as sent, of the matches that decided."""
    action = action_of(matches)
    if action is HedgeAction.CONTINUE:
        return Finding(
            check=CHECK, verdict=Verdict.PASS, code="no_hedge", message="The claim is stated plainly."
        )
    blocks = action is HedgeAction.BLOCK
    deciding = tuple(match for match in matches if (match.category in BLOCKING_HEDGES) is blocks)
    words = list(dict.fromkeys(" ".join(match.text.split()) for match in deciding))
    category = deciding[0].category
    return Finding(
        check=CHECK,
        verdict=Verdict.FAIL if blocks else Verdict.DOUBT,
        code=category.value,
        message=f"{_SAYS[category]}: {', '.join(words)}.",
        spans=tuple(Span(start=match.start, end=match.end) for match in deciding),
        facts={"words": list(words)},
    )


def _label(finding: Finding) -> str:
    if finding.verdict is Verdict.PASS:
        return finding.code
    words = finding.facts.get("words")
    return f"hedge_words_detected: {', '.join(map(str, words)) if isinstance(words, list) else ''}"


CHECKS = (
    Check(
        name=CHECK,
        title="Hedges",
        codes={
            "no_hedge": Verdict.PASS,
            **{each: Verdict.FAIL if each in BLOCKING_HEDGES else Verdict.DOUBT for each in HedgeCategory},
        },
        order=20,
        judge=lambda read: (judge(read.hedges),),
        label=_label,
    ),
)
