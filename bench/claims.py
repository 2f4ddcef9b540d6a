"""Claims that read like an engineer's memory, from a seed: the same texts in every run, and from nowhere else.

Words follow Zipf's law: a few hundred are frequent, the rest is made of syllables and rare. Lengths are those
of real technical sentences: of them 56 % have fewer than 12 distinct words, 34 % have 12 to 23, 10 % from 24.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate
from random import Random

from vouchgate.ingest.claims.claim import Claim, MemoryType, Source


def claim_of(text: str) -> Claim:
    """A claim that says this and nothing else."""
    return Claim(
        content=text,
        memory_type=MemoryType.FACT,
        asserted_source=Source.AI_SYNTHESIS,
        source=Source.AI_SYNTHESIS,
        owner_id="bench",
    )


def _words(text: str) -> list[str]:
    return text.split()


DETERMINERS = ("the", "a", "every", "each", "this", "our", "no", "one", "another", "any")
LINKS = ("and", "but", "so that", "because", "when", "while", "after", "before", "unless", "which means that")
PREPOSITIONS = ("in", "on", "for", "with", "from", "to", "of", "under", "behind", "through", "between", "at")
NOUNS = _words(
    "service request cache index table queue worker token session user page file column key value row job test "
    "branch commit build release config flag header response client server database migration schema log event "
    "message topic partition replica lock thread process socket port timeout retry limit quota batch stream "
    "buffer hash digest signature certificate secret policy role scope tenant owner account invoice payment "
    "order cart shipment report metric alert dashboard trace span sample deploy container image volume node "
    "cluster region zone gateway proxy router endpoint route handler parser compiler linter formatter package "
    "module class method function argument type field record snapshot backup restore archive bucket object "
    "upload download import export webhook callback scheduler cron task pipeline stage artifact runner agent "
    "memory disk network latency throughput error warning exception crash panic leak race deadlock bug fix"
)
VERBS = _words(
    "uses returns reads writes keeps drops stores sends accepts rejects retries blocks waits locks opens closes "
    "builds runs loads parses checks validates signs hashes splits merges moves copies renames removes adds "
    "updates replaces caches skips logs reports measures limits counts sorts filters groups joins maps routes "
    "wraps calls starts stops restarts deploys rolls needs expects assumes ignores handles raises catches"
)
ADJECTIVES = _words(
    "new old slow fast stale fresh empty full local remote public private internal external shared single "
    "double partial whole first last next previous default custom static dynamic async nightly weekly manual "
    "automatic encrypted signed compressed primary secondary read-only idle busy broken flaky safe strict"
)
SYLLABLES = [
    f"{onset}{nucleus}{coda}"
    for onset in _words("b d f g k l m n p r s t v z br cr dr gl pl st tr")
    for nucleus in ("a", "e", "i", "o", "u", "ai", "ou")
    for coda in ("", "", "n", "r", "l", "x")
]
FIRST_NAMES = _words(
    "Ada Bela Chen Dora Emil Fay Gita Hugo Ines Jan Kofi Lena Milo Nia Omar Petra Quin Rosa Sven Tara"
)
_SMALL = frozenset(" ".join((*DETERMINERS, *LINKS, *PREPOSITIONS)).split())
RARE_WORDS = 60_000  # of syllables; at Zipf's frequencies a million claims show nearly all of them
BUFFER = 20_000  # words drawn at once: one call a word would take longer than all the rest

NEW, EXACT, CASE, PUNCTUATION = "new", "exact", "case", "punctuation"
EDITS = ("substitution", "insertion", "deletion", "number", "negation", "two edits", "three edits")
PLANTED = (EXACT, CASE, PUNCTUATION, "reorder", *EDITS)
_FROM_WORDS = {"two edits": 24, "three edits": 35}  # fewer distinct words: under 0.92 whatever is edited


def made_word(random: Random, low: int = 2, high: int = 4) -> str:
    """A word of `low` to `high` syllables."""
    return "".join(random.choices(SYLLABLES, k=random.randint(low, high)))


def made_name(random: Random) -> str:
    """First and last name in one word, as in a login: two names are never values of one another."""
    return random.choice(FIRST_NAMES) + made_word(random, 2, 3).capitalize()


class _Pool:
    """Draws words by Zipf's law. With the exponent 1.2 every fifth content word is one of the rare."""

    def __init__(self, words: list[str], random: Random) -> None:
        self._words, self._random = words, random
        self._weights = list(accumulate((rank + 4) ** -1.2 for rank in range(len(words))))
        self._drawn: list[str] = []

    def draw(self) -> str:
        if not self._drawn:
            self._drawn = self._random.choices(self._words, cum_weights=self._weights, k=BUFFER)
        return self._drawn.pop()


