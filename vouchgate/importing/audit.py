"""What of a memory is junk: found row by row, counted for the report. Pure: no clock, no network, no file.

A row is junk when it repeats an earlier row, is speculation, cites something that does not hold, says otherwise than
an earlier row so that only one of the two can be true, holds a credential, or gives a model orders. Each counts once in
the share of junk, however much is wrong with it. What is only worth a look (no citation at all, a citation that could
not be checked, a technical hedge, an update of an earlier row) is counted beside it and is no junk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

from vouchgate.gate.preview import DecidedClaims, resulting_item_kind
from vouchgate.importing.batches import PreparedRow
from vouchgate.importing.feed import reason_of
from vouchgate.importing.findings import (
    CONFLICTS,
    EXAMPLES,
    JUNK,
    TEXT_CHARACTERS,
    Audit,
    AuditedRow,
    Cluster,
    Example,
    Flag,
    RowPair,
    largest,
)
from vouchgate.importing.labels import LabelledRow, RowLabel, labelled
from vouchgate.importing.nearest import CANDIDATES, ChosenRows, EarlierTexts, Near, tell
from vouchgate.ingest.checks.citations import DETECT, VERIFY
from vouchgate.ingest.checks.hidden import CHECK as HIDDEN
from vouchgate.ingest.checks.instruction import CHECK as INSTRUCTION
from vouchgate.ingest.checks.personal import CHECK as PERSONAL
from vouchgate.ingest.claims.claim import Finding, Verdict
from vouchgate.ingest.claims.decision import Outcome
from vouchgate.ingest.claims.hedges import BLOCKING_HEDGES
from vouchgate.ingest.claims.likeness import DedupFacts, EchoFacts, ItemKind, Neighbour, Neighbours
from vouchgate.ingest.dedup.compare import LookedUp, compare
from vouchgate.ingest.dedup.relation import Relation
from vouchgate.ingest.dedup.retelling import says_it_replaces
from vouchgate.ingest.dedup.rewording import Rewriter
from vouchgate.ingest.dedup.signature import SignatureKeys, signature_keys
from vouchgate.ingest.language.words import tokens, word_list
from vouchgate.ingest.pipeline import OUTCOMES, Examined
from vouchgate.ingest.policy import Policy
from vouchgate.storage.claims.echoes import Echoes, name_for
from vouchgate.storage.dedup.contradicting import MOST_KEPT, new_allowance, of_candidates, together

# What a row may be called that turns out to be an update; what is graver is told of it instead.
_LESS = (RowLabel.PERSONAL_DATA, RowLabel.HEDGED, RowLabel.FINE)
_NAMED = 10  # credentials, and findings of one kind, of a row; of more is told how many
_UPDATED = "It says otherwise than {}, and that this has changed."


class Auditor:
    """Is shown every row once, in order, and says at the end what was found.

    What it says of a row rests on its repeats and conflicts before it, directly or through others, and on no more: rows
    that have nothing to do with each other may be shown to two auditors (`importing.bulk`).
    """

    def __init__(self, policy: Policy, nearest: ChosenRows | None = None) -> None:
        """`nearest` is who knows the earlier rows that may contradict one, where not all rows are shown."""
        self.policy = policy
        self.owners: set[str] = set()
        self._rewriter = Rewriter(policy.values)
        self._nearest: EarlierTexts | ChosenRows = nearest or EarlierTexts()
        self._earlier = DecidedClaims()
        self._echoes = Echoes(None)
        self._flags: dict[int, int] = {}  # of each row, by its number
        self._first: dict[str, AuditedRow] = {}  # of what is in `_earlier`, by its id there
        self._not_kept: set[str] = set()  # of these, those that the gate would not have kept
        self._clusters: dict[str, Cluster] = {}
        self._merged: dict[str, str] = {}
        self._memories: set[str] = set()  # of these, those that the gate would have stored at once
        self._conflicts: list[RowPair] = []
        self._updates: list[RowPair] = []
        self._replaced: set[str] = set()  # of these, those that a later row takes the place of
        self._ends: dict[str, datetime] = {}  # of rows that hold until then only
        self._answers: dict[str, LabelledRow] = {}  # of rows that may turn out to replace one behind them
        self._conflict_count = 0
        self._examples: dict[Flag, list[Example]] = {}
        self._secrets: Counter[str] = Counter()
        self._would: Counter[tuple[Outcome, str]] = Counter()
        self._said: dict[RowLabel, str] = {}  # of the row that was shown last
        self._other: str | None = None  # the place of the earlier row that this is about

    def observe(self, row: PreparedRow, examined: Examined, number: int | None = None) -> LabelledRow:
        """Takes in the next row, and its claim with what was found of it; its `number` where not all are shown."""
        claim, number = examined.claim, len(self._flags) if number is None else number
        self._flags[number] = 0
        self._said, self._other = {}, None
        self.owners.add(claim.owner_id)
        mention = AuditedRow(
            number=number,
            place=row.place,
            owner=claim.owner_id,
            text=claim.content[:TEXT_CHARACTERS],
            cut=len(claim.content) > TEXT_CHARACTERS,
            saved_at=row.saved_at,
            origin=row.origin,
            source=claim.asserted_source.value,
        )
        words = tokens(claim.content)
        keys = signature_keys(words, claim.memory_type.value, self.policy.threshold)
        # Masked texts can be equal where what was masked is not, so they are not compared.
        near = (
            Neighbours() if claim.secrets else self._earlier.near(claim.owner_id, keys, examined.capture_time)
        )
        examined = examined.comparing()
        now, nearest = examined.capture_time, self._nearest.of(number, claim, row.saved_at)
        if claim.validity_horizon is not None:
            self._ends[_id(number)] = claim.validity_horizon
        # What is over contradicts nothing that holds, and what says it again is no repeat.
        nearest = [one for one in nearest if self._holds(_id(one.number), now)]
        living = tuple(one for one in near.items if self._holds(one.id, now))
        repeats = self._compare(mention, examined, living, nearest, holds=self._holds(_id(number), now))
        self._judge(mention, examined)
        texts = [(_id(one.number), one.text) for one in nearest]
        self._decide(mention, examined, near, keys, texts=texts, repeats=repeats)
        answer = labelled(row.place, claim.content, self._said, self._other)
        if row.saved_at is not None and says_it_replaces(claim.content):
            self._answers[_id(number)] = answer
        return answer

    def _holds(self, item_id: str, now: datetime) -> bool:
        end = self._ends.get(item_id)
        return end is None or end > now

    def _compare(
        self,
        row: AuditedRow,
        examined: Examined,
        near: tuple[Neighbour, ...],
        nearest: Sequence[Near],
        *,
        holds: bool,
    ) -> str | None:
        """The group of earlier rows that the row repeats, if it does; else whether it says otherwise than any. Of those
        that share words with it, a bounded number is read, however many there are."""
        known, content = examined.known, examined.claim.content
        found = compare(content, near, self.policy.threshold, self.policy.values, known)
        repeated = [one.neighbour for one in found if not one.changed]
        exact = bool(repeated) and word_list(content) == word_list(repeated[0].content)
        same = [one.id for one in repeated]
        seen = {one.neighbour.id for one in found}
        replaced, others, newer = (list[tuple[str, tuple[str, ...]]]() for _ in range(3))
        for one in found if not same else ():
            earlier, at = one.neighbour.id, self._first[one.neighbour.id].saved_at
            turned = row.saved_at is not None and at is not None and row.saved_at < at
            changes = earlier in self._answers if turned else says_it_replaces(content)
            kind = (newer if turned else replaced) if changes else others
            kind += [(earlier, one.changed)] if earlier not in self._replaced else []
        for number, told, turned in () if same else tell(content, row.saved_at, nearest, self._rewriter):
            earlier = _id(number)
            if earlier in seen or earlier not in self._first:
                continue
            if told.relation is Relation.REPEAT:
                same.append(earlier)
            elif told.relation is Relation.CONFLICT:
                others += [(earlier, told.changed)] if earlier not in self._replaced else []
            else:
                (newer if turned else replaced).append((earlier, told.changed))
        newer, replaced, others = (newer, replaced, others) if holds else ([], [], [])
        for pair in newer:
            self._replace(row, *pair)
        if same:
            root = self._root(same[0])
            self._flags[row.number] |= Flag.DUPLICATE
            self._pair(same[0], RowLabel.REPEAT if exact else RowLabel.PARAPHRASE, "It says the same as {}.")
            self._cluster(root).add(row, exact=exact)
            for other in same[1:]:
                root = self._merge(root, self._root(other))
            return root
        # What is replaced replaces nothing: where times are missing, rows could replace each other in a ring, and
        # clearing what is replaced would take all of them.
        if replaced and _id(row.number) not in self._replaced:
            earlier, changed = replaced[0]
            self._replaced.add(earlier)
            self._pair(earlier, RowLabel.UPDATE, _UPDATED)
            self._update(RowPair(self._first[earlier], row, changed))
        elif others:
            self._flags[row.number] |= Flag.CONFLICT
            differing = ", ".join(others[0][1])
            self._pair(others[0][0], RowLabel.CONTRADICTION, "{} says otherwise: " + f"{differing}.")
            others = others[:MOST_KEPT]
            self._conflict_count += len(others)
            for earlier, changed in others[: CONFLICTS - len(self._conflicts)]:
                self._conflicts.append(RowPair(self._first[earlier], row, changed))
        return None

    def _replace(self, row: AuditedRow, later: str, changed: tuple[str, ...]) -> None:
        """Has a row that stands before this one, and was saved after it, be an update of it."""
        if (answer := self._answers.get(later)) and answer.label in _LESS:
            answer.label, answer.other, answer.reason = RowLabel.UPDATE, row.place, _UPDATED.format(row.place)
            self._replaced.add(_id(row.number))
            self._update(RowPair(row, self._first[later], changed))

    def _update(self, pair: RowPair) -> None:
        self._flags[pair.later.number] |= Flag.UPDATE
        self._updates += [pair][: CONFLICTS - len(self._updates)]

    @staticmethod
    def _contradicting(
        examined: Examined, texts: Iterable[tuple[str, str]], kept: Collection[str]
    ) -> LookedUp:
        """Those of the texts that contradict the claim, of rows that are among these."""
        if examined.known is None:
            return LookedUp(complete=True)
        read = [each for each in texts if each[0] in kept]
        return of_candidates(examined.known, read, new_allowance(), most=CANDIDATES)

    def _pair(self, earlier: str, label: RowLabel, says: str) -> None:
        self._other = self._first[earlier].place
        self._said[label] = says.replace("{}", self._other)

    def _cluster(self, root: str) -> Cluster:
        cluster = self._clusters.get(root)
        if cluster is None:
            cluster = self._clusters[root] = Cluster(self._first[root])
            cluster.note(cluster.first)
        return cluster

    def _root(self, item_id: str) -> str:
        while item_id in self._merged:
            item_id = self._merged[item_id]
        return item_id

    def _merge(self, one: str, other: str) -> str:
        """Makes two groups one, and names it; the later of their first rows repeats the other."""
        if one == other:
            return one
        if self._first[other].number < self._first[one].number:
            one, other = other, one
        self._flags[self._first[other].number] |= Flag.DUPLICATE
        self._cluster(one).absorb(self._cluster(other))
        del self._clusters[other]
        self._merged[other] = one
        return one

    def _judge(self, row: AuditedRow, examined: Examined) -> None:
        """What the checks of the text and of its citations say."""
        if examined.claim.secrets:
            self._secret(row, examined)
        hedge = examined.findings["hedge"][0]
        if hedge.code in BLOCKING_HEDGES:
            self._flag(row, Flag.SPECULATION, hedge, label=RowLabel.SPECULATION)
        elif hedge.verdict is not Verdict.PASS:
            self._flag(row, Flag.SOFTENED, hedge, label=RowLabel.HEDGED)
        if personal := examined.findings.of(PERSONAL):
            self._flag(row, Flag.PERSONAL, *personal, label=RowLabel.PERSONAL_DATA)
        if orders := [*examined.findings.of(INSTRUCTION), *examined.findings.of(HIDDEN)]:
            self._flag(row, Flag.INSTRUCTION, *orders, label=RowLabel.INJECTION)
        refuted = [
            finding for finding in examined.findings.cited if finding.verdict in (Verdict.FAIL, Verdict.DOUBT)
        ]
        unknown = [finding for finding in examined.findings.of(VERIFY) if finding.verdict is Verdict.UNKNOWN]
        if refuted:
            self._flag(row, Flag.CITATION, *refuted, label=RowLabel.BAD_CITATION)
        elif unknown and not examined.claim.secrets:  # of those with a credential nothing was asked
            self._flag(row, Flag.UNCHECKED, *unknown)
        if examined.findings[DETECT][0].verdict is not Verdict.PASS:
            self._flag(row, Flag.UNGROUNDED)

    def _secret(self, row: AuditedRow, examined: Examined) -> None:
        kinds = []
        for match in examined.claim.secrets:
            self._secrets[match.kind] += 1
            kinds.append(f"{match.kind} in the {match.where}, characters {match.start} to {match.end}")
        more = f"; and {len(kinds) - _NAMED:,} more" if len(kinds) > _NAMED else ""
        self._said[RowLabel.CREDENTIAL] = f"It holds a credential: {'; '.join(kinds[:_NAMED])}{more}."
        self._note(row, Flag.SECRET, Example(row, self._said[RowLabel.CREDENTIAL]))

    def _flag(self, row: AuditedRow, flag: Flag, *findings: Finding, label: RowLabel | None = None) -> None:
        spans = tuple((span.start, span.end) for finding in findings for span in finding.spans)
        says = " ".join(finding.message for finding in findings[:_NAMED])
        says += f" And {len(findings) - _NAMED:,} more." if len(findings) > _NAMED else ""
        if label is not None:
            self._said[label] = says
        self._note(row, flag, Example(row, says, spans))

    def _note(self, row: AuditedRow, flag: Flag, example: Example) -> None:
        self._flags[row.number] |= flag
        examples = self._examples.setdefault(flag, [])
        if len(examples) < EXAMPLES:
            examples.append(example)

    def _decide(
        self,
        row: AuditedRow,
        examined: Examined,
        near: Neighbours,
        keys: SignatureKeys,
        *,
        texts: Iterable[tuple[str, str]],
        repeats: str | None,
    ) -> None:
        """What the gate would have done with the row after those before it, and what the rows to come find of it."""
        kept = tuple(item for item in near.items if item.id not in self._not_kept)
        facts = near if len(kept) == len(near.items) else Neighbours(items=kept)
        echo = self._echo(examined, keys, facts)
        dedup: DedupFacts = facts
        if examined.known is not None and not examined.claim.secrets:
            dedup = together(facts, self._contradicting(examined, texts, self._memories))
        decision = examined.knowing(dedup=dedup, echo=echo).decide()
        self._would[OUTCOMES[decision.tier], reason_of(decision)] += 1
        kind = resulting_item_kind(decision)
        if examined.claim.secrets or (repeats is not None and (kind is None or kept)):
            return
        item_id = _id(row.number)
        if kind is None:
            self._not_kept.add(item_id)
        elif kind is ItemKind.MEMORY:
            self._memories.add(item_id)
        if repeats is not None:
            self._merged[item_id] = repeats
        self._first[item_id] = row
        self._earlier.add(item_id, kind or ItemKind.PENDING, examined.claim, keys, bands=())

    def _echo(self, examined: Examined, keys: SignatureKeys, near: Neighbours) -> EchoFacts | None:
        """How often the gate would have been sent the claim, where the policy lets that count."""
        if self.policy.echo.action == "report":
            return None
        name, source = name_for(examined, keys.words, near), examined.claim.asserted_source
        facts = self._echoes.facts(name, "", source)
        self._echoes.count(name, "", source, examined.capture_time)
        return facts

    def result(self) -> Audit:
        """What was found so far."""
        by_flags = Counter(self._flags.values())
        counts = {flag: sum(n for flags, n in by_flags.items() if flags & flag) for flag in Flag}
        clusters = self._clusters.values()
        echoes = [one for one in clusters if one.size >= self.policy.echo.count]
        return Audit(
            rows=len(self._flags),
            junk=sum(n for flags, n in by_flags.items() if flags & JUNK),
            counts=counts,
            owners=len(self.owners),
            clusters=largest(clusters),
            cluster_count=len(clusters),
            echoes=largest(echoes),
            echo_count=len(echoes),
            echo_rows=sum(one.size for one in echoes),
            echo_from=self.policy.echo.count,
            updates=tuple(self._updates),
            conflicts=tuple(self._conflicts),
            conflict_count=self._conflict_count,
            examples={flag: tuple(found) for flag, found in self._examples.items()},
            secrets=Counter(self._secrets),
            would=Counter(self._would),
        )


def _id(number: int) -> str:
    """What a row is called among those that are compared; of equally near ones the first row comes first."""
    return f"row-{number:012}"
