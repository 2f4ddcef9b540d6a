"""Whether two sentences speak of the same thing: the condition every rule shares."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from vouchgate.ingest.contradictions.lists import LISTS
from vouchgate.ingest.contradictions.sentence import Reading, Sentence

# A name that the source gives in another sentence of the passage counts for less than one in the sentence itself.
_ELSEWHERE = 0.6
# Of the claim's other content words, how many the sentence itself has at least: a long claim's words are strewn over
# any passage of its field.
_HERE = 1 / 3


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A place where the source says otherwise than the claim: the deciding words in both texts as given."""

    rule: str
    claim_start: int
    claim_end: int
    source_start: int
    source_end: int
    clause: bool = False  # found when a clause was read without its sentence

    def of_clause(self, start: int) -> Contradiction:
        """The same in the claim, when it was found in a clause of it that begins at `start`."""
        moved = self.claim_start + start, self.claim_end + start
        return Contradiction(self.rule, *moved, self.source_start, self.source_end, clause=True)


@dataclass(frozen=True, slots=True)
class Pair:
    """One sentence of a claim, one of the source's, and all of the passage, which may confirm the claim elsewhere."""

    claim: Sentence
    source: Sentence
    passage: Reading

    def conflict(self, rule: str, ours: tuple[int, int], theirs: tuple[int, int]) -> Contradiction:
        """The finding of a rule; places of words, first and last."""
        return Contradiction(rule, *self.claim.span(*ours), *self.source.span(*theirs))

    def about(self, deciding: Iterable[int], need: float) -> bool:
        """Whether the source's sentence speaks of what the claim speaks of, leaving out the claim's deciding words.

        `need` is the share of the claim's other content words that must be found. A name that is missing counts
        neither way when the source's sentence refers back ("She was …") or has another part of the name.
        """
        left_out = {self.claim.words[index].key for index in deciding}
        rest = self.claim.keys - left_out - LISTS.changes
        here = rest & (self.passage.keys if self.points_back() else self.source.keys)
        if not here:
            return False
        if not self._same_subject(left_out):
            return False
        elsewhere = (rest - here) & self.passage.keys
        rest -= self._forgiven(rest - here - elsewhere)
        enough = len(here) + _ELSEWHERE * len(elsewhere) >= need * len(rest)
        return enough and len(here) >= _HERE * len(rest)

    def _same_subject(self, left_out: set[str]) -> bool:
        """Whether the passage has what the claim begins with: the crawler's retries are not the mailer's. A word like
        "the film" may be a name in the source, and a source that begins with "she" tells of somebody named before."""
        first = next((word for word in self.claim.words if word.content and not word.number), None)
        if (
            first is None
            or first.key in left_out
            or first.key in self.passage.keys
            or first.key in LISTS.subjects
        ):
            return True
        if any(low in LISTS.pronouns for low in self.source.lows[:2]) or self.points_back():
            return first.text[:1].isupper()
        return bool((self.claim.names - left_out) & self.source.names)

    def _forgiven(self, missing: frozenset[str]) -> frozenset[str]:
        """The missing names: those of a subject that the source refers back to, or gives in part."""
        names = {
            word.key: index
            for index, word in enumerate(self.claim.words)
            if word.key in missing and word.text[:1].isupper() and word.text.isalpha()
        }
        if not names:
            return frozenset()
        foreign = {word.key for word in self.source.words[:4] if word.name} - self.claim.keys
        if any(low in LISTS.pronouns for low in self.source.lows[:2]) and not foreign:
            return frozenset(names)
        return frozenset(key for key, index in names.items() if self._given_in_part(index))

    def _given_in_part(self, index: int) -> bool:
        """Whether a name beside this one is in the source: "Lind" for "Marta Lind"."""
        beside = [
            self.claim.words[place] for place in (index - 1, index + 1) if 0 <= place < len(self.claim.words)
        ]
        return any(
            word.text[:1].isupper() and word.content and word.key in self.source.keys for word in beside
        )

    def points_back(self) -> bool:
        """Whether the source's sentence speaks of what the one before it spoke of: "Now this is …"."""
        return any(low in ("this", "it", "these", "that") for low in self.source.lows[:2])

    def removal_differs(self) -> bool:
        """Whether one of the two says that something is removed, and the other does not."""
        return bool(self.claim.keys & LISTS.gone) is not bool(self.source.keys & LISTS.gone)

    def same_time(self) -> bool:
        """Whether both tell of the same side of a change. How things were is not how they are, and a passage
        about a repair states the fault and its opposite."""
        ours, theirs = self.is_before_change(self.claim), self.is_before_change(self.source)
        if ours or theirs:
            return ours and theirs
        if self.passage.repairs or (self.passage.change and self.claim.new):
            return self.source.new
        return True

    def is_before_change(self, sentence: Sentence) -> bool:
        """Whether a sentence tells how things were before the change that the passage is about."""
        return sentence.old or (self.passage.change and sentence.past and not sentence.new)

    def passage_says(self, word: str, *, denied: bool | None = None) -> bool:
        """Whether the passage says a word (its stem) of what the claim speaks of, at the claim's time, and asserts or
        denies it if that is asked. A mention in another connection is no such thing."""
        rest = self.claim.keys - {LISTS.stems.get(word, word)}
        here = len(rest & self.source.keys)
        ours = self.is_before_change(self.claim)
        for sentence in self.passage.sentences:
            if not ours and self.is_before_change(sentence):
                continue
            for place in sentence.roots.get(word, ()):
                if denied is not None and (sentence.polarity[place] == 1) is denied:
                    continue
                clause = {sentence.words[index].key for index in sentence.clause(place)}
                back = sentence.lows[0] in LISTS.referring
                if back or 2 * len(rest & clause) >= here or self._said_beside(word, sentence, place):
                    return True
        return False

    def _said_beside(self, word: str, sentence: Sentence, place: int) -> bool:
        """Whether the same word comes right after it as in the claim: "the write lock" is one wherever it stands."""
        after = sentence.words[place + 1].key if place + 1 < len(sentence.words) else ""
        ours = self.claim.roots.get(word, ())
        following = [self.claim.words[index + 1] for index in ours if index + 1 < len(self.claim.words)]
        return any(other.content and other.key == after for other in following)

    def other_subject(self, ours: int, theirs: int) -> bool:
        """Whether before a place the claim has a word, and the source before its own the opposite: of the read lock
        nothing follows for the write lock."""
        mine = {word.root for word in self.claim.words[:ours] if word.content}
        others = {word.root for word in self.source.words[:theirs] if word.content}
        return any(other in others - mine for one in mine - others for other in LISTS.opposites_of(one))
