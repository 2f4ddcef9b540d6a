"""Source score, label and confidence: pure functions of what was read, the same in any order of sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import combinations

from vouchgate.ingest.claims.decision import Confidence, Label
from vouchgate.ingest.claims.source import LINKS, Found, Judged
from vouchgate.ingest.language.words import RUN, runs
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.scoring.reputation import SiteGroup, is_banned
from vouchgate.ingest.scoring.sites import author_of, host_of

HIGH_SCORE = 0.8  # from here a claim is held with high confidence; design section 3

# Design section 3: the freshness of a source whose age is below so many years, the first that fits.
FRESHNESS = ((1, 1.0), (3, 0.8), (5, 0.5))
OLDER = 0.2
UNDATED = 0.6
_YEAR = timedelta(days=365.25)

# Two texts that share so many words in a row are one text: writers who do not copy share runs of a name, a command
# or a figure of speech, which are shorter, while a quotation worth the name is a sentence.
QUOTED_WORDS = 12


def source_score(source: Found, policy: Policy, at: datetime) -> float:
    """Score of one source that was found, 0 to 1, in steps of a millionth; `at` is when it was captured.

    0 for what does not support anything: no longer in force, or banned. What is in the grounding repository is
    its own reputation, and as long as it is in force its age says nothing against it: it scores 1. For every
    other source it is the weighted sum of design section 3, without a judge scaled to the other three terms.

    Freshness alone never fails a source: one that would reach the floor if nothing were known of its age
    is not put below it by its date, and gets the floor.
    """
    if not source.vouches or is_banned(source, policy.banned):
        return 0.0
    if source.official or source.form != "page":
        weights = policy.score
        return 1.0 if weights.reachable + weights.reputation + weights.freshness > 0 else 0.0
    score = _weighted(source, policy, freshness_of(source.dated, at))
    undated = _weighted(source, policy, UNDATED)
    return policy.confidence_floor if score < policy.confidence_floor <= undated else score


def claim_score(sources: Sequence[Found], policy: Policy, at: datetime) -> float | None:
    """The lowest score among the sources of a claim; None when it has none."""
    return min((source_score(source, policy, at) for source in sources), default=None)


def freshness_of(dated: datetime | None, at: datetime) -> float:
    """1 for a page of this year, less for older ones. A date after `at` says nothing, like none at all."""
    if dated is None:
        return UNDATED
    age = aware(at) - aware(dated)
    if age < timedelta(0):
        return UNDATED
    return next((value for years, value in FRESHNESS if age < years * _YEAR), OLDER)


def reputation_of(source: Found, policy: Policy) -> float:
    """What its publisher is worth, 0 to 1: by the table, and at least what the policy's author or the claim's owner
    makes of it, whatever the table knows."""
    reputation = policy.reputation.of(source)
    if is_official(source, policy):
        return max(reputation, policy.reputation.scores[SiteGroup.PRIMARY])
    if is_trusted(source, policy):
        return max(reputation, policy.reputation.scores[SiteGroup.SECONDARY])
    return reputation


def judgement_of(source: Found) -> float | None:
    """What a judge made of the source: 1 it says so, 0.5 in part, 0 it does not, or only quotes it. None when
    none was asked or none answered, which says nothing either way."""
    judged = source.judgement
    if not isinstance(judged, Judged):
        return None
    if judged.attributed == "no":
        return 0.0
    return {"yes": 1.0, "partly": 0.5, "no": 0.0}[judged.contains]


def is_official(source: Found, policy: Policy) -> bool:
    """Whether it is the grounding repository's own record, or on an official domain of the policy.

    A domain speaks for the hosts below it, but not for what a platform hosts there for others: the site of
    such a page lies below the domain, or is an account of it. Nor does it for what visitors write: issues, forums.
    """
    if source.official:
        return True
    site, host = source.site, host_of(source.source_id)
    for entry in map(str.lower, policy.official_domains):
        within = entry == site or entry.endswith("." + site)
        below = "/" not in site and (host == entry or (within and host.endswith("." + entry)))
        if (site == entry or below) and not policy.reputation.visitors_write(source, entry, wikis=False):
            return True
    return False


# Publishers that the table knows for what they are.
_LISTED = frozenset({SiteGroup.PEER_REVIEWED, SiteGroup.PRIMARY, SiteGroup.SECONDARY})


def is_trusted(source: Found, policy: Policy) -> bool:
    """Whether the owner of the claim trusts the publisher of a page. It is then worth what a secondary source is, and
    not official."""
    return any(policy.reputation.is_own_word(source, each) for each in policy.publishers.trusted)


def is_listed(source: Found, policy: Policy) -> bool:
    """Whether somebody listed the publisher of a source; what lives in the repository has none, and is. A page on a
    host without a registrable domain has a publisher nobody knows."""
    if is_official(source, policy) or policy.reputation.group_of(source) in _LISTED:
        return True
    if is_trusted(source, policy):
        return True
    return not source.site and not host_of(source.source_id)


def label_of(sources: Sequence[Found], policy: Policy, *, of_listed: bool = True) -> Label:
    """FACT when one of the sources that support the claim is official or two of listed publishers are independent of
    each other; all else is INFERENCE. What is not in force, banned, or was judged not to say so does not support it.
    `of_listed` is false only for a decision of before statements were held against sources, made again as then."""
    good = [
        source
        for source in sources
        if source.vouches and not is_banned(source, policy.banned) and judgement_of(source) != 0.0
    ]
    if any(is_official(source, policy) for source in good):
        return Label.FACT
    known = [
        (source, _Words.of(source.excerpt))
        for source in good
        if policy.reputation.group_of(source) is not SiteGroup.SHORTENER
        # Who nobody listed may be one person with two sites.
        if not of_listed or is_listed(source, policy)
    ]
    pairs = combinations(known, 2)
    two = any(are_apart(one, other) and not said.shares(same) for (one, said), (other, same) in pairs)
    return Label.FACT if two else Label.INFERENCE


def confidence_of(label: Label, score: float | None, *, vouched: bool) -> Confidence:
    """High for a FACT or a score of 0.8 and more, medium when something vouches for the claim, else low.

    `vouched` means: one verified source, a trusted source, or the owner's approval.
    """
    if label is Label.FACT or (score is not None and score >= HIGH_SCORE):
        return Confidence.HIGH
    return Confidence.MEDIUM if vouched else Confidence.LOW


def _weighted(source: Found, policy: Policy, freshness: float) -> float:
    weights, judgement = policy.score, judgement_of(source)
    score = (
        weights.reachable + weights.reputation * reputation_of(source, policy) + weights.freshness * freshness
    )
    if judgement is not None:
        return round(score + weights.judgement * judgement, 6)
    without_judge = weights.reachable + weights.reputation + weights.freshness
    return round(score / without_judge, 6) if without_judge > 0 else 0.0


def aware(time: datetime) -> datetime:
    """The same time: a page's date without a zone is read as UTC, so that it compares at all."""
    return time if time.utcoffset() is not None else time.replace(tzinfo=UTC)


