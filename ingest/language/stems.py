"""The forms of an English word brought to one: `inflected` takes away number and person, `stem` everything that
endings add."""

from __future__ import annotations

import re

# A plural in -es whose e is no part of the word: boxes, pushes, processes, batches, statuses. Not: caches, uses.
_SIBILANT = re.compile(r"(?:x|ss|sh|zz|tch|rch|nch|each|oach|(?:tat|vir|\bb|bon|camp|corp|foc)us|[lhg]o)e$")
# British -ise, -yse and American -ize, -yze; the stem before it has a vowel or three letters.
_ISE = re.compile(r"(?<=[a-z]{3})([iy])s(?=(?:e|ed|er|es|ers|ing|ation|ations)$)")
# British -our and American -or, in whatever form; "tour" and "hour" have one letter before.
_OUR = re.compile(r"(?<=[a-z]{2})our(?=(?:s|ed|ing|ites?|able|ful|less|ly|y|ers?|al|hoods?)?$)")
_NO_OUR = (
    "amour", "concours", "contour", "detour", "devour", "flour", "glamour", "parkour", "scour", "velour",
)  # fmt: skip
_VOWEL = re.compile(r"[aeiouy]")
# Endings that tell the forms of a word apart, what is put in their place, and how many letters must stand before.
# Cut in this order, one after the other, so that "nominations", "nominated" and "nominates" meet.
_ENDINGS = (
    ("ies", "y", 3), ("sses", "ss", 2), ("xes", "x", 2), ("ches", "ch", 2), ("shes", "sh", 2), ("s", "", 3),
    ("ly", "", 4), ("ments", "", 4), ("ment", "", 4), ("ness", "", 4),
    ("ization", "iz", 3), ("isation", "iz", 3), ("ation", "", 4), ("ition", "it", 3), ("tion", "t", 3),
    ("sion", "s", 3), ("ing", "", 3), ("ied", "y", 3), ("ed", "", 3), ("ate", "", 4), ("at", "", 4),
    ("ise", "iz", 4), ("ize", "iz", 4), ("is", "iz", 4), ("er", "", 4), ("or", "", 4), ("y", "i", 3), ("e", "", 3),
)  # fmt: skip
# Those that a word with this last letter can have, each with its place in the order: most words have none.
_BY_LETTER = {
    letter: [(place, *each) for place, each in enumerate(_ENDINGS) if each[0][-1] == letter]
    for letter in {ending[-1] for ending, _, _ in _ENDINGS}
}


def inflected(word: str) -> str:
    """The word without what number, person and the side of the Atlantic add to it.

    Tense stays: "used" is not "uses", because what was once so need not be so now. Words of three letters and
    all that is not plain lower-case ASCII stay as they are.
    """
    if len(word) < 4 or not (word.isascii() and word.isalpha()):
        return word
    if word[-1] == "s" and word[-2] not in "siu":
        word = word[:-1]
        if word.endswith("ie") and len(word) > 3:  # "cookie" gets its y below: both sides must agree
            return word[:-2] + "y"
        if _SIBILANT.search(word):
            word = word[:-1]
    elif word.endswith("ie") and len(word) > 4:
        return word[:-2] + "y"
    return _ISE.sub(r"\1z", word) if "is" in word or "ys" in word else word


def stem(word: str) -> str:
    """What the forms of a word share, whatever their tense and number: the word without its endings. Crude: now and
    then two words share one ("option", "opt"). Small letters; what is not plain ASCII stays as it is."""
    if not (word.isascii() and word.isalpha()):
        return word
    if "our" in word and not word.startswith(_NO_OUR):
        word = _OUR.sub("or", word)
    cut = _cut(word)
    # "Cancelled" and "canceled" are of cancel, as "controlled" is of control: nobody is sure of the second l. A stall
    # is not stale, and Danielle is not Daniel.
    doubled = cut.endswith("ll") and len(cut) > len("stall") and not word.endswith(("lle", "lles"))
    return cut[:-1] if doubled else cut


def _cut(word: str) -> str:
    reached = -1
    while len(word) > 3:
        for place, ending, instead, least in _BY_LETTER.get(word[-1], ()):
            if place <= reached or not word.endswith(ending) or len(word) - len(ending) < least:
                continue
            rest = word[: len(word) - len(ending)]
            if (ending == "s" and rest[-1] in "siu") or not _VOWEL.search(rest):
                continue
            if ending in ("ing", "ed", "er") and rest[-1] == rest[-2] and rest[-1] not in "lsz":
                rest = rest[:-1]  # stopped is of stop
            word, reached = rest + instead, place
            break
        else:
            return word
    return word
