"""The lexicon: it reads, it refuses what it could not use, and a policy can change it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from vouchgate.ingest.checks import hedge
from vouchgate.ingest.checks.hedge import HedgeDetector, action_of
from vouchgate.ingest.claims.hedges import HedgeAction, HedgeCategory
from vouchgate.ingest.hedges import plain, reported, rules
from vouchgate.ingest.hedges.lexicon import (
    LATER_LISTS,
    RULE_LISTS,
    ContextRule,
    Lexicon,
    extend_lexicon,
    load_lexicon,
)

LEXICON = load_lexicon()


@pytest.mark.parametrize("name", LEXICON.groups)
def test_every_group_catches_its_own_example(name: str) -> None:
    group = LEXICON.groups[name]
    only = LEXICON.model_copy(update={"groups": {name: group}})
    assert group.category in {match.category for match in HedgeDetector(only).detect(group.example)}
    assert group.category in {match.category for match in HedgeDetector(LEXICON).detect(group.example)}


def test_it_survives_json_and_serialises_alike_every_time() -> None:
    written = LEXICON.model_dump_json()
    assert Lexicon.model_validate_json(written) == LEXICON
    assert load_lexicon.__wrapped__().model_dump_json() == written  # read anew


def test_every_rule_is_written_and_used() -> None:
    assert set(rules.RULES) == set(ContextRule)
    used = {rule for group in LEXICON.groups.values() for rule in (*group.when, *group.unless)}
    assert used == set(ContextRule)


def test_the_lists_that_the_code_uses_are_the_ones_it_asks_for() -> None:
    named: set[str] = set()
    for module in (rules, plain, reported, hedge):
        assert module.__file__ is not None
        source = Path(module.__file__).read_text("utf-8")
        named.update(re.findall(r'\b(?:w|_lists)\["(\w+)"\]', source))
    assert named == RULE_LISTS


def test_every_list_is_used() -> None:
    phrases = " ".join(phrase for group in LEXICON.groups.values() for phrase in group.phrases)
    assert set(LEXICON.words) == RULE_LISTS | set(re.findall(r"\{(\w+)\}", phrases))


def test_a_lexicon_that_was_kept_before_reads_as_it_did_then() -> None:
    kept = LEXICON.model_dump(mode="json")
    for name in LATER_LISTS:
        del kept["words"][name]
    earlier = Lexicon.model_validate(kept)
    assert earlier.model_dump(mode="json") == kept
    detector = HedgeDetector(earlier)
    for text in ('Ana said: "I think so"', "We are sure that it is empty.", "You may want to pass `null`."):
        assert action_of(detector.detect(text)) is HedgeAction.BLOCK
    for text in ("I th1nk it is empty.", "It is empty, `I guess`.", "It should not increase the load."):
        assert action_of(detector.detect(text)) is HedgeAction.CONTINUE


def group_of(*phrases: str, **more: Any) -> dict[str, Any]:
    return {"category": "technical_hedge", "meaning": "m", "example": "e", "phrases": list(phrases), **more}


@pytest.mark.parametrize(
    ("phrase", "complaint"),
    [
        ("{nobody} think", "no word list is called 'nobody'"),
        ("Maybe", "'Maybe' is not one small-letter word"),
        ("may be|", "empty alternative"),
        ("maybe? perhaps*", "match no words at all"),
        ("a b c d e f g h i j k l m n o p q", "more than 16 elements"),
        ("(maybe)", "not one small-letter word"),
        ("   ", "match no words at all"),
    ],
)
def test_a_phrase_that_cannot_be_used_is_named(phrase: str, complaint: str) -> None:
    document = LEXICON.model_dump(mode="json")
    document["groups"]["mine"] = group_of("fine", phrase)
    with pytest.raises(ValidationError) as refused:
        Lexicon.model_validate(document)
    said = str(refused.value)
    assert "groups.mine" in said
    assert repr(phrase) in said
    assert complaint in said


def test_other_faults_are_named_too() -> None:
    document = LEXICON.model_dump(mode="json")
    with pytest.raises(ValidationError, match="'Two Words' is no name"):
        Lexicon.model_validate({**document, "groups": {"Two Words": group_of("x")}})
    with pytest.raises(ValidationError, match=r"words\.be: 'am so' is not one"):
        Lexicon.model_validate({**document, "words": {**document["words"], "be": ["am so"]}})
    with pytest.raises(ValidationError, match="the rules need these lists too: soon"):
        Lexicon.model_validate(
            {
                **document,
                "words": {name: words for name, words in document["words"].items() if name != "soon"},
            }
        )
    with pytest.raises(ValidationError, match="no_such_rule"):
        Lexicon.model_validate({**document, "groups": {"mine": group_of("x", when=["no_such_rule"])}})
    with pytest.raises(ValidationError, match="colour"):
        Lexicon.model_validate({**document, "groups": {"mine": group_of("x", colour="red")}})


def test_a_policy_adds_and_removes_words_phrases_and_groups() -> None:
    changed = extend_lexicon(
        LEXICON,
        {
            "aliases": {"perchance": "perhaps", "tbc": "to be confirmed"},
            "words": {"opinion_verb": {"add": ["ween"], "remove": ["fancy"]}},
            "groups": {
                "frequency": {"add": ["as often as not"], "remove": ["mostly"]},
                "kind_of": {"enabled": False},
                "hopefully": {"category": "personal_speculation"},
            },
            "new_groups": {"house": group_of("to be confirmed", category="admitted_uncertainty")},
        },
    )
    detector = HedgeDetector(changed)

    def action(text: str) -> HedgeAction:
        return action_of(detector.detect(text))

    assert action("I ween the pump is old.") is HedgeAction.BLOCK
    assert action("I fancy the pump is old.") is HedgeAction.CONTINUE
    assert action("The pump mostly works.") is HedgeAction.CONTINUE
    assert action("The pump is kind of old.") is HedgeAction.CONTINUE
    assert action("Hopefully the pump holds.") is HedgeAction.BLOCK
    assert action("The date is tbc.") is HedgeAction.BLOCK
    assert detector.detect("The date is TBC.")[0].category is HedgeCategory.ADMITTED_UNCERTAINTY
    assert LEXICON == load_lexicon.__wrapped__()  # read anew: what was changed is a copy
    assert changed.model_dump_json() != LEXICON.model_dump_json()


def test_no_changes_change_nothing() -> None:
    assert json.loads(extend_lexicon(LEXICON, {}).model_dump_json()) == json.loads(LEXICON.model_dump_json())


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"groups": {"nowhere": {"add": ["x"]}}}, r"groups\.nowhere: there is no such group"),
        ({"groups": {"may": {"remove": ["might"]}}}, r"groups\.may: 'might' is not there to be removed"),
        ({"words": {"be": {"remove": ["art"]}}}, r"words\.be: 'art' is not there to be removed"),
        ({"new_groups": {"may": group_of("may")}}, r"new_groups\.may: the name is taken"),
        ({"groups": {"may": {"add": ["{gone} away"]}}}, r"groups\.may: phrase '\{gone\} away'"),
        ({"phrases": ["x"]}, "phrases"),
    ],
)
def test_a_change_that_does_not_fit_is_named(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        extend_lexicon(LEXICON, changes)
