"""The rules that tell a hedge from the same words meaning something else, each a question about the words around.

A rule looks at a bounded number of words on either side, so detection stays linear. The word lists it uses are in
the lexicon, by name; `RULES` maps the names a lexicon may use to the functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

from vouchgate.ingest.hedges.lexicon import ContextRule
from vouchgate.ingest.hedges.plain import Lists, advice, assured, digit_one, gerund, limit, relative, shared
from vouchgate.ingest.hedges.tokens import BLANK, Tokens

RuleFunction = Callable[[Tokens, Lists, int, int], bool]  # tokens, word lists, first word, one past the last

_REACH = 12  # words a rule looks ahead or back when it looks for something in the same clause
_STOPS = frozenset({".", "?"})
_SUBJECT = 6  # words before a verb among which its subject begins


def _clause_after(t: Tokens, end: int, reach: int = _REACH) -> list[str]:
    """The words that follow, up to the end of the sentence."""
    return _to_stop(t.words[end : end + reach])


def _clause_before(t: Tokens, start: int, reach: int = _REACH) -> list[str]:
    """The words before, nearest first, back to the start of the sentence."""
    return _to_stop(t.words[max(start - reach, 0) : start][::-1])


def _to_stop(words: list[str]) -> list[str]:
    for index, word in enumerate(words):
        if word in _STOPS:
            return words[:index]
    return words


def clause_start(t: Tokens, w: Lists, start: int, end: int) -> bool:
    """Nothing stands before that could be the subject: a sentence, line, bracket or joined clause begins here."""
    before = t.word(start - 1)
    return before in _STOPS or before == "," or before in w["joining"] or t.starts_line(start)


def conditional(t: Tokens, w: Lists, start: int, end: int) -> bool:
    """`if we don't know …`, `if you are unsure where …`: a case that is handled, not the writer's state of mind."""
    at = start - 1
    while start - at <= _SUBJECT and t.word(at) in w["of_case"]:
        at -= 1
    before = t.word(at)
    return before in w["conditional"] or (before == "," and t.word(at - 1) in w["conditional"])


def own_act(t: Tokens, w: Lists, start: int, end: int) -> bool:
    """`I thought about it`, `I figured out`, `I gathered data`: an act that was done, not an opinion."""
    last, after = t.word(end - 1), t.word(end)
    if last in w["takes_object"]:
        return not (after in w["opens_clause"] or after in _STOPS or after == ",")
    return last in w["contemplation"] and after in w["not_opinion_next"]


def clause_follows(t: Tokens, w: Lists, start: int, end: int) -> bool:
    """A whole clause or nothing follows, so the verb has an opinion for its object and not a thing."""
    after = t.word(end)
    if after in _STOPS or after in ("that", ",", "it", "there", "they", "he", "she", "you", "so", "not"):
        return True
    return after not in w["wh"] and not w["finite"].isdisjoint(_clause_after(t, end, 6))


def question(t: Tokens, w: Lists, start: int, end: int) -> bool:
    """The sentence ends in a question mark."""
    return t.closing_marks[start] == "?"


def proposal(t: Tokens, w: Lists, start: int, end: int) -> bool:
    """Something is proposed in the same clause: should, ought to, let us, worth."""
    ahead = _clause_after(t, end)
    if question(t, w, start, end) and not w["writer"].isdisjoint(ahead[:3]):
        return True
    if not w["proposal_word"].isdisjoint(_clause_before(t, start, 2)):
        return not expectation(t, w, start - 1, start)
    if w["proposal_word"].isdisjoint(ahead):
        return False
    at = end + next(index for index, word in enumerate(ahead) if word in w["proposal_word"])
    return not expectation(t, w, at, at + 1)


def asked(t: Tokens, w: Lists, start: int, end: int) -> bool:
    """The sentence has a question for its subject: `why it fails is unclear`."""
    before = _clause_before(t, start)
    return (
        bool(before)
        and before[-1] in ("why", "how", "what", "whether", "who")
        and t.word(start - len(before) - 1) in _STOPS
    )


