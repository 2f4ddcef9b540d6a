"""Credentials are found, whole, and nothing else is."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.secrets.credentials import HARMLESS, HEX, UPPER, VALUES, made, pem
from vouchgate.cli.demo.samples import SAMPLES
from vouchgate.gate.masking import mask_claim
from vouchgate.ingest.checks.secrets import judge, mask, secret_detector
from vouchgate.ingest.claims.claim import SecretMatch, Verdict
from vouchgate.ingest.claims.texts import CONTENT
from vouchgate.wire import ClaimIn

HERE = Path(__file__).parent
DETECTOR = secret_detector()
SAID = "We found that {} is what the old host uses."


def sentences() -> Iterator[tuple[str, str, str]]:
    """(kind, text, secret) of every value."""
    for kind, values in VALUES.items():
        for value in values:
            around, secret = value if isinstance(value, tuple) else ("{}", value)
            yield kind, SAID.format(around.format(secret)), secret


SENTENCES = list(sentences())


@pytest.mark.parametrize(
    ("kind", "text", "secret"), SENTENCES, ids=[f"{kind} {n}" for n, (kind, _, _) in enumerate(SENTENCES)]
)
def test_every_kind_is_found_and_wholly_masked(kind: str, text: str, secret: str) -> None:
    found = DETECTOR.find(text)
    assert [match.kind for match in found] == [kind]
    masked = mask(text, found)
    assert masked == text.replace(secret, "*" * len(secret))
    assert DETECTOR.find(masked) == ()


def test_of_a_private_key_without_an_end_no_part_stays() -> None:
    text = SAID.format(pem().partition("-----END")[0])
    masked = mask(text, DETECTOR.find(text))
    assert masked.startswith("We found that ****")
    assert not set(masked[14:].split("*")) & set(pem().splitlines())


def test_every_kind_that_can_be_found_has_a_value_here() -> None:
    assert set(VALUES) == set(DETECTOR.kinds)


@pytest.mark.parametrize("text", HARMLESS)
def test_talk_about_credentials_is_none(text: str) -> None:
    assert DETECTOR.find(text) == ()
    assert DETECTOR.find(SAID.format(text)) == ()


def test_no_claim_and_no_page_of_this_project_holds_one() -> None:
    """Some hundred thousand words, and every string of the tests but what is made up as a secret."""
    root, found = HERE.parents[2], []
    own = {"test_secrets.py", "test_secrets_kept_nowhere.py", "test_webhooks.py"}
    texts: list[tuple[str, str]] = [("samples", str(sample)) for sample in SAMPLES]
    for page in (*root.glob("*.md"), *root.glob("docs/**/*.md")):
        texts += ((page.name, part) for part in page.read_text("utf-8").split("\n\n"))
    for module in root.glob("tests/**/test_*.py"):
        if module.name in own:
            continue
        strings = ast.walk(ast.parse(module.read_text("utf-8")))
        texts += (
            (module.name, n.value)
            for n in strings
            if isinstance(n, ast.Constant) and isinstance(n.value, str)
        )
    for line in (root / "tests" / "acceptance" / "whole" / "examples.jsonl").read_text("utf-8").splitlines():
        texts.append(("examples", line))
    for name, text in texts:
        found += [(name, match.kind, text[: match.start][-60:]) for match in DETECTOR.find(text)]
    assert found == []
    assert sum(len(text.split()) for _, text in texts) > 34_000


@pytest.mark.parametrize(
    "disguised",
    [
        "ghp_" + made(10) + "\u200b" + made(26, seed=8),  # an invisible character
        "".join(chr(ord(c) + 0xFEE0) for c in "ghp_" + made(36)),  # full-width letters
        "ghp_" + made(35).replace("a", "\u0430") + "\u0430",  # a Cyrillic a
        "ghp_&#" + str(ord("x")) + ";" + made(35),  # an entity
        "gh\u00adp_" + made(36),
    ],
)
def test_a_disguise_hides_nothing(disguised: str) -> None:
    text = SAID.format(disguised)
    found = DETECTOR.find(text)
    assert [match.kind for match in found] == ["GitHub token"]
    assert mask(text, found) == SAID.format("*" * len(disguised))


def test_two_are_two_and_one_in_the_other_is_one() -> None:
    one, two = "ghp_" + made(36), "glpat-" + made(20)
    text = f"token={one}, and {two}"
    found = DETECTOR.find(text)
    assert [text[match.start : match.end] for match in found] == [one, two]


@given(st.text(max_size=300), st.sampled_from([secret for _, _, secret in SENTENCES]), st.text(max_size=300))
def test_offsets_hold_whatever_stands_around(before: str, secret: str, after: str) -> None:
    text = f"{before} {secret} {after}"
    found = DETECTOR.find(text)
    masked = mask(text, found)
    assert len(masked) == len(text)
    kept = {at for match in found for at in range(match.start, match.end)}
    assert all(masked[at] == ("*" if at in kept else text[at]) for at in range(len(text)))


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "part",
    [
        *(
            "a",
            "AKIA",
            "-----BEGIN RSA PRIVATE KEY-----",
            "-----BEGIN PRIVATE KEY-----\n",
            "password=",
            "password: ",
        ),
        *(
            "sk-",
            "sk-proj-",
            "://a:",
            "a://",
            "a+",
            "eyJ",
            "eyJaaaaaaaaaaa.",
            ".eyJaaaaaaaa",
            "aws",
            "aws key ",
            "M",
        ),
        *(
            "MNO-",
            "12345678:",
            "gl",
            "hooks.slack.com/services/",
            "bearer ",
            "?sig=",
            "1Q~",
            ".",
            "~.",
            "a@",
            "\\n",
        ),
        *(
            "token token: ",
            "token=1a",
            "p\u200b",
            "Private-Lines: 1\n",
            "dp.st.",
            "github_pat_",
            "Version: \n",
            "1 ",
        ),
        *(
            "password for a ",
            "secret of the ",
            "password ",
            'key: "',
            "xoxb-1-",
            "discord.com/api/webhooks/1",
        ),
    ],
)
def test_hostile_text_of_eight_times_the_largest_claim_is_read(part: str) -> None:
    """What takes quadratic time takes minutes at this size, and the time-out ends it."""
    text = (part * (65_536 // len(part) + 1))[:65_536]
    assert all(match.end <= len(text) for match in DETECTOR.find(text))


def sent(**fields: object) -> ClaimIn:
    body = {"content": "The orders are kept for ten years.", "memory_type": "fact", "source": "user"} | fields
    return ClaimIn.model_validate(body)


def test_every_part_of_a_claim_is_masked() -> None:
    token, secret = "ghp_" + made(36), "hunter2x"
    masked, found = mask_claim(
        DETECTOR,
        sent(
            content=f"Use {token}.",
            metadata={"login": {"password": secret, "hints": ["none", f"or {token}"]}, token: 1, "n": 2.5},
            citations=[
                "ADR-0003",
                f"https://bob:{secret}@x.example/a",
                {"type": "url", "value": f"http://x/{token}"},
            ],
            delivery={"sink": "glpat-" + made(20, HEX), "place": f"a/{token}", "data": {"token": token}},
        ),
    )
    assert [(match.where, match.start) for match in found] == [
        ("content", 4),
        ("metadata.login.password", 0),
        ("metadata.login.hints[1]", 3),
        ("metadata (a name)", 0),
        ("citations[1]", 12),
        ("citations[2]", 9),
        ("delivery.sink", 0),
        ("delivery.place", 2),
        ("delivery.data.token", 0),
    ]
    kept = masked.model_dump_json()
    assert token not in kept
    assert secret not in kept
    assert masked.citations == ["ADR-0003"]
    assert masked.content == f"Use {'*' * 40}."
    assert masked.metadata["n"] == 2.5


def test_names_that_only_a_credential_told_apart_stay_two() -> None:
    names = ["ghp_" + made(36, seed=seed) for seed in (1, 2)]
    masked, _ = mask_claim(DETECTOR, sent(metadata={names[0]: 1, names[1]: 2}))
    assert sorted(json.dumps(value) for value in masked.metadata.values()) == ["1", "2"]


def test_a_claim_without_any_is_the_very_same() -> None:
    one = sent(metadata={"ticket": 7, "password": "required"})
    assert mask_claim(DETECTOR, one) == (one, ())
    assert mask_claim(DETECTOR, one)[0] is one


def test_the_finding_names_kind_and_place_and_nothing_else() -> None:
    found = DETECTOR.find("Use AKIA" + made(16, UPPER) + " for it.")
    finding = judge(found)
    assert finding is not None
    assert finding.verdict is Verdict.FAIL
    assert finding.message == "The claim holds a credential: AWS access key in its text (characters 4 to 24)."
    assert finding.facts["found"] == [{"kind": "AWS access key", "where": CONTENT, "start": 4, "end": 24}]
    assert judge(()) is None


def test_what_is_to_go_may_hold_one_but_not_the_place_it_goes_from() -> None:
    in_text = SecretMatch(kind="password", where=CONTENT, start=0, end=7)
    in_place = SecretMatch(kind="password", where="delivery.place", start=0, end=7)
    assert [getattr(judge([one], removes=True), "verdict", None) for one in (in_text, in_place)] == [
        Verdict.DOUBT,
        Verdict.FAIL,
    ]