class Generator:
    """Texts from a seed, each independent of those before it but for the random sequence they share."""

    def __init__(self, seed: int | str) -> None:
        self.random = random = Random(seed)
        vocabulary = Random(1)  # one vocabulary for every seed, as claims of one field share it
        rare = sorted({made_word(vocabulary, 1, 3) for _ in range(RARE_WORDS)})
        vocabulary.shuffle(rare)
        self._nouns = _Pool([*NOUNS, *rare[: len(rare) // 2]], random)
        self._verbs = _Pool([*VERBS, *(f"{word}s" for word in rare[-2000:])], random)
        self._adjectives = _Pool([*ADJECTIVES, *rare[len(rare) // 2 : -2000]], random)
        self._specials: tuple[Callable[[], str], ...] = (
            lambda: str(random.randint(2, 9999)),
            lambda: f"{random.randint(0, 9)}.{random.randint(0, 30)}.{random.randint(0, 30)}",
            lambda: f"{random.randint(1, 900)}{random.choice(('ms', 's', 'MB', 'GB', '%'))}",
            lambda: f"{made_word(random, 1, 2)}_{self._nouns.draw()}",
            lambda: made_word(random, 1, 2).capitalize() + self._nouns.draw().capitalize(),
            lambda: f"{self._nouns.draw()}/{made_word(random, 1, 2)}.py",
            lambda: f"{random.choice(('OPS', 'WEB', 'DATA'))}-{random.randint(1, 99999)}",
            lambda: f"{random.getrandbits(28):07x}",
            partial(made_name, random),
        )

    def claim(self) -> str:
        """One claim, of a length drawn from the mix."""
        draw = self.random.random()
        if draw < 0.56:
            size = self.random.randint(5, 11)
        elif draw < 0.90:
            size = self.random.randint(12, 23)
        else:
            size = 24 + min(36, int(self.random.expovariate(1 / 9)))
        return self.claim_of(size)

    def claim_of(self, size: int) -> str:
        """One claim of `size` distinct words."""
        words: list[str] = []
        distinct: set[str] = set()
        while len(distinct) < size:
            for phrase in self._clause(bool(words)):
                for word in phrase.split():
                    words.append(word)
                    distinct.add(word)
                if len(distinct) >= size:
                    break
        while len(distinct) > size:  # the last phrase was of several words
            distinct = set(words := words[:-1])
        if words[-1] in _SMALL:
            words[-1] = self._nouns.draw()
        text = " ".join(words)
        return text[0].upper() + text[1:] + ("." if self.random.random() < 0.4 else "")

    def claims(self, count: int) -> list[str]:
        """`count` claims of which no two have the same words: what a gate would have let through."""
        seen: set[int] = set()
        found: list[str] = []
        while len(found) < count:
            text = self.claim()
            words = hash(frozenset(text.lower().rstrip(".").split()))
            if words not in seen:
                seen.add(words)
                found.append(text)
        return found

    def _clause(self, follows: bool) -> Iterator[str]:
        random = self.random
        if follows:
            yield random.choice(LINKS)
        yield from self._noun_phrase()
        yield self._verbs.draw()
        yield from self._noun_phrase()
        if random.random() < 0.6:
            yield random.choice(PREPOSITIONS)
            yield from self._noun_phrase()

    def _noun_phrase(self) -> Iterator[str]:
        chance = self.random.random()
        if chance < 0.12:
            yield self.random.choice(self._specials)()
            return
        if chance < 0.8:
            yield DETERMINERS[bisect((0.48, 0.66, 0.74), chance)]
        elif chance < 0.9:
            yield self.random.choice(DETERMINERS)
        if chance > 0.55:
            yield self._adjectives.draw()
        yield self._nouns.draw()

    def changed(self, kind: str, text: str) -> str | None:
        """The text with one planted change, or None when it is of no use for that: no number, too short."""
        random = self.random
        if len(set(text.lower().split())) < _FROM_WORDS.get(kind, 1):
            return None
        words = text.split()
        match kind:
            case "exact":
                return text
            case "case":
                return text.upper() if random.random() < 0.5 else text.lower()
            case "punctuation":
                place = random.randrange(len(words))
                words[place] = f"“{words[place]}”" if random.random() < 0.5 else f"{words[place]},"
            case "reorder":
                one, other = random.sample(range(len(words)), 2)
                words[one], words[other] = words[other], words[one]
            case "two edits" | "three edits":
                for _ in range(2 if kind == "two edits" else 3):
                    self._edit(random.choice(("substitution", "insertion", "deletion")), words)
            case _:
                if not self._edit(kind, words):
                    return None
        return " ".join(words)

    def _edit(self, kind: str, words: list[str]) -> bool:
        random = self.random
        place = random.randrange(len(words))
        match kind:
            case "substitution":
                words[place] = self._nouns.draw()
            case "insertion":
                words.insert(place, self._adjectives.draw())
            case "deletion":
                del words[place]
            case "negation":
                words.insert(place, "not")
            case "number":
                numbers = [at for at, word in enumerate(words) if word[0].isdigit()]
                if not numbers:
                    return False
                words[random.choice(numbers)] = str(random.randint(10_000, 99_999))
            case _:
                raise ValueError(f"no edit is called {kind}")
        return True
