"""What a transaction knows of one dedup index: the lists of the keys it has read, and what it adds to them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Table, bindparam, delete, text

from vouchgate.ingest.claims.likeness import ItemKind, Neighbour
from vouchgate.ingest.dedup.signature import SignatureKeys
from vouchgate.ingest.dedup.template import (
    Template,
    is_member,
    member_keys,
    partner_keys,
    restore_template,
    shared_words,
    template_of,
)
from vouchgate.ingest.language.words import tokens
from vouchgate.storage.dedup import lookup
from vouchgate.storage.dedup.builds import Build, build_of
from vouchgate.storage.sql import BulkInsert, among
from vouchgate.storage.tables.claims import DedupKeyRow

TABLE: Table = DedupKeyRow.metadata.tables["dedup_key"]

# Items of one key before it is closed. Real claims rarely have more than seven that share a part; each costs
# a look-up one comparison of texts.
CLOSE_AT = 8
# Rows that one claim's keys may lead to, besides four a key (a long claim has hundreds of keys, and shares most
# of them with a partner). Only claims that share a part and nothing else in particular could be more; past it
# the answer says that it is not complete, and the claim goes to its owner.
MOST_ROWS = 256
# And so many items, each a text to be read and compared. A claim of 100 words or fewer cannot lead to more, unless by
# templates; a longer one does where an owner has hundreds that share much of their wording.
MOST_ITEMS = 128

_ROWS = BulkInsert(TABLE, known_ok=True)  # an item may come to a template by several of its keys
_ADD_TEMPLATE = text(
    "INSERT INTO dedup_template (owner_id, key, id, words, generation)"
    " VALUES (:owner_id, :key, :id, :words, :generation) ON CONFLICT DO NOTHING"
)
_REMOVE = delete(TABLE).where(
    TABLE.c.owner_id == bindparam("of_owner"),
    TABLE.c.item_id == bindparam("of_item"),
    among(TABLE.c.key, "keys"),
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """An item that the index leads to. `horizon` is set for a memory that stops being valid then."""

    neighbour: Neighbour
    horizon: datetime | None = None

    def counts_at(self, now: datetime) -> bool:
        """Whether it is still in force; a pending item always is."""
        return self.horizon is None or self.horizon > now


@dataclass(frozen=True, slots=True)
class CandidateSet:
    """The candidates of a claim, and whether they are all of them."""

    candidates: list[Candidate]
    complete: bool


NOTHING = CandidateSet([], complete=True)


@dataclass(slots=True)
class _List:
    """What is known of one key. `cut` when it has more items than were read."""

    items: dict[str, Candidate] = field(default_factory=dict)
    templates: dict[str, str] = field(default_factory=dict)  # id to words, as they are kept
    cut: bool = False


_OwnerKey = tuple[str, int]  # an owner and a key


class DedupIndexView:
    """What a transaction has read of one index, with what it is about to write to it.

    Without a connection it is an index of its own, in memory. Reads are made together where they can be:
    `prepare` for all claims of a group, then `find_candidates` and `add` claim by claim, each seeing what was added
    before it; `write` at the end.
    """

    def __init__(self, connection: Connection | None, build: Build | None) -> None:
        self._connection = connection
        self._build = build
        self._read_build: Build | None = None
        self._lists: dict[str, dict[int, _List | None]] = {}  # None: known to be empty
        self._added: dict[_OwnerKey, dict[str, Candidate]] = {}
        self._removed: dict[_OwnerKey, set[str]] = {}
        self._new_templates: list[dict[str, Any]] = []

    @property
    def threshold(self) -> Fraction | None:
        """What the index in use was built for, as of the last read."""
        return None if self._read_build is None else self._read_build.threshold

    def prepare(self, claims: Iterable[tuple[str, SignatureKeys]]) -> None:
        """Reads what `find_candidates` and `add` will need for these claims, in two rounds at most."""
        claims = list(claims)
        self._load([(owner, keys.all_probes()) for owner, keys in claims])
        finer = [(owner, self._finer(owner, keys)[0]) for owner, keys in claims]
        self._load([request for request in finer if request[1]])

    def find_candidates(self, owner_id: str, keys: SignatureKeys) -> CandidateSet:
        """Every item of this owner that can be at or over the threshold, and few that are not."""
        wanted = keys.all_probes()
        self._load([(owner_id, wanted)])
        lists = self._lists[owner_id]
        if not any(map(lists.get, wanted)):
            return NOTHING  # most claims are new
        finer, complete = self._finer(owner_id, keys)
        if finer:
            self._load([(owner_id, finer)])
        found: dict[str, Candidate] = {}
        for key in wanted + finer:
            if (known := lists[key]) is not None:
                complete = complete and not known.cut
                found.update(known.items)
        return CandidateSet(list(found.values()), complete)

    def _finer(self, owner_id: str, keys: SignatureKeys) -> tuple[list[int], bool]:
        """The keys under the templates that the claim's closed keys name; False when they are too many."""
        found: list[int] = []
        seen: set[str] = set()
        complete = True
        lists = self._lists[owner_id]
        for of, probes in keys.probes:
            for key in probes:
                if (known := lists[key]) is None:
                    continue
                for template_id, words in known.templates.items():
                    if template_id in seen:
                        continue
                    seen.add(template_id)
                    template = _template(template_id, words, of.parts)
                    more = partner_keys(template, keys.words, keys.differ)
                    complete = complete and more is not None
                    found += more or ()
        return found, complete

    def add(self, owner_id: str, candidate: Candidate, keys: SignatureKeys) -> None:
        """Puts an item in; one that is in already changes nothing."""
        self._load([(owner_id, keys.stored)])
        under: dict[str, Template] = {}
        for key in keys.stored:
            known = self._list(owner_id, key)
            templates = [_template(i, words, keys.own.parts) for i, words in known.templates.items()]
            members = [template for template in templates if is_member(template, keys.words)]
            if members:
                chosen = next((one for one in members if one.id in under), members[0])
                under[chosen.id] = chosen
                self._put_under(owner_id, chosen, candidate, keys.words)
            elif candidate.neighbour.id not in known.items:
                self._insert((owner_id, key), candidate)
                if len(known.items) >= CLOSE_AT and len(known.items).bit_count() == 1 and not known.cut:
                    self._close(owner_id, key, keys, list(under.values()))

    def _close(self, owner_id: str, key: int, keys: SignatureKeys, others: list[Template]) -> None:
        """Moves the items of a key to finer keys, when most of them have most of their words in common."""
        known = self._list(owner_id, key)
        sets = {item_id: tokens(item.neighbour.content) for item_id, item in known.items.items()}
        shared = shared_words(sets.values())
        for template in (*others, template_of(shared, keys), template_of(shared, keys, wide=True)):
            near_it = [item_id for item_id, words in sets.items() if is_member(template, words)]
            if len(near_it) * 2 > len(sets):
                break
        else:
            return
        words = json.dumps(sorted(template.words))
        known.templates[template.id] = words
        self._new_templates.append({"owner_id": owner_id, "key": key, "id": template.id, "words": words})
        for item_id in near_it:
            self._put_under(owner_id, template, known.items[item_id], sets[item_id])
            self._take_out((owner_id, key), item_id)

    def _put_under(
        self, owner_id: str, template: Template, candidate: Candidate, words: frozenset[str]
    ) -> None:
        finer = member_keys(template, words)
        self._load([(owner_id, finer[:1])])
        if candidate.neighbour.id in self._list(owner_id, finer[0]).items:
            return  # it came here by another of its keys
        for key in finer:
            self._insert((owner_id, key), candidate)

    def _insert(self, place: _OwnerKey, candidate: Candidate) -> None:
        self._added.setdefault(place, {})[candidate.neighbour.id] = candidate
        if place[1] in self._lists.get(place[0], ()):
            self._list(*place).items[candidate.neighbour.id] = candidate

    def _take_out(self, place: _OwnerKey, item_id: str) -> None:
        if self._added.get(place, {}).pop(item_id, None) is None:
            self._removed.setdefault(place, set()).add(item_id)
        self._list(*place).items.pop(item_id, None)

    def remove(self, owner_id: str, item_id: str, keys: SignatureKeys) -> None:
        """Takes an item out at once; one that is not in is no error. `keys` are those it was put in with."""
        self._load([(owner_id, keys.stored)])
        wanted = list(keys.stored)
        for key in keys.stored:
            for template_id, words in self._list(owner_id, key).templates.items():
                template = _template(template_id, words, keys.own.parts)
                if is_member(template, keys.words):
                    wanted += member_keys(template, keys.words)
        self._delete(owner_id, item_id, wanted)

    def write(self) -> None:
        """Writes what was added."""
        if self._build is None or self._connection is None:
            raise ValueError("this window is not for writing")
        generation = self._build.generation
        by_item: dict[tuple[str, str], list[int]] = {}
        for (owner_id, key), item_ids in self._removed.items():
            for item_id in item_ids:
                by_item.setdefault((owner_id, item_id), []).append(key)
        for (owner_id, item_id), keys in by_item.items():
            self._delete(owner_id, item_id, keys)
        if self._new_templates:
            rows = [row | {"generation": generation} for row in self._new_templates]
            self._connection.execute(_ADD_TEMPLATE, rows)
        _ROWS.write(
            self._connection,
            [
                {"owner_id": owner_id, "key": key, "item_id": item_id, "generation": generation}
                for (owner_id, key), items in self._added.items()
                for item_id in items
            ],
        )

    def _delete(self, owner_id: str, item_id: str, keys: list[int]) -> None:
        if self._connection is not None:
            self._connection.execute(_REMOVE, {"of_owner": owner_id, "of_item": item_id, "keys": keys})

    def _list(self, owner_id: str, key: int) -> _List:
        """What is known of a key that was read, to be changed."""
        lists = self._lists[owner_id]
        known = lists.get(key)
        if known is None:
            known = lists[key] = _List()
        return known

    def _load(self, requests: Sequence[tuple[str, Collection[int]]]) -> None:
        """Reads the keys that are not known yet, those of all requests together."""
        wanted: dict[str, list[int]] = {}
        for owner_id, keys in requests:
            lists = self._lists.setdefault(owner_id, {})
            if missing := [key for key in keys if key not in lists]:
                wanted[owner_id] = wanted[owner_id] + missing if owner_id in wanted else missing
        if not wanted:
            return
        most = min(len(requests), 2) * MOST_ROWS + 4 * sum(map(len, wanted.values()))
        most_items = len(requests) * MOST_ITEMS
        rows = (
            [] if self._connection is None else lookup.fetch_rows(self._connection, wanted, most, most_items)
        )
        items = [row for row in rows if row[0] and row[3] is None]
        keys_of = [list(map(int, row[1].split(","))) for row in items]
        cut = len(items) >= most_items or sum(map(len, keys_of)) >= most
        if cut and len(requests) > 1:
            for request in requests:  # one that reads much must not cut the others' rows off
                self._load([request])
            return
        for owner_id, missing in wanted.items():
            self._lists[owner_id].update(dict.fromkeys(missing))
            for key in missing if cut else ():
                self._list(owner_id, key).cut = True
        for (owner_id, _, item_id, _, *item), keys in zip(items, keys_of, strict=True):
            if (candidate := _candidate(item_id, *item)) is not None:
                for key in keys:
                    self._list(owner_id, key).items[item_id] = candidate
        self._note_templates(rows)
        self._merge(wanted)

    def _note_templates(self, rows: Sequence[Any]) -> None:
        """Notes the templates of these rows, and which index they are of."""
        for owner_id, key, template_id, words, *_ in rows:
            if words is None:
                continue
            if not owner_id:
                self._read_build = build_of(words)
            elif readable(words) is None:
                self._list(owner_id, int(key)).cut = True  # what is under it cannot be told
            else:
                self._list(owner_id, int(key)).templates[template_id] = words

    def _merge(self, places: Mapping[str, Collection[int]]) -> None:
        """Lays what is about to be written over what was read, if anything is."""
        if not (self._added or self._removed):
            return
        for place in ((owner_id, key) for owner_id, keys in places.items() for key in keys):
            for item_id in self._removed.get(place, ()):
                self._list(*place).items.pop(item_id, None)
            if added := self._added.get(place):
                self._list(*place).items.update(added)


def _candidate(item_id: str, memory: str | None, horizon: Any, pending: str | None) -> Candidate | None:
    if memory is not None:
        if isinstance(horizon, str):  # SQLite keeps it as text in UTC, without the zone
            horizon = datetime.fromisoformat(horizon).replace(tzinfo=UTC)
        return Candidate(Neighbour(kind=ItemKind.MEMORY, id=item_id, content=memory), horizon)
    if pending is not None:
        return Candidate(Neighbour(kind=ItemKind.PENDING, id=item_id, content=pending))
    return None


@lru_cache(maxsize=256)
def readable(words: str) -> frozenset[str] | None:
    """The words of a template as they are kept; None when they are damaged."""
    try:
        found = json.loads(words)
    except ValueError:
        return None
    whole = isinstance(found, list) and all(isinstance(word, str) for word in found)
    return frozenset(found) if whole else None


@lru_cache(maxsize=256)
def _template(template_id: str, words: str, parts: int) -> Template:
    return restore_template(template_id, readable(words) or frozenset(), parts)