def impression(t: Tokens, w: Lists, start: int, end: int) -> bool:
    """`to me` goes with seeming, looking or being clear, not with giving; or it opens the sentence."""
    if t.word(end - 1) not in w["me"] or t.word(start) != "to":
        return True
    if t.word(start - 1) in _STOPS or t.starts_line(start):
        return True
    if t.word(start - 1) in ("least", ",") and not w["impression_cue"].isdisjoint(_clause_after(t, end, 4)):
        return True
    return not w["impression_cue"].isdisjoint(_clause_before(t, start, 6))


def month(t: Tokens, w: Lists, start: int, end: int) -> bool:
    """May the month, or a person: a capital within a sentence, or what stands beside a month does."""
    before, after = t.word(start - 1), t.word(end)
    beside = after in w["month_after"] or after == BLANK
    if before in w["month_before"] and (beside or t.written(end)[:1].isdigit()):
        return True
    if after == "#" or (before == "#" and (beside or after in w["month_before"])):
        return True
    if t.written(start) != "May" or t.shouted(start):
        return False
    if before in _STOPS or t.after_break(start):
        named = t.written(end)[:1].isupper() and after != "i" and not t.title_cased
        return beside or after == "the" or named
    return _capital_within(t, w, start, beside)


def _capital_within(t: Tokens, w: Lists, start: int, beside: bool) -> bool:
    """Whether a capital May within a sentence is a month or a person; in a title every word has a capital."""
    before, previous = t.word(start - 1), t.written(start - 1)
    if t.title_cased and previous[:1].isupper():
        return before in w["month_before"]
    if t.starts_line(start) and not previous[:1].isupper() and before not in w["month_before"]:
        return beside
    return not (before == "," and t.word(start + 1) in w["stative"])


def sentence_start(t: Tokens, w: Lists, start: int, end: int) -> bool:
    """A sentence or a paragraph begins here."""
    return t.word(start - 1) in _STOPS or t.after_break(start)


def requirement_word(t: Tokens, w: Lists, start: int, end: int) -> bool:
    """RFC 2119: MAY and SHOULD in capitals, in a text that is not all in capitals."""
    return t.written(start).isupper() and not t.shouted(start)


def prohibition(t: Tokens, w: Lists, start: int, end: int) -> bool:
    """`may not be shared`, `visitors may not enter`, `may only`, `nobody may skip`: rules, where `may not work` is a
    doubt."""
    after = t.word(end)
    if after == "only":
        return True
    if after not in ("not", "never"):
        verb = t.word(end) if t.word(end) != "be" else t.word(end + 1)
        ruled = verb in w["forbidden_act"] if t.word(end) == "be" else verb not in w["stative"]
        return ruled and _of_nobody(_clause_before(t, start, _SUBJECT), w)
    verb, subject = t.word(end + 1), t.word(start - 1)
    if verb == "be":
        state = t.word(end + 2)
        if state in w["adverb_of_manner"]:
            state = t.word(end + 3)
        return state in w["forbidden_act"] and (
            subject not in w["epistemic_subject"] or state in w["forbidden_whoever"]
        )
    if subject in w["epistemic_subject"] or verb in w["stative"]:
        return False
    if verb in w["forbidden_verb"]:
        return True
    return subject in w["agent"] or (subject.endswith("s") and t.word(start - 2) in _STOPS)


def _of_nobody(before: list[str], w: Lists) -> bool:
    """Whether the words before a verb, the nearest first, say that nobody does it, or only some do: "nobody", "no
    agent", "none of the agents", "only reviewers"."""
    at = next((at for at, word in enumerate(before) if word in w["of_nobody"]), None)
    if at is None or before[at] in ("nobody", "nothing") or not at:
        return at == 0 and before[0] != "only"
    between = before[:at]
    if before[at] == "only" and (at + 1 < len(before) or len(before) == _SUBJECT):
        return False  # it does not begin the sentence, so it may belong to another word
    apart = not w["article"].isdisjoint(between[:-1]) and between[-1] != "of"  # "no reason the job may fail"
    return not apart and w["epistemic_subject"].isdisjoint(between) and between[-1] != "more"


def idiom(t: Tokens, w: Lists, start: int, end: int) -> bool:
    """Set phrases in which the word is no hedge: as the case may be, frequently asked, generally available."""
    if t.word(end - 1) == "may":
        return (
            t.word(end) == "be"
            and t.word(end + 1) in (".", ",", "?")
            and t.word(start - 1) in w["idiom_before"]
        )
    return t.word(end) in w["idiom_next"]


