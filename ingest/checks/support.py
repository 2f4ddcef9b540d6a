"""Does the source speak of what the claim says, and does it say otherwise? Rules alone, no model, no I/O.

First the subject (`ingest.support.topic`), then the places where the two say different things
(`ingest.contradictions.rules`), which count only in a source that is not about something else. Then what the source
does to each statement (`ingest.support.stance`): `support_states` means that it says all of them, `support_on_topic`
that it speaks of the subject and is not shown to say it (ADR-0010, ADR-0029).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from vouchgate.ingest.check import Check, ReadClaim, shorten
from vouchgate.ingest.citations import detect_citations
from vouchgate.ingest.claims.citation import Citation, CitationType
from vouchgate.ingest.claims.claim import Finding, Span, Verdict
from vouchgate.ingest.claims.source import STANDING_TOLD, UNSPOKEN, Found, Held, Stance
from vouchgate.ingest.contradictions.rules import Contradiction, contradictions
from vouchgate.ingest.language.languages import load_languages
from vouchgate.ingest.language.sentences import without_questions
from vouchgate.ingest.language.terms import ENGLISH, LISTS, Kind, Word, language_of, words_of
from vouchgate.ingest.support.scope import CITING, Scope, scope_of
from vouchgate.ingest.support.topic import OFF_TOPIC, ON_TOPIC, WEIGHTS, Subject, TopicMatch, match

log = logging.getLogger(__name__)

CHECK = "support"

# Less than the weight of one telling word: too little to say that a source lacks it.
TOO_LITTLE = WEIGHTS[Kind.WORD]
_SAYS_LITTLE = (Kind.COMMON, Kind.FUNCTION)
# A sentence that cites a source of which the source has less than this says something else, whatever stands beside it.
# Of that much weight: what has fewer telling words may well be said in others.
_ALIEN = 0.15
_TELLING = 3.0
# All but those in which no words are shared; what is said there, statements tell.
_UNPARTED = {language.name.lower() for language in load_languages().values() if language.letters}
_PARTED = {ENGLISH, "unknown", *LISTS.languages} - _UNPARTED
_BESIDE = 200  # characters that a conflict may be from where the source comes nearest: a sentence or two
_NAMED = 4  # missing words that a message names


class SupportVerdict(StrEnum):
    """What the rules can say of a claim and a source. Shared words find the wrong source, not the right claim, so
    STATES comes from the statements alone (`ingest.support.stance`)."""

    STATES = "states"
    ON_TOPIC = "on_topic"
    OFF_TOPIC = "off_topic"
    CONFLICT = "conflict"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Support:
    """A claim held against a source.

    `rule` is what decided: `overlap`, a rule of `ingest.contradictions.rules`, or why nothing could be:
    `nothing_to_check`, `no_text`, `script`, `language`, `unparted`, `too_little`, `cut`. `claim` and `source` are
    offsets in the two texts of the deciding words of a conflict, else of the sentence and of the place where the
    source comes nearest to it; None when there is no such place, or it is in the title. `disagree` says that the rules
    point to different answers: the title is about it and the text is not, the text says otherwise and is hardly about
    it, or says otherwise elsewhere than where it comes nearest.
    """

    verdict: SupportVerdict
    rule: str
    score: float  # 0 to 1: how much of the claim the source speaks of
    claim: tuple[int, int] | None = None
    source: tuple[int, int] | None = None
    disagree: bool = False
    missing: tuple[str, ...] = ()  # telling words of the claim that the source does not have, as written
    says: str = ""  # the source's words at the place of a conflict


def compare(
    claim: str,
    source: str,
    *,
    title: str = "",
    citations: Sequence[Citation] = (),
    alone: bool = True,
    held: Sequence[Held] | None = None,
) -> Support:
    """Holds what the claim says of the source that `citations` name against its title and text (an excerpt that
    `ingest.support.passages` chose). Without `citations` that is the whole claim, but for its citations. With
    `alone` the claim cites nothing else, so that no other source answers for a sentence of it. `held` is what the
    source does to each statement, where that is known: then nothing contradicts the claim that refutes none of them.
    Linear; never raises.
    """
    scope = scope_of(claim, citations)
    if scope.disguised:
        return Support(SupportVerdict.UNKNOWN, "script", 0.0)
    if scope.empty:
        return Support(SupportVerdict.UNKNOWN, "nothing_to_check", 0.0)
    asked = held is None or any(one.stance is Stance.REFUTES for one in held)
    found = _compare_text(claim, scope, source, title, () if alone else citations, conflicting=asked)
    if not source.strip() and found.verdict is not SupportVerdict.ON_TOPIC:
        return Support(SupportVerdict.UNKNOWN, "no_text", found.score, found.claim)
    return weigh(found, held)


def _compare_text(
    claim: str, scope: Scope, source: str, title: str, citations: Sequence[Citation], *, conflicting: bool
) -> Support:
    """A claim that says something against the title and text together. Its best sentence counts, unless one that
    the source has to answer for (one with one of the `citations`, if there are any) has nothing to do with it."""
    head = f"{title}\n" if title else ""
    text = head + source
    subject = Subject(text, len(head))
    words = tuple(words_of(scope.text))
    parts = [(match(claim, part, subject), span) for part, span in _by_sentence(words, scope)]
    alien = [(found, at) for found, at in parts if _is_alien(found) and _cites(at, citations)]
    best, span = max(alien or parts, key=lambda pair: (pair[0].score, pair[0].weight))

    def support(verdict: SupportVerdict, rule: str = "overlap", *, disagree: bool = False) -> Support:
        missing = tuple(
            claim[word.start : word.end] for word in best.missing if word.kind not in _SAYS_LITTLE
        )
        return Support(verdict, rule, best.score, span, _in_text(best.place, len(head)), disagree, missing)

    if best.score < ON_TOPIC and (reason := _unreadable(scope, text)):
        return support(SupportVerdict.UNKNOWN, reason)
    if best.score < OFF_TOPIC:
        if best.weight < TOO_LITTLE or _of_the_change_itself(claim, best):
            return support(SupportVerdict.UNKNOWN, "too_little")
        return support(SupportVerdict.OFF_TOPIC)
    if conflicting and (conflicts := contradictions(scope.text, without_questions(text))):
        return _conflict(conflicts[0], best, text, len(head))
    if best.score < ON_TOPIC:
        return support(SupportVerdict.UNKNOWN)
    return support(SupportVerdict.ON_TOPIC, disagree=_only_the_title(claim, words, title, source))


def _of_the_change_itself(claim: str, best: TopicMatch) -> bool:
    """Whether all that a source lacks is how a change was committed, in a claim that cites one: "Committed as a1b2c3d
    with a conventional message"."""
    said = sum(WEIGHTS[word.kind] for word in best.missing if word.key not in CITING.of_itself)
    return said < TOO_LITTLE and any(c.type == CitationType.COMMIT for c in detect_citations(claim))


