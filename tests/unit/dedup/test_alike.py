"""Which waiting claims are one row: templates and wordings, and what must never be one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.dedup.alike import Alike, Likeness, find_alike

WORDS = load_policy().values
DEPOT = (
    "Orders ship from the Leipzig depot.",
    "The Leipzig depot ships orders.",
    "Orders are shipped from the depot in Leipzig.",
    "Shipping of orders happens from the Leipzig depot.",
)
TICKETS = tuple(
    f"Ticket #{48210 + n} was closed on {1 + n} May by {name}." for n, name in enumerate(("Ann", "Bob", "Ann", "Cy"))
)  # fmt: skip
REPLICAS = (("till", 3), ("search", 5), ("basket", 2))
SERVICES = tuple(f"The {name} service runs {count} replicas in eu-west-1." for name, count in REPLICAS)


def alike(*texts: str) -> list[Alike]:
    return find_alike([(None, text) for text in texts], WORDS)


def test_four_wordings_are_one_and_the_fullest_stands_for_them() -> None:
    (found,) = alike(*DEPOT)
    assert found.likeness is Likeness.WORDINGS
    assert found.members == (3, 0, 1, 2)
    (found,) = alike("Backups run on the quay host.", "Backups run weekly on the quay host.")
    assert found.members == (1, 0)  # it says all that the other one says, and more


@pytest.mark.parametrize(("texts", "differing"), [(TICKETS, "#48210"), (SERVICES, "till")])
def test_a_template_is_one_and_says_what_differs(texts: tuple[str, ...], differing: str) -> None:
    (found,) = alike(*texts)
    assert found.likeness is Likeness.TEMPLATE
    assert found.members == tuple(range(len(texts)))
    start, end = found.differs[0][0]
    assert texts[0][start:end] == differing


@pytest.mark.parametrize(
    "texts",
    [
        # Of one thing only one value can hold.
        [f"The Oslo shop opens at {hour}:00." for hour in (7, 8, 9)],
        [f"The nightly job ended at 03:{minute} on {minute} May." for minute in (10, 12, 15)],
        TICKETS[:2],  # of two nobody knows whether one was meant to be the other
        # The same words in other roles.
        ["The gateway calls the ledger.", "The ledger calls the gateway."],
        ["The gateway calls the ledger.", "The gateway is called by the ledger."],
        ["Alice reports to Bob in Paris.", "Bob reports to Alice in Paris."],
        ["Data is copied from staging to production.", "Data is copied from production to staging."],
        # What qualifies a claim makes another one of it.
        ["Backups run on the quay host.", "Backups do not run on the quay host."],
        ["Backups run before deploys of the quay.", "Backups run after deploys of the quay."],
        ["All invoices are checked by hand.", "Some invoices are checked by hand."],
        ["Deploys must be approved by the owner.", "Deploys may be approved by the owner."],
        ["The API allows 100 calls a minute.", "The API allows 1000 calls a minute."],
        ["Ann owns the billing ledger.", "Ann owns the shipping ledger."],
    ],
)
def test_what_is_not_the_same_stays_apart(texts: list[str]) -> None:
    assert alike(*texts) == []


def test_only_claims_of_one_key_are_compared_and_long_ones_stand_alone() -> None:
    assert find_alike(list(enumerate(DEPOT)), WORDS) == []
    assert alike(*(text + " It was seen so." * 40 for text in DEPOT)) == []


@given(st.lists(st.sampled_from((*DEPOT, *TICKETS, *SERVICES)) | st.text(max_size=60), max_size=14))
def test_each_claim_is_in_one_group_at_most(texts: list[str]) -> None:
    found = alike(*texts)
    members = [place for one in found for place in one.members]
    assert len(members) == len(set(members))
    assert all(len(one.members) > 1 and len(one.members) == len(one.differs) for one in found)
