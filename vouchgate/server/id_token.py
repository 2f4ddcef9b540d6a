"""What an ID token of OpenID Connect proves: whom its issuer had sign in, and when. Pure.

Nothing else of it is believed: names, mail addresses, groups and roles are the provider's affair.
"""
# ruff: noqa: PLC0415  (joserfc takes a twentieth of a start; where nobody signs in at a provider it is not loaded)

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

from vouchgate.storage.identity.identities import valid_sub

if TYPE_CHECKING:
    from joserfc.jwk import ECKey, GuestProtocol, RSAKey

Key: TypeAlias = "RSAKey | ECKey"
# Asymmetric ones only. With `none`, or an HMAC keyed with what the provider publishes, anybody could sign.
ALGORITHMS = ("RS256", "PS256", "ES256", "ES384", "ES512")
LEEWAY = timedelta(seconds=60)  # by which two clocks may differ
MOST_CHARACTERS = 32_768
MOST_KEYS = 50


@dataclass(frozen=True, slots=True)
class Proof:
    """The issuer says that this is who signed in; `proved_at` is when they did so there, if it says."""

    sub: str
    proved_at: datetime | None


@dataclass(frozen=True, slots=True)
class Refusal:
    """The token proves nothing; `reason` is for the operator. `unknown_key`: newer keys may tell otherwise."""

    reason: str
    unknown_key: bool = False


@dataclass(frozen=True, slots=True)
class Expected:
    """What a token must say of itself."""

    issuer: str
    client_id: str
    nonce: str


class _NoKey(Exception):
    """None of the keys is the one that signed."""


def import_keys(document: Sequence[Any]) -> tuple[Key, ...]:
    """The public RSA and EC keys of a key set that are there to check signatures; others are left out."""
    from joserfc.errors import JoseError
    from joserfc.jwk import ECKey, JWKRegistry, RSAKey

    keys: list[Key] = []
    for each in document[:MOST_KEYS]:
        if (
            not isinstance(each, dict)
            or each.get("kty") not in ("RSA", "EC")
            or each.get("use", "sig") != "sig"
        ):
            continue
        try:
            key = JWKRegistry.import_key(each)
        except (JoseError, ValueError, TypeError, KeyError):
            continue
        if isinstance(key, RSAKey | ECKey) and not key.is_private:
            keys.append(key)
    return tuple(keys)


def check(text: str, keys: Sequence[Key], expected: Expected, now: datetime) -> Proof | Refusal:
    """Whether the token holds, by OpenID Connect Core 1.0, section 3.1.3.7. Never raises."""
    from joserfc import jwt
    from joserfc.errors import JoseError
    from joserfc.jwk import ECKey, RSAKey

    def find_key(signed: GuestProtocol) -> Key:
        header = signed.headers()
        kind = ECKey if header["alg"].startswith("ES") else RSAKey
        fitting = [key for key in keys if isinstance(key, kind) and header.get("kid") in (None, key.kid)]
        if len(fitting) != 1:
            raise _NoKey
        return fitting[0]

    if len(text) > MOST_CHARACTERS:
        return Refusal("it is too long")
    try:
        claims = jwt.decode(text, find_key, algorithms=ALGORITHMS).claims
    except _NoKey:
        return Refusal("it is signed with a key that the provider does not publish", unknown_key=True)
    except (JoseError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        return Refusal(f"it is not signed as it should be ({type(error).__name__})")
    problem = _problem(claims, expected, now)
    if problem is not None:
        return Refusal(problem)
    proved_at = claims.get("auth_time")
    return Proof(claims["sub"], None if proved_at is None else datetime.fromtimestamp(proved_at, UTC))


def _problem(claims: dict[str, Any], expected: Expected, now: datetime) -> str | None:
    audience, nonce = claims.get("aud"), claims.get("nonce")
    audiences = [audience] if isinstance(audience, str) else audience
    earliest, latest = (now - LEEWAY).timestamp(), (now + LEEWAY).timestamp()
    problem = None
    if claims.get("iss") != expected.issuer:
        problem = "it is of another issuer"
    elif not isinstance(audiences, list) or expected.client_id not in audiences:
        problem = "it is for another client"
    elif claims.get("azp", None if len(audiences) > 1 else expected.client_id) != expected.client_id:
        problem = "it was handed to another client"
    elif not isinstance(nonce, str) or not hmac.compare_digest(nonce.encode(), expected.nonce.encode()):
        problem = "it is of another sign-in"
    elif not _is_time(claims.get("exp")) or claims["exp"] <= earliest:
        problem = "it is expired"
    elif not _is_time(claims.get("iat")) or claims["iat"] > latest:
        problem = "it does not say when it was made, or a time to come"
    elif not _is_time(claims.get("nbf", 0)) or claims.get("nbf", 0) > latest:
        problem = "it does not hold yet"
    elif not _is_time(claims.get("auth_time", 0)) or claims.get("auth_time", 0) > latest:
        problem = "it says that they signed in at a time to come, or at none"
    elif not valid_sub(claims.get("sub")):
        problem = "it does not say who signed in"
    return problem


def _is_time(value: object) -> bool:
    """Seconds since 1970 that a date can be made of."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 2**35