def _is_alien(found: TopicMatch) -> bool:
    return found.score < _ALIEN and found.weight >= _TELLING


def _cites(span: tuple[int, int], citations: Sequence[Citation]) -> bool:
    return not citations or any(c.start is not None and span[0] <= c.start < span[1] for c in citations)


def _by_sentence(words: Sequence[Word], scope: Scope) -> list[tuple[list[Word], tuple[int, int]]]:
    parts: list[tuple[list[Word], tuple[int, int]]] = [([], span) for span in scope.sentences]
    at = 0
    for word in words:
        while at + 1 < len(parts) and parts[at + 1][1][0] <= word.start:
            at += 1
        parts[at][0].append(word)
    return parts


def _in_text(place: tuple[int, int] | None, head: int) -> tuple[int, int] | None:
    """A place in title and text as one in the text; None when it is in the title."""
    if place is None or place[1] <= head:
        return None
    return max(0, place[0] - head), place[1] - head


def _only_the_title(claim: str, words: Sequence[Word], title: str, source: str) -> bool:
    """Whether the title is on topic and the text is not."""
    if not title or match(claim, words, Subject(title)).score < ON_TOPIC:
        return False
    return match(claim, words, Subject(source)).score < OFF_TOPIC


def _conflict(conflict: Contradiction, best: TopicMatch, text: str, head: int) -> Support:
    """A conflict where the source does not come nearest to the claim, or hardly speaks of it, is one on which the
    rules disagree."""
    start, end = conflict.source_start, conflict.source_end
    place = best.place
    apart = place is not None and (end + _BESIDE < place[0] or place[1] + _BESIDE < start)
    return Support(
        SupportVerdict.CONFLICT,
        conflict.rule,
        best.score,
        (conflict.claim_start, conflict.claim_end),
        _in_text((start, end), head),
        apart or best.score < ON_TOPIC,
        says=text[start:end],
    )


