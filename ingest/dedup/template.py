"""Finer keys for sets that share most of their words: log lines, reports, "user X opened page Y at Z".

Sets made from one template share a part (`ingest.dedup.signature`) whatever stands in its slots, so that part's key
would lead to all of them. Such a key is closed instead: its sets are described by the words in which each
differs from the *template*, the words that most of them have, and these differences are few. Two sets are at
a distance of d words exactly when their differences are, so partners are found by the differences alone.

Let two partners differ from the template in X and Y, and both in T = X & Y. With a = |X - T| and b = |Y - T|,
the sets differ in a + b words, and a + b is at most what partners can differ in. A set stores a key for every
(T, b), and looks up every (T, b) that leaves a + b small enough: all it finds are partners, however many sets
the template has. Exact as the parts are; what would take too many keys is said to be so, never left out.

A long text may have more slots than that has keys for; then the template is *wide*. Partners whose differences
have x and y words share at least (x + y - d) / 2 of them, if they differ in d at most. Where that is two or one
for certain, keys are made of two words or of one, and lead to few sets that are no partners, as long as slots
take many values. Of a very large difference it is enough to take the first words in one fixed order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import comb

from xxhash import xxh3_64_intdigest, xxh3_128_hexdigest

from vouchgate.ingest.dedup.signature import VERSION, SignatureKeys, signed

MOST_STORED = 64  # keys of one set under one template: what a long claim stores anyway
MOST_PROBES = 512  # looked up at once; a few hundred cost less than a millisecond on SQLite
_MASK = (1 << 64) - 1
_ODD = 0x9E3779B97F4A7C15  # spreads small numbers over 64 bits (the golden ratio's fraction)


@dataclass(frozen=True, slots=True)
class Template:
    """Words that many sets of one size class share. `most` is how many words two partners in that class can
    differ in. A member differs from the template in `reach` words at most, of a `wide` one in more."""

    id: str
    words: frozenset[str]
    most: int
    reach: int
    wide: bool

    @property
    def shared(self) -> int:
        """How many words a key of a very large difference is made of: two while those keys are few, else one."""
        return 2 if comb(self.most + 2, 2) <= MOST_STORED else 1

    @property
    def large(self) -> int:
        """From this size on a difference is very large: whatever its partner's, they share `shared` words."""
        return self.most + self.shared


def template_of(words: frozenset[str], like: SignatureKeys, *, wide: bool = False) -> Template:
    """The template of these words for sets of the own class of `like`. Equal words give an equal id."""
    head = f"{VERSION}\0{like.scope}\0{like.threshold}\0{like.own.low}\0"
    text = head + "\0".join(sorted(words))
    digest = xxh3_128_hexdigest(text.encode("utf-8", "surrogatepass"))
    return restore_template(f"{'wide' if wide else 'tpl'}_{digest}", words, like.own.parts)


def restore_template(template_id: str, words: frozenset[str], parts: int) -> Template:
    """The template as it was made, from what is kept of it."""
    most = parts - 1
    wide = template_id.startswith("wide_")
    return Template(template_id, words, most, _reach(most), wide)


@lru_cache(maxsize=1024)
def _reach(most: int) -> int:
    reach = 0
    while reach < MOST_STORED and _count(reach + 1, most) <= MOST_STORED:
        reach += 1
    return reach


def _count(size: int, most: int) -> int:
    """How many ways there are to leave at most `most` of `size` words out."""
    return sum(comb(size, left_out) for left_out in range(min(size, most) + 1))


def shared_words(sets: Collection[frozenset[str]]) -> frozenset[str]:
    """The words that more than half of the sets have."""
    counted = Counter(word for words in sets for word in words)
    return frozenset(word for word, count in counted.items() if count * 2 > len(sets))


def is_member(template: Template, words: frozenset[str]) -> bool:
    """Whether the set is near enough to be kept under the template."""
    difference = len(words ^ template.words)
    return (difference > template.reach) is template.wide


