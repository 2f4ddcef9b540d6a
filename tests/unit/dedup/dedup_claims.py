"""Seeded technical claims of 6 to 60 words, and single edits of them by class with the verdict they must get.

A claim is a list of (class, word); the class says which edits a word can have.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

Word = tuple[str, str]
Edited = tuple[str, str, str, str]  # class of edit, verdict it must get, claim, edited claim

NAMES = [
    "Redis",
    "Kafka",
    "Postgres",
    "Berlin",
    "Alice",
    "Grafana",
    "Nginx",
    "Terraform",
    "Elastic",
    "Jenkins",
    "Maria",
    "Oslo",
    "Vault",
    "Celery",
]
IDENTIFIERS = [
    "max_retries",
    "fetchRows",
    "config.yaml",
    "/etc/hosts",
    "user_id",
    "api/v1/items",
    "HTTP_PROXY",
    "foo()",
    "--dry-run",
]
NOUNS = [
    "gateway",
    "worker",
    "scheduler",
    "bucket",
    "ledger",
    "token",
    "session",
    "queue",
    "replica",
    "cache",
    "tenant",
    "invoice",
    "header",
    "payload",
    "snapshot",
    "partition",
    "broker",
    "endpoint",
    "dashboard",
    "migration",
    "secret",
    "certificate",
    "webhook",
    "pipeline",
    "container",
    "namespace",
]
ADJECTIVES = [
    "public",
    "nightly",
    "internal",
    "stale",
    "shared",
    "regional",
    "signed",
    "legacy",
    "primary",
    "verbose",
    "encrypted",
    "idle",
]
VERBS = [
    "copies",
    "deletes",
    "validates",
    "rotates",
    "encrypts",
    "forwards",
    "caches",
    "rejects",
    "archives",
    "merges",
    "exports",
    "reads",
]
PREPOSITIONS = ["from", "into", "for", "under", "behind", "near", "across", "inside"]
JOINTS = ["because the", "and the", "while the", "so the", "whenever the", "after the"]
UNITS = ["seconds", "minutes", "hours", "days", "MB", "GB", "ms", "percent"]
MONTHS = ["January", "March", "April", "June", "August", "October", "December"]
KINDS = (
    "number",
    "version",
    "date",
    "unit",
    "identifier",
    "name",
    "verb",
    "noun",
    "adjective",
    "preposition",
)
# What adds nothing to a claim, and can stand before any of its words.
FILLERS = ["also", "really", "currently", "already", "indeed", "basically", "the", "this", "that"]
NEGATIONS = ["not", "never", "no", "without", "cannot", "hardly", "only", "neither"]
ANTONYMS = {"public": "private", "internal": "external", "primary": "secondary", "signed": "unsigned",
            "encrypted": "unencrypted", "rejects": "accepts", "encrypts": "decrypts", "exports": "imports",
            "reads": "writes", "after": "before", "from": "to", "inside": "outside", "under": "over"}  # fmt: skip


def _noun_phrase(rng: random.Random) -> Iterator[Word]:
    if rng.random() < 0.4:
        yield "adjective", rng.choice(ADJECTIVES)
    yield "noun", rng.choice(NOUNS) + ("s" if rng.random() < 0.3 else "")


def _tail(rng: random.Random) -> Iterator[Word]:
    match rng.randrange(6):
        case 0:
            yield from (
                ("small", "within"),
                ("number", str(rng.randrange(2, 999))),
                ("unit", rng.choice(UNITS)),
            )
        case 1:
            yield from (
                ("small", "since"),
                ("version", f"v{rng.randrange(9)}.{rng.randrange(30)}.{rng.randrange(9)}"),
            )
        case 2:
            yield from (
                ("small", "in"),
                ("date", rng.choice(MONTHS)),
                ("date", str(rng.randrange(2015, 2029))),
            )
        case 3:
            yield from (("small", "with"), ("identifier", rng.choice(IDENTIFIERS)))
        case 4:
            yield from (("preposition", rng.choice(PREPOSITIONS)), ("name", rng.choice(NAMES)))
        case _:
            yield from (("preposition", rng.choice(PREPOSITIONS)), ("small", "the"))
            yield from _noun_phrase(rng)


def claim(rng: random.Random, length: int) -> list[Word]:
    """One claim of at least `length` words, and few more."""
    words: list[Word] = [("small", "The")]
    while True:
        words += [*_noun_phrase(rng), ("verb", rng.choice(VERBS)), ("small", "the"), *_noun_phrase(rng)]
        while len(words) < length and rng.random() < 0.7:
            words += _tail(rng)
        if len(words) >= length:
            return words
        words += [("small", word) for word in rng.choice(JOINTS).split()]


def text(words: list[Word]) -> str:
    return " ".join(word for _, word in words) + "."


def _another(rng: random.Random, kind: str, word: str) -> str:
    match kind:
        case "number":
            return str(int(word) + rng.choice((1, 10, 100, -1)))
        case "version":
            return word + str(rng.randrange(1, 9))
        case "date" if word.isdigit():
            return str(int(word) + 1)
        case "identifier":
            return "x" + word if rng.random() < 0.5 else rng.choice([w for w in IDENTIFIERS if w != word])
        case "unit":
            pool = UNITS
        case "date":
            pool = MONTHS
        case "name":
            pool = NAMES
        case "verb":
            pool = VERBS
        case "preposition":
            pool = PREPOSITIONS
        case "adjective":
            pool = ADJECTIVES
        case _:
            pool = NOUNS
    return rng.choice([other for other in pool if other != word.removesuffix("s") and other != word])


def _at(rng: random.Random, words: list[Word], wanted: Callable[[Word], bool]) -> int | None:
    places = [index for index, word in enumerate(words) if wanted(word)]
    return rng.choice(places) if places else None


def _replaced(words: list[Word], at: int, new: str) -> str:
    return text([*words[:at], (words[at][0], new), *words[at + 1 :]])


def contradictions(rng: random.Random, words: list[Word]) -> Iterator[Edited]:
    """Single edits that change what the claim says."""
    whole = text(words)
    for kind in KINDS:
        at = _at(rng, words, lambda word, kind=kind: word[0] == kind)  # type: ignore[misc]
        if at is not None:
            yield (
                f"{kind} changed",
                "conflict",
                whole,
                _replaced(words, at, _another(rng, kind, words[at][1])),
            )
            if kind in ("noun", "adjective", "name", "identifier", "number"):
                yield f"{kind} dropped", "conflict", whole, text(words[:at] + words[at + 1 :])
    place = rng.randrange(1, len(words))
    negated = [*words[:place], ("negation", rng.choice(NEGATIONS)), *words[place:]]
    yield "negation inserted", "conflict", whole, text(negated)
    yield "negation removed", "conflict", text(negated), whole
    at = _at(rng, words, lambda word: word[1] in ANTONYMS)
    if at is not None:
        yield "antonym", "conflict", whole, _replaced(words, at, ANTONYMS[words[at][1]])
    for kind in ("noun", "name", "number"):
        places = [index for index, word in enumerate(words) if word[0] == kind]
        pairs = [(i, j) for i in places for j in places if i < j and _differ(words[i][1], words[j][1])]
        if pairs:
            one, two = rng.choice(pairs)
            swapped = list(words)
            swapped[one], swapped[two] = words[two], words[one]
            yield f"{kind}s swapped", "conflict", whole, text(swapped)


def _differ(one: str, two: str) -> bool:
    return one.removesuffix("s") != two.removesuffix("s")


def rewordings(rng: random.Random, words: list[Word]) -> Iterator[Edited]:
    """Single edits that change nothing."""
    whole = text(words)
    place = rng.randrange(len(words))
    filler = [*words[:place], ("small", rng.choice(FILLERS)), *words[place:]]
    yield "filler added", "duplicate", whole, text(filler)
    yield "filler dropped", "duplicate", text(filler), whole
    at = _at(rng, words, lambda word: word[1].lower() == "the")
    if at is not None:
        yield "article dropped", "duplicate", whole, text(words[:at] + words[at + 1 :])
        yield "article changed", "duplicate", whole, _replaced(words, at, rng.choice(("a", "this", "our")))
    at = _at(rng, words, lambda word: word[0] == "noun")
    if at is not None:
        noun = words[at][1]
        plural = noun.removesuffix("s") if noun.endswith("s") else noun + "s"
        yield "number of a noun", "duplicate", whole, _replaced(words, at, plural)
    yield "upper case", "duplicate", whole, whole.upper()
    place = rng.randrange(len(words))
    quoted = rng.choice(
        ("“{}”", "'{}'", "({})", "{},", "«{}»", "**{}**", "{}\u200b", "{}\u00a0", "\n{}", "{};", "{} —")
    )
    yield "punctuation", "duplicate", whole, _replaced(words, place, quoted.format(words[place][1]))
    yield "full stop dropped", "duplicate", whole, whole[:-1]
    wide = words[place][1].translate({code: code + 0xFEE0 for code in range(0x21, 0x7F)})
    yield "full width", "duplicate", whole, _replaced(words, place, wide)
    at = _at(rng, words, lambda word: word[0] == "date" and word[1].isalpha())
    if at is not None and at + 1 == len(words) - 1:
        moved = [("small", "In"), *words[at:], ("small", "the"), *words[1 : at - 1]]
        yield "date moved", "duplicate", whole, text(moved)
    at = _at(rng, words, lambda word: word[0] == "unit")
    if at is not None:
        joined = words[at - 1][1] + words[at][1]
        yield (
            "unit joined",
            "duplicate",
            whole,
            text([*words[: at - 1], ("number", joined), *words[at + 1 :]]),
        )