def _unreadable(scope: Scope, text: str) -> str:
    """Why few shared words mean nothing here; empty when they do mean something."""
    ours, theirs = language_of(scope.text, "unknown"), language_of(text)
    if not {ours, theirs} <= _PARTED:
        return "unparted" if ours == theirs and ours in LISTS.languages else "script"
    return "language" if ours != theirs else ""


def judge(content: str, citations: Sequence[Citation], found: Found, *, alone: bool = True) -> Finding:
    """One finding on the source that `citations` name. `found` is as it is kept: title, excerpt, and what it does to
    each statement. `alone`: the claim cites nothing else."""
    support = _of_standing(found.held) or _of_text(content, citations, found, alone=alone)
    name = shorten(found.name)
    match support.verdict:
        case SupportVerdict.STATES:
            verdict, code = Verdict.PASS, "support_states"
            message = f"{name} says what the claim says."
        case SupportVerdict.ON_TOPIC:
            verdict, code = Verdict.PASS, "support_on_topic"
            message = f"{name} speaks of what the claim says."
        case SupportVerdict.OFF_TOPIC:
            verdict, code, message = (
                Verdict.FAIL,
                "support_off_topic",
                _off_topic(name, support, found.held or ()),
            )
        case SupportVerdict.CONFLICT:
            verdict, code = Verdict.FAIL, "support_conflict"
            message = _conflicting(content, name, support, found)
        case SupportVerdict.UNKNOWN:
            verdict, code, message = _UNKNOWN.get(support.rule, _UNCLEAR)
            message = message.format(name=name)
    return Finding(
        check=CHECK,
        verdict=verdict,
        code=code,
        message=message,
        citation=found.citation,
        spans=() if support.claim is None else (Span(start=support.claim[0], end=support.claim[1]),),
        facts=_facts(support, found.excerpt),
    )


def _of_text(content: str, citations: Sequence[Citation], found: Found, *, alone: bool) -> Support:
    # A turn is of a person, as a page is of its subject.
    title = f"The user, {found.who}" if found.form == "turn" else found.title
    support = compare(content, found.excerpt, title=title, citations=citations, alone=alone, held=found.held)
    if found.cut and support.verdict is SupportVerdict.OFF_TOPIC:
        support = replace(support, verdict=SupportVerdict.UNKNOWN, rule="cut")
    return support


def _of_standing(held: Sequence[Held] | None) -> Support | None:
    """Of a source that is asked for nothing but where it or another stands, which no word of its text says."""
    if not held or any(one.why != STANDING_TOLD for one in held):
        return None
    if any(one.stance is Stance.REFUTES for one in held):
        return weigh(Support(SupportVerdict.ON_TOPIC, STANDING_TOLD, 1.0), held)
    if any(one.stance is Stance.STATES for one in held):
        return Support(SupportVerdict.STATES, STANDING_TOLD, 1.0)
    return Support(SupportVerdict.UNKNOWN, "nothing_to_check", 0.0)


def weigh(support: Support, held: Sequence[Held] | None) -> Support:
    """The same with what the source does to each statement: where it refutes one, a conflict; where it states all of
    them, STATES; where it speaks of all of them, on topic, however few words they share with the whole."""
    if not held or support.rule in _NOT_FOR_STATEMENTS:
        return support
    by_stance: dict[Stance, Held] = {}
    for one in held:
        by_stance.setdefault(one.stance, one)
    refuted, unknown = by_stance.get(Stance.REFUTES), by_stance.get(Stance.UNKNOWN)
    if support.verdict is SupportVerdict.CONFLICT or (
        refuted is None and support.verdict is SupportVerdict.OFF_TOPIC
    ):
        return support
    verdict: SupportVerdict = support.verdict
    rule, claim = support.rule, support.claim
    if refuted is not None:
        verdict, rule, claim = SupportVerdict.CONFLICT, refuted.why, (refuted.start, refuted.end)
    elif unknown is not None:
        verdict, rule = SupportVerdict.UNKNOWN, unknown.why
    elif set(by_stance) == {Stance.STATES}:
        verdict, rule = SupportVerdict.STATES, "statements"
    elif Stance.SILENT not in by_stance:
        verdict = SupportVerdict.ON_TOPIC
    return replace(support, verdict=verdict, rule=rule, claim=claim)