def member_keys(template: Template, words: frozenset[str]) -> list[int]:
    """The keys a member stores."""
    difference = _numbers(words ^ template.words)
    start = _start(template)
    if template.wide:
        return _wide_keys(template, difference, start)
    total = sum(difference)
    return [
        _key(start, total - sum(removed), left_out)
        for left_out in range(min(template.most, len(difference)) + 1)
        for removed in combinations(difference, left_out)
    ]


def partner_keys(template: Template, words: frozenset[str], differ: int) -> list[int] | None:
    """The keys that lead to every member that differs from `words` in at most `differ` words, and to none
    (of a wide template: few) that differs in more; None when they are more than MOST_PROBES. Any set of words
    may be asked about."""
    difference = words ^ template.words
    most = min(differ, template.most)
    size = len(difference)
    if template.wide:
        found = _wide_partner_keys(template, sorted(_numbers(difference)), most)
        return found if len(found) <= MOST_PROBES else None
    if size > template.reach + most:
        return []
    ways = [
        (left_out, min(most - left_out, template.reach - size + left_out))
        for left_out in range(max(0, size - template.reach), min(most, size) + 1)
    ]
    if sum(comb(size, left_out) * (others + 1) for left_out, others in ways) > MOST_PROBES:
        return None
    numbers = _numbers(difference)
    total = sum(numbers)
    start = _start(template)
    return [
        _key(start, total - sum(removed), other)
        for left_out, others in ways
        for removed in combinations(numbers, left_out)
        for other in range(others + 1)
    ]


# What a key of a wide template is made of.
_OF_LARGE, _OF_PAIR, _OF_WORD, _OF_SIZE = 0, 1, 2, 1000


def _has_pairs(size: int) -> bool:
    return comb(size, 2) <= MOST_STORED


def _wide_keys(template: Template, difference: list[int], start: int) -> list[int]:
    size = len(difference)
    if size >= template.large:
        first = sorted(difference)[: template.large]
        return [_key(start, sum(chosen), _OF_LARGE) for chosen in combinations(first, template.shared)]
    if not _has_pairs(size):
        return [_key(start, 0, _OF_SIZE + size)] + [_key(start, word, _OF_WORD) for word in difference]
    return (
        [_key(start, 0, _OF_SIZE + size)]
        + [_key(start, word, _OF_WORD + size) for word in difference]
        + [_key(start, one + other, _OF_PAIR) for one, other in combinations(difference, 2)]
    )


def _wide_partner_keys(template: Template, difference: list[int], most: int) -> list[int]:
    """`difference` is sorted: in this order the first words that two share come among the first of either."""
    start, size = _start(template), len(difference)
    found = [
        _key(start, sum(chosen), _OF_LARGE)
        for chosen in combinations(difference[: template.large], template.shared)
    ]
    pairs = words = 0  # how many of the first words these are made of
    for other in range(max(template.reach + 1, size - most), min(template.large - 1, size + most) + 1):
        shared = -((most - size - other) // 2)  # rounded up
        if shared <= 0:
            found.append(_key(start, 0, _OF_SIZE + other))
        elif not _has_pairs(other):
            words = max(words, size - shared + 1)
        elif shared == 1 or comb(size - shared + 2, 2) > MOST_PROBES // 2:
            found += [_key(start, word, _OF_WORD + other) for word in difference[: size - shared + 1]]
        else:
            pairs = max(pairs, size - shared + 2)
    found += [_key(start, word, _OF_WORD) for word in difference[:words]]
    found += [_key(start, one + another, _OF_PAIR) for one, another in combinations(difference[:pairs], 2)]
    return found


def _start(template: Template) -> int:
    return int(template.id.rpartition("_")[2][:16], 16)


def _numbers(words: Iterable[str]) -> list[int]:
    return [xxh3_64_intdigest(word.encode("utf-8", "surrogatepass")) for word in words]


def _key(start: int, shared: int, left_out: int) -> int:
    return signed((start + shared + (left_out + 1) * _ODD) & _MASK)
