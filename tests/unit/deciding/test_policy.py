"""The policy document: what is built in, what may be laid over it, and what is refused."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from vouchgate.ingest.checks.personal import KINDS
from vouchgate.ingest.claims.claim import MemoryType, Source
from vouchgate.ingest.claims.decision import Tier
from vouchgate.ingest.data.policy_file import PolicyError, load_policy
from vouchgate.ingest.policy import Policy


def written(folder: Path, text: str) -> Path:
    path = folder / "policy.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_built_in_policy_is_balanced() -> None:
    policy = load_policy()
    assert policy.preset == "balanced"
    assert policy.confidence_floor == 0.5
    assert policy.threshold == Fraction(23, 25)
    assert policy.missing_citation_tier is Tier.QUEUED


def test_strict_stores_what_is_stated_and_no_conversation(tmp_path: Path) -> None:
    policy = load_policy(written(tmp_path, 'preset = "strict"'))
    assert policy.confidence_floor == 0.8
    assert (policy.spoken_of, policy.unlisted_pages) == ("queue", "queue")
    assert policy.auto_approve_ai_synthesis
    assert not any(policy.stated_in_conversation.values())


def test_where_all_is_reviewed_no_rule_stores_what_a_model_says(tmp_path: Path) -> None:
    policy = load_policy(written(tmp_path, 'preset = "review_all"'))
    assert not policy.auto_approve_ai_synthesis
    assert (policy.spoken_of, policy.confidence_floor) == (load_policy().spoken_of, 0.5)


@pytest.mark.parametrize(("required", "spoken_of"), [("true", "queue"), ("false", "store")])
def test_a_file_of_before_there_was_spoken_of_still_loads(
    tmp_path: Path, required: str, spoken_of: str
) -> None:
    policy = load_policy(written(tmp_path, f"require_relevance = {required}"))
    assert policy.spoken_of == spoken_of
    assert "require_relevance" not in policy.document


def test_own_keys_lie_over_the_preset(tmp_path: Path) -> None:
    policy = load_policy(
        written(tmp_path, 'preset = "strict"\nconfidence_floor = 0.6\n[queue]\nper_owner = 5\n')
    )
    assert policy.confidence_floor == 0.6
    assert policy.queue.per_owner == 5
    assert policy.queue.total == load_policy().queue.total
    assert policy.spoken_of == "queue"


def test_stored_document_is_the_policy_again(tmp_path: Path) -> None:
    policy = load_policy(
        written(tmp_path, "[stated_in_conversation]\ndecision = []\n[reputation.scores]\nunlisted = 0.4\n")
    )
    again = Policy.model_validate_json(policy.document)
    assert again == policy
    assert again.digest == policy.digest
    assert again.stated_in_conversation[MemoryType.DECISION] == ()
    assert again.reputation.groups == load_policy().reputation.groups


def test_where_is_looked_stands_in_the_document_as_it_did(tmp_path: Path) -> None:
    assert load_policy().harvest == "local"
    documents = {
        where: load_policy(written(tmp_path, f'harvest = "{where}"')).document
        for where in ("repositories", "off")
    }
    assert '"harvest":"repositories"' in documents["repositories"] and "harvest" not in documents["off"]


def test_policies_of_before_personal_data_was_looked_for_let_it_pass_and_keep_their_digest(
    tmp_path: Path,
) -> None:
    policy = load_policy()
    assert policy.personal_data.kinds("mask") == {"payment_card", "us_social_security"}
    assert policy.personal_data.kinds("queue") == {"iban"}
    assert policy.personal_data.kinds("allow") == {"phone", "mail"}
    document = {
        name: value for name, value in policy.model_dump(mode="json").items() if name != "personal_data"
    }
    before = Policy.model_validate(document)
    assert before.personal_data.kinds("allow") == set(KINDS)
    assert "personal_data" not in before.document
    for text in ('[personal_data]\niban = "block"', '[personal_data]\npasport = "mask"'):
        with pytest.raises(PolicyError, match="personal_data"):
            load_policy(written(tmp_path, text))


def test_digest_changes_with_any_value(tmp_path: Path) -> None:
    digests = {load_policy().digest}
    for text in (
        "duplicate_threshold = 0.9",
        "[limits]\ncitations = 3",
        'banned_domains = ["spam.example"]',
        '[values]\nnegations = ["not"]',
        '[reputation.domains]\n"example.com" = "primary"',
        '[lexicon.words.number]\nadd = ["umpteen"]'
        if "number" in load_policy().lexicon.words
        else "deadline_seconds = 1",
    ):
        digests.add(load_policy(written(tmp_path, text)).digest)
    assert len(digests) == 7
    assert load_policy().digest in digests


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("confidence_flor = 0.5", "confidence_flor"),
        ("confidence_floor = 1.5", "confidence_floor"),
        ("duplicate_threshold = 0.5", "duplicate_threshold"),
        ('preset = "lax"', "balanced, review_all, strict"),
        ('trusted_sources = ["ai_synthesis"]', "vouch for itself"),
        ('[stated_in_conversation]\nfact = ["ai_synthesis"]', "vouch for itself"),
        ('missing_citation_tier = "tier_1"', "missing_citation_tier"),
        ("[limits]\ncontent_characters = 9000", "content_characters"),
        ("[score]\nreachable = 0.9", "sum to 1"),
        ('[lexicon.groups.no_such_group]\nadd = ["i reckon"]', "no_such_group"),
        ("[presets.strict]\nconfidence_floor = 0.1", "presets"),
        ("[queue]\nper_agent = true", "queue.per_agent: must be a number"),
        ("[judge]\nenabled = 1", "judge.enabled: must be true or false"),
        ("[queue]\nper_agent = 99999999999999999999", "queue.per_agent: must be at most"),
        ("[judge]\nquestions_per_day = 1e19", "judge.questions_per_day: must be at most"),
        (f"a = {'[' * 9999}", "TOML"),
        ("not toml at all", "TOML"),
    ],
)
def test_bad_policy_names_what_is_wrong(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(PolicyError, match=says):
        load_policy(written(tmp_path, text))


def test_policy_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"absent\.toml"):
        load_policy(tmp_path / "absent.toml")


def test_trusted_sources_are_those_of_the_contract() -> None:
    assert set(load_policy().trusted_sources) == {
        Source.USER,
        Source.DOCUMENTATION,
        Source.ADR,
        Source.COMMIT,
        Source.MANUAL,
    }
