"""Whose words a quotation has: those of another person are a fact about that person, and no thought of the writer's.

Only a quotation counts, in quotation marks, and only beside words that say whose it is: `Ana said: "…"`, `the
reviewer's feedback: "…"`, `according to Ben, "…"`, `"…", wrote Cem`. The writer's own (`my reaction: "…"`) are the
writer's.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping

from vouchgate.ingest.hedges.literals import Interval
from vouchgate.ingest.hedges.tokens import Tokens

Lists = Mapping[str, frozenset[str]]

_REACH = 8  # words before or after a quotation in which somebody is named


def is_reported(t: Tokens, w: Lists, quotation: Interval) -> bool:
    """Whether the words beside a quotation say that another person said it."""
    first = bisect_left(t.starts, quotation[0])
    after = bisect_left(t.starts, quotation[1])
    return _leads_in(w, _before(t, first)) or _follows(w, _after(t, after))


def _before(t: Tokens, first: int) -> list[str]:
    """The words of the sentence before, nearest first. A colon or comma before the quotation ends no sentence."""
    end = first
    if end and (t.words[end - 1] == "," or t.text[t.starts[end - 1] : t.ends[end - 1]].endswith(":")):
        end -= 1
    words: list[str] = []
    for index in range(end - 1, max(end - _REACH, 0) - 1, -1):
        if t.words[index] in (".", "?") or (words and t.after_break(index + 1)):
            break
        words.append(t.words[index])
    return words


def _after(t: Tokens, after: int) -> list[str]:
    words: list[str] = []
    for index in range(after, min(after + _REACH, len(t.words))):
        if t.words[index] in (".", "?"):
            break
        if t.words[index] != "," or words:
            words.append(t.words[index])
    return words


def _leads_in(w: Lists, before: list[str]) -> bool:
    """By the words before, nearest first: a verb of saying with somebody for its subject, or a noun for what somebody
    said."""
    if not w["own_words"].isdisjoint(before):
        return False
    rest = before
    while rest and rest[0] in w["reported_link"]:  # was, that, with, to us
        rest = rest[1:]
    if not rest:
        return False
    verb = next((at for at, word in enumerate(rest[:4]) if word in w["reported_verb"]), None)
    if verb is not None and rest[verb + 1 :]:
        return rest[verb + 1] not in w["reported_nobody"]
    if "according" in rest[1:]:
        return True
    if rest[0] in w["reported_noun"]:  # Ana's reaction, their answer
        return any(word.endswith("'s") or word in w["reported_whose"] for word in rest[1:3])
    noun = next((at for at, word in enumerate(rest) if word in w["reported_noun"]), 0)
    return noun > 1 and rest[noun - 1] in ("from", "by", "of")  # feedback from Ana


def _follows(w: Lists, after: list[str]) -> bool:
    """By the words after: `said Ana`, `Ana said`."""
    said = after[:3]
    if not w["own_words"].isdisjoint(said):
        return False
    verb = next((at for at, word in enumerate(said) if word in w["reported_verb"]), None)
    return verb is not None and len(said) > 1 and w["reported_nobody"].isdisjoint(said)
