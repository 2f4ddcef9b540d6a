"""One cited source as a page shows it: what was found, where it really is, the passage that decides, and its worth."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from vouchgate.ingest.checks import support
from vouchgate.ingest.citations import label_of
from vouchgate.ingest.claims.citation import CitationType
from vouchgate.ingest.claims.claim import Finding, Verdict
from vouchgate.ingest.claims.decision import ValidationResult
from vouchgate.ingest.claims.source import (
    Form,
    Found,
    Judged,
    Missing,
    NotJudged,
    SourceReading,
    Standing,
    Unreachable,
)
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.scoring.reputation import SiteGroup, is_banned
from vouchgate.ingest.scoring.score import (
    freshness_of,
    is_official,
    is_trusted,
    judgement_of,
    reputation_of,
    source_score,
)
from vouchgate.ingest.scoring.sites import host_of
from vouchgate.review.pages.findings import FindingView, deciding, finding_views, worst
from vouchgate.review.pages.publishers import href_of, impact_href
from vouchgate.review.pages.wording.links import LinkView, leads_elsewhere, link_of
from vouchgate.review.pages.wording.text import MarkedSpan, Pieces, pieces, plain_line
from vouchgate.review.pages.wording.times import Moment, age, moment_or_none

CONFLICT, NEAR = "conflict", "near"

_AROUND = (
    160  # characters of the excerpt that are shown on each side of the deciding place: a sentence or two
)
_LINES = 3  # that end in a gap between two paragraphs; with more of them nobody sees the next one
_SPACE = re.compile(r"\s+")
_BEGINNING = 400  # characters that are shown of one without such a place

# The codes of `ingest.claims.source.Unreachable`; one that is not here is shown as it is.
_BECAUSE = {
    "timeout": "it took too long to answer",
    "refused": "it is not safe to ask for",
    "forbidden": "it is not shown to us",
    "rate_limited": "it wants to be asked later",
    "server_error": "its server has a fault",
    "dns": "its host's name could not be looked up",
    "tls": "its certificate does not hold",
    "connection": "no connection could be made",
    "odd_answer": "what it answered could not be understood",
    "login": "it asks to sign in",
    "offline": "nothing is looked up here",
    "not_asked": "it was not asked for, because the claim holds a credential",
    "no_repository": "there is no repository here to look in",
    "no_records": "no directory of decision records was found in the repositories",
    "no_record": "no such record is kept for this owner",
    "shallow_clone": "the repository here lacks a part of its history",
    "not_supported": "nothing here can look up a thing of this kind",
    "error": "the check itself failed",
}
_OF_REPOSITORY = {
    "commit": "a commit of the grounding repository",
    "file": "a file of the grounding repository",
    "turn": "a user's own words, put down by the host",
    "tool_output": "what a tool returned, put down by the host",
}
_GROUPS = {
    SiteGroup.PEER_REVIEWED: "peer reviewed",
    SiteGroup.PRIMARY: "an institution, or the maker of what it is about",
    SiteGroup.SECONDARY: "a good secondary source",
    SiteGroup.UNLISTED: "not listed, which is neither praise nor blame",
    SiteGroup.SHORTENER: "a link shortener",
    SiteGroup.BANNED: "on the banned list",
}


@dataclass(frozen=True, slots=True)
class SourceView:
    """What was read of one cited thing. Whatever others wrote is in pieces, never in a `str`.

    `kind` is the worst of its findings. `passage` is the deciding place of the excerpt with what stands around it;
    `longer` says that `excerpt` has more. `score` is empty where there is none; `score_note` says how it comes about.
    `leads_to` is the address that was read, when it is another one than `link`, which was cited. `publisher` can be
    trusted or banned at `publisher_href`; both are empty for what has none.
    """

    heading: Pieces
    impact_href: str  # what rests on it
    cited: Pieces
    cited_kind: str
    state_words: str
    kind: str
    detail: Pieces
    private: bool  # its findings do not say what was found there, so the detail is shown beside them
    status: str
    link: LinkView | None
    leads_to: LinkView | None
    title: Pieces
    passage: Pieces
    excerpt: Pieces
    longer: bool
    dated: Moment | None
    age: str
    reputation: str
    publisher: Pieces
    publisher_href: str
    score: str
    score_note: str
    standing: Pieces
    official: bool
    harvested: bool  # the gate found it, nobody cited it
    voice: Pieces  # whose word that is, where the gate found it: sources of one are no two
    judgement: Pieces
    quote: Pieces
    cut: bool
    findings: tuple[FindingView, ...]
    read_again: Moment | None


def source_views(answer: ValidationResult, policy: Policy, now: datetime) -> tuple[SourceView, ...]:
    """What was found of each thing that a decided claim cites, in its order."""
    decided = deciding(answer, policy)
    evidence = answer.evidence
    policy = policy.heeding(evidence.publishers)
    return tuple(
        source_view(
            reading,
            [f for f in answer.findings if f.citation is not None and f.citation.key == reading.citation.key],
            decided=decided,
            policy=policy,
            captured=evidence.capture_time,
            now=now,
        )
        for reading in evidence.sources
    )


def source_view(
    reading: SourceReading,
    findings: Sequence[Finding],
    *,
    decided: Iterable[Finding],
    policy: Policy,
    captured: datetime,
    now: datetime,
) -> SourceView:
    """What was found of one cited thing. `findings` are those about it; scores are those of `policy` for what was
    `captured` then, dates are as old as they are `now`."""
    citation = reading.citation
    found = reading if isinstance(reading, Found) else None
    link, leads_to = _links(reading)
    excerpt, passage, longer = _excerpt(found, findings)
    score, score_note = ("", "") if found is None else _score(found, policy, captured)
    judgement, quote = _judgement(found)
    publisher = found.site if found is not None and host_of(found.source_id) else ""
    return SourceView(
        heading=pieces(citation.value if found is None else found.source_id),
        impact_href=impact_href(citation.key),
        cited=pieces(citation.value),
        cited_kind=label_of(citation.type),
        state_words=_state(reading),
        kind=worst(findings),
        detail=pieces(reading.detail),
        private=reading.private,
        status="" if reading.status is None else f"HTTP {reading.status}",
        link=link,
        leads_to=leads_to,
        title=() if found is None else pieces(found.title or found.who),
        passage=passage,
        excerpt=excerpt,
        longer=longer,
        dated=None if found is None else moment_or_none(found.dated, now),
        age="" if found is None else age(found.dated, now),
        reputation="" if found is None else _reputation(found, policy),
        publisher=pieces(publisher),
        publisher_href=href_of(publisher) if publisher else "",
        score=score,
        score_note=score_note,
        standing=() if found is None else _standing(found),
        official=found is not None and is_official(found, policy),
        harvested=citation.harvested,
        voice=pieces(found.project or found.site) if found is not None and citation.harvested else (),
        judgement=judgement,
        quote=quote,
        cut=found is not None and found.cut,
        findings=finding_views(findings, decided),
        read_again=moment_or_none(reading.retry_after, now) if isinstance(reading, Unreachable) else None,
    )


def _state(reading: SourceReading) -> str:
    match reading:
        case Found():
            return "found"
        case Missing():
            return "does not exist"
        case Unreachable():
            return f"could not be checked: {_BECAUSE.get(reading.code, plain_line(reading.code, 40))}"


def _links(reading: SourceReading) -> tuple[LinkView | None, LinkView | None]:
    """The address that was cited, and the one that was read when it is another."""
    citation = reading.citation
    cited = citation.value if citation.type is CitationType.URL else ""
    final = reading.source_id if isinstance(reading, Found) and host_of(reading.source_id) else ""
    leads = bool(final) and (not cited or leads_elsewhere(cited, final))
    return link_of(cited) if cited else None, link_of(final) if leads else None


def _excerpt(found: Found | None, findings: Iterable[Finding]) -> tuple[Pieces, Pieces, bool]:
    """The whole excerpt, the part of it that decides, and whether the first has more."""
    if found is None or not found.excerpt.strip():
        return (), (), False
    text, spans = _without_gaps(found.excerpt, _deciding_spans(found.excerpt, findings), found.form)
    start = max(0, min((span.start for span in spans), default=0) - _AROUND)
    end = max(span.end for span in spans) + _AROUND if spans else _BEGINNING
    start, end = _cut_at_words(text, start, end)
    shown = pieces(text, spans)
    if (start, end) == (0, len(text)):
        return shown, shown, False
    before, behind = "… " if start else "", " …" if end < len(text) else ""
    moved = [
        MarkedSpan(span.start - start + len(before), span.end - start + len(before), span.kind, span.note)
        for span in spans
    ]
    return shown, pieces(f"{before}{text[start:end]}{behind}", moved), True


def _deciding_spans(text: str, findings: Iterable[Finding]) -> Iterable[MarkedSpan]:
    """Where in the excerpt the claim is contradicted, or where it comes nearest to it."""
    for finding in findings:
        start, end = finding.facts.get("source_start"), finding.facts.get("source_end")
        if finding.check != support.CHECK or not isinstance(start, int) or not isinstance(end, int):
            continue
        if not 0 <= start < end <= len(text):
            continue  # a record of another version of the excerpt
        if finding.code == "support_conflict":
            yield MarkedSpan(start, end, CONFLICT, "says otherwise than the claim")
        elif finding.verdict is Verdict.FAIL:
            yield MarkedSpan(start, end, NEAR, "the nearest it comes to the claim")
        else:
            yield MarkedSpan(start, end, NEAR, "where it speaks of what the claim says")


def _without_gaps(text: str, spans: Iterable[MarkedSpan], form: Form) -> tuple[str, list[MarkedSpan]]:
    """A text without long gaps of white space, and where its spans are then. What is not a record's own word, such as
    what it weighed, is blank in its excerpt: there an ellipsis says that something stands."""
    between = "\n…\n" if form == "record" else "\n\n"
    gaps = [gap.span() for gap in _SPACE.finditer(text) if gap[0].count("\n") > _LINES]

    def moved(place: int) -> int:
        return place - sum(max(0, min(place, end) - start - len(between)) for start, end in gaps)

    begins, ends = [0, *(end for _, end in gaps)], [*(start for start, _ in gaps), len(text)]
    short = between.join(text[start:end] for start, end in zip(begins, ends, strict=True))
    return short, [MarkedSpan(moved(each.start), moved(each.end), each.kind, each.note) for each in spans]


def _cut_at_words(text: str, start: int, end: int) -> tuple[int, int]:
    """The place without half words at its ends; a text with no space nearby is cut where it is."""
    if start > 0:
        space = text.find(" ", start, start + _AROUND // 2)
        start = space + 1 if space >= 0 else start
    if end < len(text):
        space = text.rfind(" ", end - _AROUND // 2, end)
        return start, space if space > start else end
    return start, len(text)


def _reputation(found: Found, policy: Policy) -> str:
    if found.citation.type is CitationType.CORPUS:
        return "a document of an official corpus" if found.official else "a document of a corpus"
    if found.official or found.form != "page":
        return _OF_REPOSITORY.get(found.form, "the grounding repository's own record")
    if is_banned(found, policy.banned):
        return _GROUPS[SiteGroup.BANNED]
    if is_trusted(found, policy):
        return f"trusted by you ({reputation_of(found, policy):.1f} of 1)"
    group = policy.reputation.group_of(found)
    days = policy.reputation.visitors.settled_days
    fresh = f"not listed: anybody may change it, and it has not stood for {days} days"
    worth = f"{fresh if found.fresh else _GROUPS[group]} ({policy.reputation.scores[group]:.1f} of 1)"
    return f"official by the policy; {worth}" if is_official(found, policy) else worth


def _score(found: Found, policy: Policy, captured: datetime) -> tuple[str, str]:
    """The score of the source, and a sentence on how it comes about."""
    score = f"{source_score(found, policy, captured):.2f}"
    if is_banned(found, policy.banned):
        return score, "What is on the banned list counts for nothing."
    if not found.vouches:
        return score, "What is not in force counts for nothing."
    if found.official or found.form != "page":
        return (
            score,
            "What is in the grounding repository, put down by the host, or official, counts in full.",
        )
    fresh = "not known, taken as" if found.dated is None else "worth"
    judged = judgement_of(found)
    parts = [
        "it can be read",
        f"reputation {reputation_of(found, policy):.1f}",
        f"age {fresh} {freshness_of(found.dated, captured):.1f}",
        *([] if judged is None else [f"judgement {judged:.1f}"]),
    ]
    return score, f"From: {', '.join(parts)}. A source counts from {policy.confidence_floor:.2f}."


def _standing(found: Found) -> Pieces:
    by = f" by {found.successor}" if found.successor else ""
    match found.standing:
        case Standing.IN_FORCE:
            return ()
        case Standing.SUPERSEDED | Standing.REJECTED | Standing.DEPRECATED | Standing.REVERTED:
            return pieces(f"{found.standing.value}{by}")
        case Standing.PROPOSED:
            said = "proposed only"
        case Standing.NOT_MERGED:
            said = "not merged into the branch that counts"
        case Standing.MEMORY:
            said = "what agents write themselves"
        case Standing.HINT:
            said = "where nothing keeps agents from writing"
        case Standing.DETACHED:
            said = "on no branch and under no tag"
        case Standing.AMBIGUOUS:
            said = "more than one thing has this name"
    return pieces(said)


def _judgement(found: Found | None) -> tuple[Pieces, Pieces]:
    """What the judge said, and the words of the source that it gave for it."""
    match None if found is None else found.judgement:
        case None:
            return (), ()
        case NotJudged() as none:
            return pieces(f"The judge gave no answer that counts. {none.detail}"), ()
        case Judged() as said:
            what = {"yes": "finds the claim in it", "partly": "finds a part of the claim in it"}
            finds = what.get(said.contains, "does not find the claim in it")
            quoted = said.attributed == "no" and said.contains != "no"
            of_others = ", and not as what it says itself" if quoted else ""
            return pieces(f"The judge ({said.model}) {finds}{of_others}."), pieces(said.quote)
