"""The lexicon of hedges as a validated document: the words and phrases that make a claim less than an assertion.

The built-in one is `ingest/data/hedges.toml`, which says how to read it. It is a field of the policy, so a policy
can change it group by group; see `extend_lexicon`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from typing import Annotated, Self

from pydantic import Field, model_validator

from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.ingest.claims.hedges import HedgeCategory
from vouchgate.ingest.data import read_data
from vouchgate.ingest.language.languages import Language, load_languages

_MAX_ELEMENTS = 16  # of one phrase; bounds the work of one match

_WORD = re.compile(r"[^\W\d_A-Z](?:['-]?[^\W\d_A-Z])*|~?#|#ish|#odd|[,.?~]|\d{1,3}%?")
_ALTERNATIVE = re.compile(r"\{(?P<list>[a-z_]+)\}|(?P<word>\S+)")

PhraseText = Annotated[str, Field(min_length=1, max_length=400)]
Word = Annotated[str, Field(min_length=1, max_length=40)]


class ContextRule(StrEnum):
    """A rule about the words around a match. Each is a function of the same name in `ingest.hedges.rules`."""

    ABILITY = "ability"
    ADVICE = "advice"
    ASKED = "asked"
    ASSURED = "assured"
    CLAUSE_FOLLOWS = "clause_follows"
    CLAUSE_START = "clause_start"
    CONDITIONAL = "conditional"
    DIGIT_ONE = "digit_one"
    EXPECTATION = "expectation"
    GERUND = "gerund"
    HALF_MEANT = "half_meant"
    IDIOM = "idiom"
    IMPRESSION = "impression"
    LIMIT = "limit"
    MANNER = "manner"
    MEASURED = "measured"
    MONTH = "month"
    NAME = "name"
    NOT_ROUGH = "not_rough"
    NOUN = "noun"
    OWN_ACT = "own_act"
    PARTICLE = "particle"
    PROHIBITION = "prohibition"
    PROPOSAL = "proposal"
    QUESTION = "question"
    RELATIVE = "relative"
    REQUIREMENT_WORD = "requirement_word"
    SENTENCE_START = "sentence_start"
    SHARED = "shared"
    SHOWN = "shown"
    SIMILAR = "similar"


# Word lists that came later. A policy that was kept before has none of them, and reads a text as it did then.
LATER_LISTS = frozenset(
    {
        "advised",
        "advised_case",
        "article",
        "expected_harm",
        "goes_on",
        "limit_verb",
        "limit_words",
        "no_gerund",
        "numbered",
        "of_case",
        "of_nobody",
        "own_words",
        "relative_word",
        "reported_link",
        "reported_nobody",
        "reported_noun",
        "reported_verb",
        "reported_whose",
        "required_state",
        "said_in_code",
        "shared_after",
        "shown_after",
        "sure_after",
        "sure_between",
        "sure_of_many",
        "through_digits",
    }
)

# The word lists that the rules and the detector use by name; a lexicon without one of them could not be used.
RULE_LISTS = LATER_LISTS | frozenset(
    {
        "adverb_of_manner",
        "agent",
        "agreeable",
        "appear",
        "bit",
        "comparison",
        "conditional",
        "contemplation",
        "determiner_of_noun",
        "effect_subject",
        "epistemic_subject",
        "expected",
        "expected_effect",
        "expected_not",
        "expected_noun",
        "expected_state",
        "finite",
        "forbidden_act",
        "forbidden_verb",
        "forbidden_whoever",
        "found_out",
        "harmless",
        "idiom_before",
        "idiom_next",
        "impression_cue",
        "joining",
        "kind_before",
        "label_after",
        "label_before",
        "label_word",
        "likened",
        "look",
        "manner_verb",
        "me",
        "month_after",
        "month_before",
        "not_could",
        "not_opinion_next",
        "opens_clause",
        "proposal_word",
        "quote_after",
        "quote_before",
        "shown_next",
        "similar_before",
        "similar_next",
        "soon",
        "stative",
        "subject_opener",
        "takes_about",
        "takes_around",
        "takes_object",
        "wh",
        "writer",
    }
)


class HedgeGroup(Frozen):
    """One kind of hedge. A match counts when every rule of `when` holds and none of `unless` does."""

    category: HedgeCategory
    meaning: Annotated[str, Field(min_length=1)]
    example: Annotated[str, Field(min_length=1)]
    phrases: tuple[PhraseText, ...]
    when: tuple[ContextRule, ...] = ()
    unless: tuple[ContextRule, ...] = ()


class Element(Frozen):
    """One place in a phrase: any of `words` fits. One that `repeats` is always optional too."""

    words: frozenset[str]
    optional: bool = False
    repeats: bool = False


class Lexicon(Frozen):
    """Aliases, word lists and groups. Serialises to JSON in the order of the document, so equal ones digest alike.

    Raises a `ValidationError` that names the group and the phrase when a phrase cannot be read, names an unknown
    list, or could match no words at all.
    """

    aliases: dict[Word, Word]
    words: dict[str, tuple[Word, ...]]
    groups: dict[str, HedgeGroup]
    # Languages other than English, by code; a policy that was kept before has none.
    languages: dict[str, Language] = Field(default={}, exclude_if=lambda languages: not languages)

    @model_validator(mode="after")
    def _every_phrase_reads(self) -> Self:
        for name in (*self.words, *self.groups):
            if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
                raise ValueError(f"{name!r} is no name of a list or group: small letters, digits and _ only")
        if missing := sorted(RULE_LISTS - LATER_LISTS - self.words.keys()):
            raise ValueError(f"words: the rules need these lists too: {', '.join(missing)}")
        for name, words in self.words.items():
            for word in words:
                if not _WORD.fullmatch(word):
                    raise ValueError(f"words.{name}: {word!r} is not one small-letter word")
        self.phrases()
        return self

    def phrases(self) -> tuple[tuple[str, tuple[Element, ...]], ...]:
        """Every phrase as its group's name and its elements, in order. Raises ValueError saying what is wrong."""
        known: dict[str, Element] = {}  # most parts stand in many phrases
        found = []
        for name, group in self.groups.items():
            for phrase in group.phrases:
                try:
                    found.append((name, self._elements(phrase, known)))
                except ValueError as error:
                    raise ValueError(f"groups.{name}: phrase {phrase!r}: {error}") from error
        return tuple(found)

    def _elements(self, phrase: str, known: dict[str, Element]) -> tuple[Element, ...]:
        parts = phrase.split()
        for part in parts:
            if part not in known:
                known[part] = self._element(part)
        found = tuple(known[part] for part in parts)
        if all(element.optional for element in found):
            raise ValueError("would match no words at all")
        if len(found) > _MAX_ELEMENTS:
            raise ValueError(f"has more than {_MAX_ELEMENTS} elements")
        return found

    def _element(self, part: str) -> Element:
        # `.|?` ends in a question mark that is a word, `a|an?` in one that says the element may be left out.
        body = part[:-1] if len(part) > 1 and part[-1] in "?*" and part[-2] != "|" else part
        words: set[str] = set()
        for alternative in body.split("|"):
            match = _ALTERNATIVE.fullmatch(alternative)
            if match is None:
                raise ValueError(f"{part!r} has an empty alternative")
            if match["list"]:
                if match["list"] not in self.words:
                    raise ValueError(f"no word list is called {match['list']!r}")
                words.update(self.words[match["list"]])
            elif _WORD.fullmatch(alternative):
                words.add(alternative)
            else:
                raise ValueError(f"{alternative!r} is not one small-letter word")
        suffix = part[len(body) :]
        return Element(words=frozenset(words), optional=bool(suffix), repeats=suffix == "*")


