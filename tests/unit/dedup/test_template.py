"""Finer keys: two members of a template meet exactly when they differ in few enough words."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vouchgate.ingest.dedup.signature import SignatureKeys, signature_keys
from vouchgate.ingest.dedup.template import (
    MOST_PROBES,
    MOST_STORED,
    Template,
    is_member,
    member_keys,
    partner_keys,
    restore_template,
    shared_words,
    template_of,
)

THRESHOLD = Fraction(23, 25)
SIZES = [12, 16, 22, 23, 30, 35, 45, 46, 60, 100]
SPARE = [f"x{number}" for number in range(12)]


def _base(size: int) -> frozenset[str]:
    return frozenset(f"w{number}" for number in range(size))


def _keys(words: frozenset[str], scope: str = "fact") -> SignatureKeys:
    return signature_keys(words, scope, THRESHOLD)


def _template(size: int) -> Template:
    return template_of(_base(size), _keys(_base(size)))


@st.composite
def near(draw: st.DrawFn, size: int) -> frozenset[str]:
    """A set that differs from the base in some words."""
    gone = draw(st.sets(st.sampled_from(sorted(_base(size))), max_size=4))
    more = draw(st.sets(st.sampled_from(SPARE), max_size=6))
    return (_base(size) - gone) | more


@given(st.data(), st.sampled_from(SIZES))
def test_members_meet_exactly_within_the_allowed_difference(data: st.DataObject, size: int) -> None:
    template = _template(size)
    member, other = data.draw(near(size)), data.draw(near(size))
    if not is_member(template, member):
        return
    stored = member_keys(template, member)
    assert len(stored) == len(set(stored)) <= MOST_STORED
    for differ in range(template.most + 2):
        asked = partner_keys(template, other, differ)
        if asked is None:
            assert not is_member(template, other)  # only a stranger can need too many
            continue
        assert len(asked) <= MOST_PROBES
        meets = bool(set(stored) & set(asked))
        assert meets == (len(member ^ other) <= min(differ, template.most))


@given(st.data(), st.sampled_from(SIZES))
def test_every_member_can_be_asked_about(data: st.DataObject, size: int) -> None:
    template = _template(size)
    words = data.draw(near(size))
    if is_member(template, words):
        assert partner_keys(template, words, template.most) is not None


@given(st.data(), st.sampled_from(SIZES))
def test_only_equal_sets_share_the_first_key(data: st.DataObject, size: int) -> None:
    template = _template(size)
    one, other = data.draw(near(size)), data.draw(near(size))
    assert (member_keys(template, one)[0] == member_keys(template, other)[0]) == (one == other)


def test_what_would_take_too_many_keys_is_said_and_not_left_out() -> None:
    template = _template(100)
    stranger = _base(100) - {f"w{number}" for number in range(template.reach + template.most - 2)}
    assert partner_keys(template, stranger, template.most) is None


def test_a_set_too_far_away_has_no_partner_among_the_members() -> None:
    template = _template(30)
    far = _base(30) - {f"w{number}" for number in range(template.reach + template.most + 1)}
    assert partner_keys(template, far, template.most) == []


def test_shared_words_are_those_of_more_than_half() -> None:
    sets = [frozenset("abc"), frozenset("abd"), frozenset("aef"), frozenset("abg")]
    assert shared_words(sets) == frozenset("ab")
    assert shared_words([]) == frozenset()


WIDE = [
    (60, 7),
    (100, 7),
    (100, 8),
    (100, 9),
    (100, 10),
    (100, 30),
    (150, 8),
    (150, 13),
    (220, 20),
    (400, 60),
]


@pytest.mark.parametrize(("size", "slots"), WIDE)
@settings(max_examples=30)
@given(data=st.data())
def test_members_of_a_wide_template_meet_whenever_they_can_be_partners(
    data: st.DataObject, size: int, slots: int
) -> None:
    """Sets with many slots filled, of which two have some filled alike."""
    template = template_of(_base(size), _keys(_base(size)), wide=True)
    member = _base(size) | {f"a{number}" for number in range(slots)}
    changed = data.draw(st.sets(st.sampled_from(sorted(member)), max_size=template.most + 1))
    added = data.draw(st.integers(0, 3))
    other = (member - changed) | {f"b{number}" for number in range(added)}
    assert is_member(template, member)
    asked = partner_keys(template, other, template.most)
    assert asked is not None
    if len(member ^ other) <= template.most:
        assert set(asked) & set(member_keys(template, member))


@pytest.mark.parametrize(("size", "slots"), WIDE)
def test_partners_that_differ_in_the_slots_alone_meet(size: int, slots: int) -> None:
    """Every number of slots emptied and filled otherwise that partners can have, in several choices of words."""
    chance = random.Random(size + slots)  # noqa: S311  (a fixed sequence, not a secret)
    template = template_of(_base(size), _keys(_base(size)), wide=True)
    filled = [f"a{number}" for number in range(slots)]
    stored = set(member_keys(template, _base(size) | set(filled)))
    for emptied in range(min(slots, template.most) + 1):
        for added in range(template.most - emptied + 1):
            for _ in range(4):
                kept = chance.sample(filled, slots - emptied)
                other = _base(size) | set(kept) | {f"b{chance.getrandbits(30)}" for _ in range(added)}
                asked = partner_keys(template, other, emptied + added)
                assert asked is not None
                assert stored & set(asked), (emptied, added)


@given(data=st.data(), size=st.sampled_from([100, 150, 300]), slots=st.integers(7, 40))
def test_every_set_is_a_member_of_the_narrow_or_of_the_wide_template(
    data: st.DataObject, size: int, slots: int
) -> None:
    narrow, wide = (template_of(_base(size), _keys(_base(size)), wide=wide) for wide in (False, True))
    words = (_base(size) | {f"a{number}" for number in range(slots)}) - data.draw(near(size))
    assert is_member(narrow, words) is not is_member(wide, words)
    home = narrow if is_member(narrow, words) else wide
    assert set(partner_keys(home, words, 0) or ()) & set(member_keys(home, words))


@pytest.mark.parametrize("slots", [7, 8, 9, 12])
def test_a_wide_template_tells_unlike_members_apart(slots: int) -> None:
    template = template_of(_base(100), _keys(_base(100)), wide=True)
    one = _base(100) | {f"a{number}" for number in range(slots)}
    other = _base(100) | {f"b{number}" for number in range(slots)}
    assert not set(member_keys(template, one)) & set(partner_keys(template, other, template.most) or ())
    assert len(member_keys(template, one)) <= 1.3 * MOST_STORED


def test_a_template_is_the_same_in_every_process_and_of_one_kind() -> None:
    one = template_of(frozenset({"alpha", "beta"}), _keys(frozenset({"alpha", "beta"})))
    other = template_of(frozenset({"alpha", "beta"}), _keys(frozenset({"alpha", "beta"}), "decision"))
    assert one.id == ID_OF_ALPHA_BETA
    assert other.id != one.id
    assert restore_template(one.id, one.words, 1) == one
    wide = template_of(one.words, _keys(one.words), wide=True)
    assert restore_template(wide.id, wide.words, 1) == wide != one


# Another value means that every index must be rebuilt: raise `signature.VERSION`.
ID_OF_ALPHA_BETA = "tpl_daaf1ef0345d2d45c9803f7f0605f5ee"


@pytest.mark.parametrize("size", SIZES)
def test_slots_of_a_few_words_fit(size: int) -> None:
    """What real templates have: three slots of one or two words, where two claims may differ in few words."""
    template = _template(size)
    assert template.reach >= 6
    assert len(member_keys(template, _base(size) | {"x1", "x2", "x3"})) <= 8