def noun(t: Tokens, w: Lists, start: int, end: int) -> bool:
    """`the might of the fleet`: strength."""
    return t.word(start - 1) in w["determiner_of_noun"] and t.word(end) in (
        "of",
        ".",
        ",",
        "and",
        "is",
        "was",
    )


def ability(t: Tokens, w: Lists, start: int, end: int) -> bool:
    """`could not` is a fact, and `nobody could`; so is what the writer could do, and a purpose (`so that`)."""
    after, before = t.word(end), t.word(start - 1)
    if after in w["not_could"]:
        return after != "only" or before in w["writer"]
    if before in w["writer"] and after in w["found_out"]:
        return True
    if before in ("so", "such", "nobody", "none", "neither") or after in ("you", "someone"):
        return True
    if before == "one" and t.word(start - 2) == "no":
        return True
    behind = _clause_before(t, start, 5)
    return any(pair == ("that", "so") for pair in pairwise(behind)) or "until" in behind


def name(t: Tokens, w: Lists, start: int, end: int) -> bool:
    """A cue used as a name or label: `returns Maybe when`, `the maybe state`."""
    if end - start > 1:
        return False
    before, written = t.word(start - 1), t.written(start)
    if t.word(start) in w["label_word"] and before in w["label_before"]:
        return True
    if before == "," and written.istitle() and t.word(end) in w["label_after"]:
        return True
    if (
        not written[:1].isupper()
        or written.isupper()
        or before in _STOPS
        or t.starts_line(start)
        or before == ","
    ):
        return False
    if not written.istitle() or before == BLANK:
        return False
    return t.written(start - 1)[:1].islower() or (before in ("the", "a", "an") and not t.title_cased)


def shown(t: Tokens, w: Lists, start: int, end: int) -> bool:
    """What appears in a place or at a time is shown there; what appears to be so only seems."""
    last = t.word(end - 1)
    if last not in w["appear"]:
        return False
    after = t.word(end)
    if after in ("as", "like"):
        return t.word(end + 1) not in ("if", "though") and after == "as"
    if t.word(start - 1) in w["shown_after"] and after not in ("to", "that"):
        return True
    return after in w["shown_next"] or after == BLANK or t.word(start - 1) in w["likened"]


def similar(t: Tokens, w: Lists, start: int, end: int) -> bool:
    """`looks like this:`, `make it look like`: a likeness that is shown, not a guess."""
    after, before = t.word(end), t.word(start - 1)
    last = t.word(end - 1)
    if last in w["look"]:
        return True
    if last in w["agreeable"]:
        relative = before == "that" and t.word(start - 2) not in _STOPS
        return relative or (before != "that" and before in w["similar_before"])
    if after in w["similar_next"] or after == BLANK or before in w["similar_before"]:
        return True
    return not w["likened"].isdisjoint(_clause_before(t, start, 4))


def measured(t: Tokens, w: Lists, start: int, end: int) -> bool:
    """`more often than`, `how often`, `as often as`: a comparison or a measure."""
    if end - start > 1 or t.word(start) != "often":
        return False
    return t.word(start - 1) in w["comparison"] or t.word(end) in ("as", "than")


def manner(t: Tokens, w: Lists, start: int, end: int) -> bool:
    """`exits normally`: as it should, not most of the time."""
    return t.word(end - 1) == "normally" and t.word(start - 1) in w["manner_verb"]


def expectation(t: Tokens, w: Lists, start: int, end: int) -> bool:
    """`should` says what is to be expected (should work, should be fine), not what is required (should be 5)."""
    if t.written(start).isupper() and not t.shouted(start):
        return False
    before = next((word for word in _clause_before(t, start, 3) if word not in w["soon"]), ".")
    index = end
    while index < end + 6 and t.word(index) in w["soon"]:
        index += 1
    verb = t.word(index)
    if verb == "not":
        ahead = _clause_after(t, index + 1, 6)
        if before in w["effect_subject"] and t.word(index + 1) in w["expected_harm"]:
            return True
        return bool(ahead) and ahead[0] in w["expected_not"] and not w["harmless"].isdisjoint(ahead)
    if verb == "be":
        return _expected_state(t, w, index + 1) and (before not in w["agent"] or before in ("you", "code"))
    if before in w["agent"]:
        return before == "you" and verb in ("see", "get", "notice")
    return verb in w["expected"] or _expected_effect(t, w, before, index)


