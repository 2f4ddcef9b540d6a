"""Rules on words that soften nothing: surety that is meant, bounds, advice to a reader. See `ingest.hedges.rules`."""

from __future__ import annotations

from collections.abc import Mapping

from vouchgate.ingest.hedges.tokens import Tokens

Lists = Mapping[str, frozenset[str]]

_REACH = 12  # words that are looked back for what begins a sentence
_CODE_AHEAD = 40  # characters after an advice in which a code span says that it is on how to use something


def assured(t: Tokens, w: Lists, start: int, end: int) -> bool:
    """`we are sure that`, `once we are reasonably certain`: a surety that holds, or that is waited for."""
    if t.word(start - 1) in w["sure_after"]:
        return True
    return t.word(start) in w["sure_of_many"] and w["sure_between"].issuperset(t.words[start + 1 : end - 1])


def limit(t: Tokens, w: Lists, start: int, end: int) -> bool:
    """`may be at most`, `may have up to`: how much is allowed, where `may take up to` is a guess at how long."""
    if t.word(end) not in w["limit_verb"]:
        return False
    return f"{t.word(end + 1)}-{t.word(end + 2)}" in w["limit_words"]


def advice(t: Tokens, w: Lists, start: int, end: int) -> bool:
    """`if it is unset, you may want to pass 0`: how to use a thing, told to whoever does. Without a case, or a thing in
    code that it is about, it is a suggestion."""
    if t.word(start) not in w["advised"]:
        return False
    reach = t.text[t.ends[end - 1] : t.ends[end - 1] + _CODE_AHEAD]
    if "`" in reach.partition(". ")[0]:
        return True
    for index in range(start - 1, max(start - _REACH, 0) - 1, -1):
        if t.words[index] in (".", "?"):
            return False
        if t.words[index] in w["advised_case"]:
            return True
    return False


def gerund(t: Tokens, w: Lists, start: int, end: int) -> bool:
    """`Consider adding`: a thing to do follows."""
    return t.word(end).endswith("ing") and t.word(end) not in w["no_gerund"]


def digit_one(t: Tokens, w: Lists, start: int, end: int) -> bool:
    """`1 think`: a digit that stands for the capital i, and not for a number of things."""
    return t.written(start) == "1" and t.word(start - 1) not in w["numbered"]


def relative(t: Tokens, w: Lists, start: int, end: int) -> bool:
    """`a host that may want to`: somebody else's wish, told of them."""
    return t.word(start - 1) in w["relative_word"]


def shared(t: Tokens, w: Lists, start: int, end: int) -> bool:
    """`important to our understanding of the climate`: what everybody knows of it, not what the writer makes of it."""
    return t.word(start) == "our" and t.word(end) == "of" and t.word(start - 1) in w["shared_after"]