@cache
def load_lexicon() -> Lexicon:
    """The built-in lexicon, read once."""
    return Lexicon.model_validate(read_data("hedges.toml") | {"languages": load_languages()})


class ListChange(Frozen):
    """What a policy adds to a word list, and what it takes out. Taking out what is not there is an error."""

    add: tuple[Word, ...] = ()
    remove: tuple[Word, ...] = ()


class GroupChange(Frozen):
    """What a policy changes in a built-in group; `enabled = false` takes the whole group out."""

    enabled: bool = True
    category: HedgeCategory | None = None
    add: tuple[PhraseText, ...] = ()
    remove: tuple[PhraseText, ...] = ()


class LexiconChanges(Frozen):
    """The `[lexicon]` table of a policy file: changes to what is built in, and groups of its own."""

    aliases: dict[Word, Word] = Field(default_factory=dict)
    words: dict[str, ListChange] = Field(default_factory=dict)
    groups: dict[str, GroupChange] = Field(default_factory=dict)
    new_groups: dict[str, HedgeGroup] = Field(default_factory=dict)


def extend_lexicon(base: Lexicon, changes: LexiconChanges | Mapping[str, object]) -> Lexicon:
    """`base` with the changes applied, validated anew. Raises ValueError naming what does not fit: a change to a
    group that is not there, a new group with a name that is taken, the removal of what is not in the list."""
    asked = LexiconChanges.model_validate(changes)
    if asked == LexiconChanges():
        return base
    words = dict(base.words)
    for name, change in asked.words.items():
        words[name] = _changed(f"words.{name}", words.get(name, ()), change.add, change.remove)
    groups = dict(base.groups)
    for name, edit in asked.groups.items():
        if name not in groups:
            raise ValueError(
                f"groups.{name}: there is no such group; a group of your own goes under new_groups"
            )
        if not edit.enabled:
            del groups[name]
            continue
        phrases = _changed(f"groups.{name}", groups[name].phrases, edit.add, edit.remove)
        category = edit.category or groups[name].category
        groups[name] = groups[name].model_copy(update={"phrases": phrases, "category": category})
    for name, group in asked.new_groups.items():
        if name in base.groups:
            raise ValueError(f"new_groups.{name}: the name is taken; change the group under groups")
        groups[name] = group
    aliases = {**base.aliases, **asked.aliases}
    return Lexicon(aliases=aliases, words=words, groups=groups, languages=base.languages)


def _changed(
    where: str, old: tuple[str, ...], add: tuple[str, ...], remove: tuple[str, ...]
) -> tuple[str, ...]:
    for item in remove:
        if item not in old:
            raise ValueError(f"{where}: {item!r} is not there to be removed")
    return (*(item for item in old if item not in remove), *(item for item in add if item not in old))
