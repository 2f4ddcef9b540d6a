"""A model may choose the words between the quotations of a proof, and nothing else."""

from __future__ import annotations

import pytest

from vouchgate.harvest.wording import objection
from vouchgate.ingest.corroboration.decision import conclude
from vouchgate.ingest.corroboration.history import SearchHistory, SearchTask
from vouchgate.ingest.corroboration.hits import Reading, hits_of
from vouchgate.ingest.corroboration.proof import quotations, with_words
from vouchgate.ingest.data.policy_file import load_policy

POLICY = load_policy()
CLAIM = "The archive in Lund holds 40 million pages."
ONE = "Visitors learn that the archive in Lund holds 40 million pages, most of them letters."
TWO = "Since its *last* “extension” the archive in Lund holds 40 million pages."


def proof_of(*texts: str) -> str:
    readings = [
        Reading(text=text, url=f"https://a{n}.example/", verified=True) for n, text in enumerate(texts)
    ]
    history = SearchHistory(hits=hits_of(CLAIM, readings, POLICY))
    return conclude(SearchTask(claim=CLAIM), history, POLICY).proof


PROOF = proof_of(ONE, TWO)
GOOD = f'A visitor is told: "{ONE}" The guide’s words (https://a1.example/) are "{TWO}"'


def test_what_a_proof_quotes_is_what_its_sources_say() -> None:
    assert set(quotations(PROOF)) == {ONE, TWO}


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        GOOD.replace(" million ", "\n million  ").upper(),
        f"“{ONE}” and «{TWO}»",
        f"{ONE} It's the archives' own word. {TWO}",
        f"'{ONE} … {TWO}'",
    ],
    ids=["as asked", "case and space", "other marks", "no marks", "both in one pair"],
)
def test_the_words_between_the_quotations_are_free(text: str) -> None:
    assert objection(text, PROOF) == ""


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f'It says: "{ONE}"', "left a quotation out"),
        (GOOD.replace("40", "400"), "left a quotation out"),
        (GOOD.replace(", most of them letters", ""), "left a quotation out"),
        (f"{GOOD} Its head adds: “We are proud.”", "what no source says"),
        (f"{GOOD} Its head adds: 'We are proud.'", "what no source says"),
        (f'{GOOD} She "is" proud.', "what no source says"),
        (f'"{ONE} And all are digital." {TWO}', "what no source says"),
        (f'"fake {ONE} fake" {TWO}', "what no source says"),
        (f"{GOOD} See https://evil.example/.", "address that no source has"),
    ],
)
def test_a_quotation_that_is_missing_or_made_up_is_seen(text: str, why: str) -> None:
    assert why in objection(text, PROOF)


def test_answer_sources_and_gaps_stay_those_of_the_template() -> None:
    told = with_words(PROOF, "## In other words\n\nWords.")
    kept = [line for line in PROOF.splitlines() if not line.startswith("  > ")]
    assert [line for line in kept if line not in told.splitlines()] == []
    assert told.index("# Not decided") < told.index("Words.") < told.index("## Voice 1")
    assert quotations(told) == ()
