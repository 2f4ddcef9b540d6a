"""What an ID token must say before it proves anything."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc.jwk import ECKey, RSAKey

from tests.identity_provider import EC, RSA, Sign, keyed_with_what_is_published, signed_by, unsigned
from vouchgate.server.id_token import Expected, Proof, Refusal, check, import_keys

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
AT = int(NOW.timestamp())
EXPECTED = Expected("https://login.example.org", "gate", "n" * 43)
GOOD: dict[str, Any] = {
    "iss": EXPECTED.issuer,
    "sub": "248289761001",
    "aud": "gate",
    "exp": AT + 60,
    "iat": AT,
    "nonce": EXPECTED.nonce,
}
KEYS = import_keys([RSA.as_dict(private=False), EC.as_dict(private=False)])
RS256 = signed_by(RSA, "RS256")
OTHER = RSAKey.generate_key(2048, {"kid": "rsa-1"})


def judged(claims: dict[str, Any], sign: Sign = RS256) -> Proof | Refusal:
    given = {name: value for name, value in (GOOD | claims).items() if value is not None}
    return check(sign(given), KEYS, EXPECTED, NOW)


@pytest.mark.parametrize(
    "sign", [RS256, signed_by(RSA, "PS256"), signed_by(EC, "ES256"), signed_by(EC, "ES256", kid="ec-1")]
)
def test_a_good_one_proves_who_it_is_and_nothing_else(sign: Sign) -> None:
    more = {
        "auth_time": AT - 5,
        "email": "ann@example.org",
        "roles": ["admin"],
        "aud": ["gate", "x"],
        "azp": "gate",
    }
    assert judged({}, sign) == Proof("248289761001", None)
    assert judged(more, sign) == Proof("248289761001", datetime.fromtimestamp(AT - 5, UTC))


@pytest.mark.parametrize(
    ("claims", "says"),
    [
        ({"iss": "https://login.example.org/"}, "another issuer"),
        ({"iss": None}, "another issuer"),
        ({"aud": "other"}, "another client"),
        ({"aud": ["other"]}, "another client"),
        ({"aud": {"gate": 1}}, "another client"),
        ({"aud": ["gate", "other"]}, "handed to another client"),
        ({"azp": "other"}, "handed to another client"),
        ({"nonce": "m" * 43}, "another sign-in"),
        ({"nonce": None}, "another sign-in"),
        ({"nonce": 7}, "another sign-in"),
        ({"exp": AT - 60}, "expired"),
        ({"exp": None}, "expired"),
        ({"exp": True}, "expired"),
        ({"exp": "9999999999"}, "expired"),
        ({"exp": 1e300}, "expired"),
        ({"iat": AT + 61}, "time to come"),
        ({"iat": None}, "does not say when"),
        ({"nbf": AT + 61}, "not hold yet"),
        ({"auth_time": AT + 61}, "signed in at a time to come"),
        ({"auth_time": "now"}, "signed in at a time to come"),
        ({"sub": None}, "who signed in"),
        ({"sub": ""}, "who signed in"),
        ({"sub": 7}, "who signed in"),
        ({"sub": "x" * 256}, "who signed in"),
        ({"sub": "a\x00"}, "who signed in"),
    ],
)
def test_one_that_says_something_else_proves_nothing(claims: dict[str, Any], says: str) -> None:
    answer = judged(claims)
    assert isinstance(answer, Refusal)
    assert says in answer.reason
    assert not answer.unknown_key


def test_only_what_the_provider_signed_with_a_key_of_its_own_counts() -> None:
    for sign in (unsigned, keyed_with_what_is_published, signed_by(OTHER, "RS256")):
        answer = judged({}, sign)
        assert isinstance(answer, Refusal)
        assert "not signed as it should be" in answer.reason
    for unknown in (
        signed_by(RSA, "RS256", kid="another"),
        signed_by(ECKey.generate_key("P-384"), "ES384", kid="rsa-1"),
    ):
        answer = judged({}, unknown)
        assert isinstance(answer, Refusal)
        assert answer.unknown_key
    assert isinstance(check(RS256(GOOD), (), EXPECTED, NOW), Refusal)
    head, body, signature = RS256(GOOD).split(".")
    forged = base64.urlsafe_b64encode(json.dumps(GOOD | {"sub": "admin"}).encode()).rstrip(b"=").decode()
    assert isinstance(check(f"{head}.{forged}.{signature}", KEYS, EXPECTED, NOW), Refusal)
    assert isinstance(check(f"{head}.{body}.", KEYS, EXPECTED, NOW), Refusal)


def test_of_a_key_set_only_public_keys_for_signatures_are_taken() -> None:
    rsa = RSA.as_dict(private=False)
    odd = [
        {"kty": "oct", "k": "AAAA", "kid": "o"},
        {**rsa, "use": "enc"},
        RSA.as_dict(private=True),
        {"kty": "RSA"},
        7,
        {},
    ]
    assert import_keys(odd) == ()
    assert len(import_keys([*odd, rsa])) == 1
    assert len(import_keys([rsa] * 1000)) <= 50


@given(st.text() | st.lists(st.text(), min_size=3, max_size=3).map(".".join))
def test_any_text_is_judged(text: str) -> None:
    assert isinstance(check(text, KEYS, EXPECTED, NOW), Refusal)


@pytest.mark.parametrize(
    "header",
    [
        "[" * 20_000,
        '{"alg":7}',
        '{"alg":["RS256"]}',
        '{"alg":"RS256","kid":[]}',
        "{}",
        "7",
        '{"alg":"RS256","crit":["b64"],"b64":false}',
    ],
)
def test_any_header_is_judged(header: str) -> None:
    part = base64.urlsafe_b64encode(header.encode()).rstrip(b"=").decode()
    assert isinstance(check(f"{part}.e30.AAAA", KEYS, EXPECTED, NOW), Refusal)
