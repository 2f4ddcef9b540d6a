"""What another policy would have made of decisions that fell: each is made again from its own evidence.

Each by itself, as if all others had stayed as they were. What a policy would have had looked for that nobody looked for
is not known, so such decisions are counted apart, by what is missing, and never guessed.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from pydantic import ValidationError

from vouchgate.ingest.checks.hedge import HedgeDetector
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.decision import Decision, Tier, ValidationResult
from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.ingest.claims.source import Unreachable
from vouchgate.ingest.claims.trust import OwnPublishers
from vouchgate.ingest.pipeline import remake
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.rules import Rule

MOST_EXAMPLES = 3  # of each move
MOST_WORDS = 80  # characters of an example
_BEFORE_ALL = frozenset({Rule.CREDENTIAL, Rule.REMOVAL})  # no policy decides these otherwise

Load = Callable[[str], Policy | None]


class Example(Frozen):
    """A decision that would have fallen otherwise, and the first words of its claim."""

    decision_id: str
    owner_id: str
    words: str


class Move(Frozen):
    """How many decisions would have gone from one tier and rule to another; the newest as examples."""

    from_tier: Tier
    from_rule: str
    to_tier: Tier
    to_rule: str
    decisions: int
    examples: tuple[Example, ...]


class Backtest(Frozen):
    """What came of making `decisions` again under the policy of `digest`: so many stay in their tier, those of `moves`
    go elsewhere, and those of `unknown` cannot be judged from what was kept, by the reason. `other_rule` of those that
    stay go by another rule."""

    digest: str
    decisions: int
    same: int
    other_rule: int
    moves: tuple[Move, ...]
    unknown: dict[str, int]

    @property
    def moved(self) -> int:
        """All that would have gone elsewhere."""
        return sum(move.decisions for move in self.moves)


@dataclass(slots=True)
class Backtester:
    """Makes decisions again under one policy, one after the other, and sums up. In memory are counts, some examples and
    the policies that decided. `own` lays more than what was known then of an owner's word on publishers over it."""

    policy: Policy
    load: Load
    own: Callable[[OwnPublishers], OwnPublishers] = lambda said: said
    _detector: HedgeDetector = field(init=False)
    _then: dict[str, Policy | None] = field(default_factory=dict)
    _decisions: int = 0
    _other_rule: int = 0
    _moves: Counter[tuple[Tier, str, Tier, str]] = field(default_factory=Counter)
    _examples: defaultdict[tuple[Tier, str, Tier, str], deque[Example]] = field(
        default_factory=lambda: defaultdict(lambda: deque(maxlen=MOST_EXAMPLES))
    )
    _unknown: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._detector = HedgeDetector(self.policy.lexicon)

    def add(self, documents: Iterable[str], progress: Callable[[int], None] = lambda done: None) -> None:
        """Makes these answers, as they were kept, again; the oldest first, so that examples are the newest."""
        for document in documents:
            self._decisions += 1
            self._add(document)
            progress(self._decisions)

    def _add(self, document: str) -> None:
        try:
            stored = ValidationResult.model_validate_json(document)
        except ValidationError:
            self._unknown["the decision cannot be read"] += 1
            return
        if stored.policy_digest not in self._then:
            self._then[stored.policy_digest] = self.load(stored.policy_digest)
        then = self._then[stored.policy_digest]
        if then is None:
            self._unknown["the policy that decided is not kept"] += 1
            return
        policy = self.policy.heeding(self.own(stored.evidence.publishers))
        again = self._decide(stored, policy)
        missing = again if isinstance(again, str) else missing_for(stored, again, then, policy)
        if missing is not None or isinstance(again, str):
            self._unknown[missing or ""] += 1
            return
        if again.tier is stored.tier:
            self._other_rule += again.rule != stored.rule
            return
        move = (stored.tier, str(stored.rule), again.tier, again.rule.value)
        self._moves[move] += 1
        claim = stored.evidence.claim
        words = " ".join(claim.content.split())
        shown = words if len(words) <= MOST_WORDS else words[:MOST_WORDS] + "…"
        example = Example(decision_id=str(stored.decision_id), owner_id=claim.owner_id, words=shown)
        self._examples[move].append(example)

    def _decide(self, stored: ValidationResult, policy: Policy) -> Decision | str:
        claim = stored.evidence.claim
        if len(claim.content) > policy.limits.content_characters:
            return "it would be refused: its text is longer than the other policy takes"
        try:
            examined = remake(stored, policy, self._detector)
            return examined.decide()
        except ValueError:
            return "its evidence lacks what is asked now"

    def result(self) -> Backtest:
        """What came of all so far, the largest moves first."""
        moves = tuple(
            Move(
                from_tier=move[0],
                from_rule=move[1],
                to_tier=move[2],
                to_rule=move[3],
                decisions=count,
                examples=tuple(reversed(self._examples[move])),
            )
            for move, count in sorted(self._moves.items(), key=lambda each: (-each[1], each[0]))
        )
        unknown = sum(self._unknown.values())
        same = self._decisions - unknown - sum(self._moves.values())
        return Backtest(
            digest=self.policy.digest,
            decisions=self._decisions,
            same=same,
            other_rule=self._other_rule,
            moves=moves,
            unknown=dict(self._unknown.most_common()),
        )


def missing_for(stored: ValidationResult, again: Decision, then: Policy, policy: Policy) -> str | None:
    """What the other policy would have had looked for and nobody did, where the answer may hang on that; a phrase."""
    evidence, sources = stored.evidence, stored.evidence.sources
    if again.rule in _BEFORE_ALL:
        return None
    passes, stores = again.tier is not Tier.BLOCKED, again.tier is Tier.STORED
    by_meaning = evidence.paraphrases is not None and policy.vector_threshold >= then.vector_threshold
    elsewhere = (then.harvest, then.corroboration) != (policy.harvest, policy.corroboration)
    cites = any(not one.citation.harvested for one in sources)
    counts_records = policy.spoken_of_floor > 0 and again.rule is Rule.SPOKEN_OF
    may_be = {
        "earlier claims were compared at another threshold": again.rule is not Rule.SPECULATION
        and _compares_otherwise(then, policy, len(sources)),
        "a source was never read": passes
        and any(isinstance(one, Unreachable) and one.code == "not_asked" for one in sources),
        "nobody looked for what says the same in other words": passes
        and policy.dedup_method == "vector"
        and not by_meaning,
        "evidence was looked for in other places than the other policy names": passes
        and elsewhere
        and not cites
        and evidence.claim.source is Source.AI_SYNTHESIS,
        "a model is asked about sources under one of the two policies alone": passes
        and bool(sources)
        and (then.judge.enabled, then.entailment) != (policy.judge.enabled, policy.entailment),
        "how often its agent was right was not kept": counts_records
        and not then.spoken_of_floor
        and evidence.track is None,
        "nobody looked for memories that contradict it": stores
        and stored.tier is not Tier.STORED
        and stored.similar is None,
    }
    return next((why for why, is_missing in may_be.items() if is_missing), None)


def _compares_otherwise(then: Policy, policy: Policy, sources: int) -> bool:
    """Where the threshold is higher than it was, all that counts was found; but for texts of several sources, which
    were told apart by it."""
    return policy.threshold < then.threshold or (policy.threshold != then.threshold and sources > 1)