def are_apart(one: Found, other: Found) -> bool:
    """Whether two pages are two publishers' texts, of which neither names the other."""
    return (
        are_others(one.site, other.site)
        and are_two_texts(one, other)
        and not _links_to(one, other.site)
        and not _links_to(other, one.site)
    )


def are_two_texts(one: Found, other: Found) -> bool:
    """Whether two sources are two texts, as far as is known."""
    different = "" not in (one.digest, other.digest) and one.digest != other.digest
    return different and (not one.text_group or one.text_group != other.text_group)


def are_others(one: str, other: str) -> bool:
    """Whether two sites are two people's: both are known, and neither is the other, or hosts it."""
    if not one or not other or author_of(one) == author_of(other):
        return False
    return not any(a.startswith(b + "/") or a.endswith("." + b) for a, b in ((one, other), (other, one)))


def _links_to(source: Found, site: str) -> bool:
    """Whether its text names the other site, or may: of a page with too many links not all are known."""
    return len(source.links) >= LINKS or any(author_of(link) == author_of(site) for link in source.links)


@dataclass(frozen=True, slots=True)
class _Words:
    """A text as words, and every run of QUOTED_WORDS of them."""

    words: tuple[str, ...]
    runs: frozenset[str]

    @classmethod
    def of(cls, text: str) -> _Words:
        words = tuple(RUN.findall(text.casefold()))
        return cls(words, frozenset(runs(words, QUOTED_WORDS)))

    def shares(self, other: _Words) -> bool:
        """Whether two texts have QUOTED_WORDS words in a row in common, or the shorter one is in the other; an empty
        text cannot be told from any other. Case, punctuation and line breaks do not count. Linear in both."""
        shorter, longer = sorted((self.words, other.words), key=len)
        if len(shorter) >= QUOTED_WORDS:
            return not self.runs.isdisjoint(other.runs)
        return " ".join(shorter) in runs(longer, len(shorter))
