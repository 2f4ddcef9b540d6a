"""What waits to be compared or written, with its owners in turn: what one of them sends costs another little.

Who sends much waits behind what others send. A long text has its turn apart, since to find what is near to one takes
some 10 ms; and as those who send short ones meanwhile would wait for one such text after the other, long ones rest in
between while others send.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Generic, Protocol, TypeVar

MAX_WAITING = 10_000  # more would only wait longer than any caller does
WAITING_PER_OWNER = 2_000  # of these; an import has some 800 on the way, a batch at most 500
MAX_GROUP = 256  # claims in one transaction: past this, the disk is a small part of it
MAX_GROUP_CHARACTERS = 65_536  # of their texts: others wait for the keys of long ones to be read and written
# What an owner gets at one turn, there and where claims are compared: who comes next waits for so much of each other.
TURN_CLAIMS = 64
TURN_CHARACTERS = 2_048
# From so many in a turn on it has a transaction of its own: to find what is near to a text of 2,000 takes some 10 ms,
# and whoever sends short ones meanwhile waits for that once, and not in every transaction.
LONG_TURN = 1_024
# While others send short ones, long texts rest for so many times as long as the last one took: they have a quarter of
# the time then, and most of what others send does not meet one. But not for long after one that took very long.
REST = 3.0
MOST_REST = 0.1  # seconds
_LATELY = 2.0  # seconds since somebody sent a short one: they will again


class Waiting(Protocol):
    """What waits for its owner's turn."""

    @property
    def owner_id(self) -> str: ...

    @property
    def characters(self) -> int: ...

    @property
    def alone(self) -> bool: ...


W = TypeVar("W", bound=Waiting)


class Senders:
    """Who sent short texts last, of whatever is compared or written in a process. May be used from any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._last = self._before = ("", float("-inf"))  # two owners, and when

    def note(self, owner_id: str) -> None:
        """One has its turn now."""
        if self._last[0] != owner_id:
            self._before = self._last
        self._last = owner_id, self.clock()

    def others(self, owner_id: str) -> bool:
        """Whether anybody else has sent something lately, and so will again."""
        found = self._before if self._last[0] == owner_id else self._last
        return self.clock() - found[1] < _LATELY


class OwnersInTurn(Generic[W]):
    """What waits, by owner: an owner's in the order of arrival, and owners in turn. Not locked by itself; who takes
    from it is through with what was taken when it asks for more."""

    def __init__(self, senders: Senders) -> None:
        self._of_owner: dict[str, deque[W]] = {}  # whose turn is next comes first
        self._served: list[str] = []  # who had the last turn: who came meanwhile is before them
        self._count = 0
        self._senders = senders
        self._long: tuple[str, float] | None = None  # whose long text is in hand, and since when
        self._rest_until = float("-inf")

    def __len__(self) -> int:
        return self._count

    def __contains__(self, owner_id: str) -> bool:
        return owner_id in self._of_owner

    def add(self, one: W) -> bool:
        """False when so much waits already, of this owner or of all, that it is not taken."""
        waiting = self._of_owner.get(one.owner_id, ())
        if self._count >= MAX_WAITING or len(waiting) >= WAITING_PER_OWNER:
            return False
        self._of_owner.setdefault(one.owner_id, deque()).append(one)
        self._count += 1
        return True

    def put_back(self, one: W) -> None:
        """Before all others of its owner."""
        self._of_owner.setdefault(one.owner_id, deque()).appendleft(one)
        self._count += 1

    def seconds(self) -> float | None:
        """Until something can be taken: 0 when it can be now, None when nothing waits."""
        if not self._of_owner:
            return None
        rest = self._rest()
        if rest > 0 and all(_is_long(waiting[0]) for waiting in self._of_owner.values()):
            return rest
        return 0.0

    def take(self) -> list[list[W]]:
        """What comes next of each owner, as much as one transaction has: or one that is `alone`, or a long text, if
        that is next. An owner who comes to one later is next after that, and so is who came while the others had
        theirs. Nothing while long texts rest and nothing else waits."""
        resting = self._rest() > 0
        for owner_id in self._served:
            if waiting := self._of_owner.pop(owner_id, None):
                self._of_owner[owner_id] = waiting
        turns: list[list[W]] = []
        left, characters = MAX_GROUP, MAX_GROUP_CHARACTERS
        for waiting in self._of_owner.values():
            if (turns and _is_apart(waiting[0])) or (resting and _is_long(waiting[0])):
                continue
            if left <= 0 or (turns and characters < waiting[0].characters):
                break
            turn = list(_turn(waiting, min(left, TURN_CLAIMS), min(characters, TURN_CHARACTERS)))
            turns.append(turn)
            left -= len(turn)
            characters -= sum(one.characters for one in turn)
            if _is_apart(turn[0]):
                break
        self._served = [turn[0].owner_id for turn in turns]
        for owner_id in self._served:
            if not self._of_owner[owner_id]:
                del self._of_owner[owner_id]
        self._count -= sum(map(len, turns))
        self._note(turns)
        return turns

    def _note(self, turns: list[list[W]]) -> None:
        for first in (turn[0] for turn in turns):
            if _is_long(first):
                self._long = first.owner_id, self._senders.clock()
            elif not first.alone:
                self._senders.note(first.owner_id)

    def _rest(self) -> float:
        """For how many seconds long texts rest from now on. The one that was in hand is done with."""
        now = self._senders.clock()
        if self._long is not None:
            (owner_id, since), self._long = self._long, None
            if self._senders.others(owner_id):
                self._rest_until = now + min(REST * (now - since), MOST_REST)
        return self._rest_until - now


def _is_apart(first: Waiting) -> bool:
    """Whether a turn that begins with it shares its transaction with no other owner."""
    return first.alone or _is_long(first)


def _is_long(first: Waiting) -> bool:
    return not first.alone and first.characters > LONG_TURN


def _turn(waiting: deque[W], most: int, characters: int) -> Iterator[W]:
    """Takes from the front what one owner gets at one turn: one at least."""
    taken = 0
    while (
        waiting and taken < most and not (taken and (waiting[0].alone or waiting[0].characters > characters))
    ):
        one = waiting.popleft()
        taken += 1
        characters -= one.characters
        yield one
        if one.alone:
            return