def _expected_effect(t: Tokens, w: Lists, before: str, index: int) -> bool:
    """`this should make it faster`, `it should have no effect`; of another subject the same verb is required."""
    verb, after = t.word(index), t.word(index + 1)
    if before not in w["effect_subject"] and before not in _STOPS and before != ",":
        return False
    if verb == "have":
        return after in ("no", "little", "minimal", "negligible")
    return verb in w["expected_effect"] and after not in ("sure", "certain")


def _expected_state(t: Tokens, w: Lists, index: int) -> bool:
    """What follows `should be`: an adverb may stand before the state (`should be still fine`)."""
    limit = index + 4
    while index < limit and (t.word(index) in w["soon"] or t.word(index).endswith("ly")):
        index += 1
    state = t.word(index)
    if t.word(index + 1) in w["required_state"]:
        return False
    if state == "able" or t.word(index + 1) == "enough":
        return True
    return state in w["expected_state"] or (state in ("a", "an") and t.word(index + 1) in w["expected_noun"])


def particle(t: Tokens, w: Lists, start: int, end: int) -> bool:
    """`warns about 3 issues`, `wraps around 4096`: a preposition of the verb or noun before."""
    before = t.word(start - 1)
    return before in (w["takes_about"] if t.word(start) == "about" else w["takes_around"])


def not_rough(t: Tokens, w: Lists, start: int, end: int) -> bool:
    """`some 404 errors`, `some 64 bit`, `or so that`: counted things or a purpose, no rough number."""
    if t.word(start) == "or":
        before = t.word(start - 1)
        return t.word(end) in ("that", "the", "it", "we", "they", "i", "on", "to") or before in _STOPS
    if t.word(start) != "some":
        return False
    written = t.written(end - 1)
    return (
        t.word(end) in w["bit"]
        or (t.word(end - 1) == "#" and len(written) < 2)
        or t.word(end - 1)
        in (
            "one",
            "two",
            "half",
            "third",
            "zero",
        )
    )


def half_meant(t: Tokens, w: Lists, start: int, end: int) -> bool:
    """`is kind of slow`, where `this kind of lock` is a class of things."""
    return t.word(start - 1) in w["kind_before"] and t.word(end) not in ("thing", "the", "this")


RULES: Mapping[ContextRule, RuleFunction] = {
    ContextRule.ABILITY: ability,
    ContextRule.ADVICE: advice,
    ContextRule.ASKED: asked,
    ContextRule.ASSURED: assured,
    ContextRule.CLAUSE_FOLLOWS: clause_follows,
    ContextRule.CLAUSE_START: clause_start,
    ContextRule.CONDITIONAL: conditional,
    ContextRule.DIGIT_ONE: digit_one,
    ContextRule.EXPECTATION: expectation,
    ContextRule.GERUND: gerund,
    ContextRule.HALF_MEANT: half_meant,
    ContextRule.IDIOM: idiom,
    ContextRule.IMPRESSION: impression,
    ContextRule.LIMIT: limit,
    ContextRule.MANNER: manner,
    ContextRule.MEASURED: measured,
    ContextRule.MONTH: month,
    ContextRule.NAME: name,
    ContextRule.NOT_ROUGH: not_rough,
    ContextRule.NOUN: noun,
    ContextRule.OWN_ACT: own_act,
    ContextRule.PARTICLE: particle,
    ContextRule.PROHIBITION: prohibition,
    ContextRule.PROPOSAL: proposal,
    ContextRule.QUESTION: question,
    ContextRule.RELATIVE: relative,
    ContextRule.REQUIREMENT_WORD: requirement_word,
    ContextRule.SENTENCE_START: sentence_start,
    ContextRule.SHARED: shared,
    ContextRule.SHOWN: shown,
    ContextRule.SIMILAR: similar,
}
