"""What the comparison of two memories knows about words: `ingest/data/memories.toml`, by their stems."""

from __future__ import annotations

from vouchgate.ingest.contradictions.lists import LISTS, root_of
from vouchgate.ingest.data import read_data
from vouchgate.ingest.dedup.rewording import Unit


class Words:
    """The lists of the file."""

    def __init__(self) -> None:
        raw = read_data("memories.toml")
        self.opposites = {
            (root_of(a), root_of(b))
            for one, other in raw["opposites"]
            for a, b in ((one, other), (other, one))
        }
        self.negations = frozenset(raw["negations"])
        self.helping = frozenset(raw["helping"])
        self.idioms = frozenset(raw["idioms"])
        self.joints = frozenset(raw["joints"])
        self.often: dict[str, str] = raw["often"]
        self.periods: dict[str, str] = raw["periods"]
        self.modals = frozenset(raw["modals"])
        self.opening = frozenset(raw["opening"])
        self.numbered = frozenset(raw["numbered"]) | LISTS.references
        self.groups = {root_of(word): name for name, words in raw["groups"].items() for word in words}
        self.counterparts = {frozenset(map(root_of, pair)) for pair in raw["counterparts"]}
        self.naming = frozenset(map(root_of, raw["verbs"]["naming"]))
        self.fond = frozenset(map(root_of, raw["verbs"]["fond"]))
        self.many, self.shared, self.one, self.sole = (
            frozenset(map(root_of, raw["verbs"][name])) for name in ("many", "shared", "one", "sole")
        )
        self.orders = frozenset(raw["verbs"]["orders"])
        self.fates: dict[str, frozenset[int]] = {}  # the classes that each is of
        for number, verbs in enumerate(raw["fates"]):
            for root in map(root_of, verbs):
                self.fates[root] = self.fates.get(root, frozenset()) | {number}
        self.alone = {(root_of(verb), joint) for verb, joint in raw["verbs"]["alone"]}
        self.single = frozenset(map(root_of, raw["subjects"]["single"]))
        self.ranks = frozenset(raw["subjects"]["ranks"])
        self.every = frozenset(raw["every"])
        self.only = frozenset(raw["only"])
        self.bounds = {tuple(words.split()): name for name, group in raw["bounds"].items() for words in group}

    def group(self, unit: Unit) -> str | None:
        """The name of the group of which a word is."""
        low = unit.key.lower()
        return (
            self.groups.get(root_of(low)) or LISTS.groups.get(low) or LISTS.groups.get(low.removesuffix("s"))
        )

    def opposed(self, one: Unit, other: Unit) -> bool:
        """Whether two words are opposites."""
        left, right = root_of(one.key), root_of(other.key)
        return (
            (left, right) in self.opposites
            or right in LISTS.opposites_of(left)
            or left in LISTS.opposites_of(right)
        )


# A constant read once from the package's own data file.
WORDS = Words()
