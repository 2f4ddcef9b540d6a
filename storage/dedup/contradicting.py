"""Memories of an owner that contradict a claim in half of its words or more, found by the similar index
(`storage.dedup.similar`) and compared before the claim comes to the writer, or there when that is quickly done.

Items that wait are not asked: the index has memories only, and when one of two that contradict each other is approved,
the other is held against it. What is found becomes neighbours of the claim like those over the threshold, so that the
decision can be made again from the evidence; the rules tell that they are contradictions.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction

from sqlalchemy import Connection

from vouchgate.ingest.claims.decision import Tier
from vouchgate.ingest.claims.likeness import DedupFacts, ItemKind, Neighbour, Neighbours
from vouchgate.ingest.dedup.compare import NOT_LOOKED_UP, Allowance, Comparisons, LookedUp
from vouchgate.ingest.dedup.similar import nearest
from vouchgate.ingest.pipeline import Examined
from vouchgate.storage.dedup import similar
from vouchgate.storage.dedup.window import Candidate
from vouchgate.storage.identity import owners
from vouchgate.storage.identity.owners import OwnerState

# Of those that contradict a claim, as many as its owner would look at become evidence.
MOST_KEPT = 5
# What comparing one claim may cost before the transaction: all texts that a look-up reads, and so many seconds of the
# processor. A pair takes a tenth of a millisecond, or up to two where rules have to be asked.
COMPARING_SECONDS = 0.1
# And what all claims of a transaction may cost in it, beside what finding repeats may: most were compared before.
MOST_IN_TRANSACTION = 2_000
SECONDS_IN_TRANSACTION = 0.05
_NEVER = datetime.max.replace(tzinfo=UTC)
MOST_OF_GROUP = 16  # texts of the same transaction that a claim is held against; they share most keys with it


Asked = tuple[Examined, tuple[int, ...]]  # a claim, and its keys in the similar index
Near = Mapping[tuple[str, tuple[int, ...]], Sequence[Candidate]]  # memories, by owner and keys


def new_allowance() -> Allowance:
    """What comparing one claim may cost where nobody waits for it."""
    return Allowance(similar.MOST_READ, COMPARING_SECONDS)


def look_up(
    connection: Connection,
    owner_id: str,
    content: str,
    memory_type: str,
    known: Comparisons,
    *,
    now: datetime,
    allowance: Allowance | None = None,
    show: bool = False,
) -> LookedUp:
    """What of the owner's memories contradicts a text, and with `show` what is similar to it; `known` remembers what
    was compared. Bounded: with more memories about the same than a look-up reads, or an allowance that was used up,
    the answer is not complete."""
    as_of = owners.log_end(connection, owner_id)  # first: what is stored after it is not taken for seen
    bands = similar.keys_of(content, memory_type)
    read = similar.candidates(connection, owner_id, bands, memory_type, now=now)
    if not bands and content.strip():
        return NOT_LOOKED_UP  # its keys could not be made
    found = of_candidates(known, read, allowance or new_allowance())
    shown = nearest(content, read, known.threshold) if show else ()
    return replace(found, as_of=as_of, bands=bands, similar=shown)


def of_candidates(
    known: Comparisons,
    read: Sequence[tuple[str, str]],
    allowance: Allowance,
    *,
    most: int = similar.MOST_READ,
) -> LookedUp:
    """Those of the memories (id, text), of which the first share most keys, that contradict the claim. When `most` are
    about the same, there may be more that were not read."""
    complete, about_the_same = True, 0
    found: list[tuple[Fraction, Neighbour]] = []
    for memory_id, text in read:
        may = known.may_contradict(text, allowance)
        if may is None or (may and not known.contradict(text, allowance)):
            complete = False
            continue
        about_the_same += may
        if may and known.contradicted(text):
            neighbour = Neighbour(kind=ItemKind.MEMORY, id=memory_id, content=text)
            found.append((known.near(text) or Fraction(0), neighbour))
    if about_the_same >= most:
        complete = False
    found.sort(key=lambda one: (-one[0], one[1].id))
    return LookedUp(tuple(item for _, item in found[:MOST_KEPT]), complete)


def read_many(connection: Connection, claims: Iterable[Asked], tails: similar.Tails | None = None) -> Near:
    """What the similar index has for claims with these keys, in three statements, or two where `tails` are known."""
    wanted: dict[str, dict[tuple[int, ...], str]] = {}
    for examined, bands in claims:
        claim = examined.claim
        if bands and not claim.removes:
            wanted.setdefault(claim.owner_id, {})[bands] = claim.memory_type.value
    return similar.candidates_of_many(connection, wanted, tails) if wanted else {}


def of_near(near: Near, examined: Examined, bands: tuple[int, ...], allowance: Allowance) -> LookedUp:
    """Those of what was read that contradict the claim."""
    if not bands or examined.known is None:
        return NOT_LOOKED_UP
    read = near.get((examined.claim.owner_id, bands), ())
    in_force = [
        (memory.neighbour.id, memory.neighbour.content)
        for memory in read
        if memory.counts_at(examined.capture_time)
    ]
    return of_candidates(examined.known, in_force, allowance)


class BandLists:
    """The similar index of memories that are not on disk: by owner and key."""

    def __init__(self) -> None:
        self._lists: defaultdict[tuple[str, int], list[tuple[str, str]]] = defaultdict(list)
        self._horizons: dict[str, datetime] = {}

    def add(self, owner_id: str, bands: Iterable[int], memory: Candidate) -> None:
        """Puts a memory in."""
        if memory.horizon is not None:
            self._horizons[memory.neighbour.id] = memory.horizon
        for key in bands:
            self._lists[owner_id, key].append((memory.neighbour.id, memory.neighbour.content))

    def sharing(self, owner_id: str, bands: Iterable[int], now: datetime) -> list[tuple[str, str]]:
        """As `storage.dedup.similar.candidates`: of each key the newest, then those in force that share most."""
        if not self._lists:
            return []
        met = Counter(
            each for key in bands for each in self._lists.get((owner_id, key), ())[-similar.NEWEST :]
        )
        nearest = [each for each, _ in met.most_common() if self._horizons.get(each[0], _NEVER) > now]
        return nearest[:MOST_OF_GROUP]


def together(facts: DedupFacts, *looked_up: LookedUp) -> DedupFacts:
    """What the dedup check is told: the neighbours over the threshold, and those that contradict the claim."""
    if not isinstance(facts, Neighbours):
        return facts
    complete = facts.complete and all(one.complete for one in looked_up)
    found = {item.id: item for one in looked_up for item in one.items}
    if complete is facts.complete and not found:
        return facts
    found |= {item.id: item for item in facts.items}
    return Neighbours(items=tuple(sorted(found.values(), key=lambda item: item.id)), complete=complete)


class OfGroup:
    """What contradicts the claims that one transaction decides, one after the other."""

    def __init__(
        self,
        connection: Connection,
        claims: Iterable[Asked],
        states: Mapping[str, OwnerState],
        tails: similar.TailCache,
    ) -> None:
        """`claims` are those of the group with their keys, `states` those of their owners, who are locked."""
        self._connection = connection
        self._claims = claims
        self._states = states
        self._log_ends = {owner: state.log_seq for owner, state in states.items()}
        self._tails = tails
        self._read: Near | None = None  # when asked for
        self._allowances: defaultdict[str, Allowance] = defaultdict(
            lambda: Allowance(MOST_IN_TRANSACTION, SECONDS_IN_TRANSACTION)
        )
        self._lists = BandLists()  # what the group stores
        self._stored: defaultdict[str, list[tuple[str, tuple[int, ...]]]] = defaultdict(list)

    def stored(self, owner_id: str, bands: tuple[int, ...], memory: Candidate) -> None:
        """Shows a memory to the claims that follow."""
        self._lists.add(owner_id, bands, memory)
        self._stored[owner_id].append((memory.neighbour.id, bands))

    def written(self) -> None:
        """Notes what the group stored for transactions to come."""
        for owner_id, state in self._states.items():
            self._tails.extend(state, self._stored[owner_id], self._log_ends[owner_id])

    def added(self, examined: Examined, bands: tuple[int, ...], dedup: DedupFacts) -> DedupFacts:
        """The facts of the dedup check with what contradicts the claim: as it was found before, or looked up now when
        it was not, or the owner's log went on, and something rests on it; and of what this very group stores."""
        if examined.claim.removes or examined.known is None:
            return dedup
        owner_id, known = examined.claim.owner_id, examined.known
        found = examined.looked_up or NOT_LOOKED_UP
        if found.as_of != self._log_ends[owner_id]:
            if not found.items and examined.knowing(dedup=dedup).decide().tier is not Tier.STORED:
                return dedup
            if self._read is None:
                tails = self._tails.of(self._connection, self._states, self._log_ends)
                self._read = read_many(self._connection, self._claims, tails)
            found = of_near(self._read, examined, bands, self._allowances[owner_id])
        met = self._lists.sharing(owner_id, bands, examined.capture_time)
        of_group = of_candidates(known, met, self._allowances[owner_id], most=MOST_OF_GROUP)
        # Claims of one transaction are often of one template, and each has what vouches for it: the nearest of them are
        # asked, and more of them make no crowd.
        return together(dedup, found, replace(of_group, complete=True))