def _conflicting(content: str, name: str, support: Support, found: Found) -> str:
    ours = content[slice(*(support.claim or (0, 0)))]
    if support.rule == "option":
        return f"“{shorten(ours)}” tells as decided what {name} weighed and did not choose."
    if support.rule == STANDING_TOLD:
        return f"“{shorten(ours)}” is not so: {found.detail}"
    if support.rule == "denied":
        return f"{name} and “{shorten(ours)}” say the same, but that one of the two denies it."
    if found.private or not support.says:
        return f"{name} says something else where the claim says “{shorten(ours)}”."
    return f"{name} says “{shorten(support.says)}” where the claim says “{shorten(ours)}”."


def failure_finding(found: Found) -> Finding:
    """The finding on a source that the check itself broke down on: nobody knows, so the claim waits."""
    message = f"Whether {shorten(found.name)} speaks of what the claim says could not be found out."
    return Finding(
        check=CHECK,
        verdict=Verdict.UNKNOWN,
        code="support_failed",
        message=message,
        citation=found.citation,
    )


# Without text, in a script or a language nobody here reads, there is nothing to hold a statement against.
_NOT_FOR_STATEMENTS = frozenset({"script", "no_text", "nothing_to_check"})
_UNCLEAR = (
    Verdict.UNKNOWN,
    "support_unclear",
    "The rules cannot tell whether {name} speaks of what the claim says.",
)
_UNKNOWN = {
    "no_text": (
        Verdict.UNKNOWN,
        "support_unreadable",
        "{name} has no text that the claim could be held against.",
    ),
    "nothing_to_check": (
        Verdict.PASS,
        "support_nothing_to_check",
        "The claim says nothing of {name} beyond citing it.",
    ),
    "script": (
        Verdict.UNKNOWN,
        "support_unreadable",
        "The claim or {name} is in a script that the rules cannot read.",
    ),
    "language": (
        Verdict.UNKNOWN,
        "support_unreadable",
        "What the claim and {name} say cannot be compared in their languages.",
    ),
    "disguised": (
        Verdict.UNKNOWN,
        "support_unreadable",
        "The claim is written in a way that the rules cannot read.",
    ),
    "long": (
        Verdict.UNKNOWN,
        "support_unreadable",
        "A statement is too long to be held against {name} as one: say it in several sentences.",
    ),
    "failed": (
        Verdict.UNKNOWN,
        "support_failed",
        "Whether {name} speaks of what the claim says could not be found out.",
    ),
    "cut": (
        Verdict.UNKNOWN,
        "support_unreadable",
        "{name} is longer than what is read of a source, and that does not speak of what the claim says.",
    ),
}


def _off_topic(name: str, support: Support, held: Sequence[Held]) -> str:
    if any(one.why == UNSPOKEN for one in held):
        return f"{name} has what the claim says only in a part that is not its own word, such as its context."
    if not support.missing:
        return f"{name} does not speak of what the claim says."
    words = ", ".join(f"“{shorten(word)}”" for word in support.missing[:_NAMED])
    return f"{name} does not speak of what the claim says; it has nothing of {words}."


def _facts(support: Support, excerpt: str) -> dict[str, str | float | bool | int | None]:
    facts: dict[str, str | float | bool | int | None] = {"score": support.score, "rule": support.rule}
    if support.source is not None:
        start, end = support.source
        facts |= {"source_start": start, "source_end": end, "source_words": shorten(excerpt[start:end], 200)}
    elif support.says:
        facts |= {"source_words": shorten(support.says, 200)}
    if support.disagree:
        facts["disagree"] = True
    return facts


def _judge_source(read: ReadClaim, found: Found) -> Finding:
    try:
        citations = read.naming(found.citation.key)
        return judge(read.claim.content, citations, found, alone=len(read.readings) == 1)
    except Exception:  # of one source; its finding lets nothing pass, and the others count
        log.exception("the claim could not be held against %a", found.source_id)
        return failure_finding(found)


CHECKS = (
    Check(
        name=CHECK,
        title="What the source says",
        codes={
            "support_states": Verdict.PASS,
            "support_on_topic": Verdict.PASS,
            "support_off_topic": Verdict.FAIL,
            "support_conflict": Verdict.FAIL,
            **{code: verdict for verdict, code, _ in (_UNCLEAR, *_UNKNOWN.values())},
            "support_failed": Verdict.UNKNOWN,
        },
        order=50,
        judge_source=_judge_source,
    ),
)
