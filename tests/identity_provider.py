"""A small OpenID Connect provider over HTTP, which can be told to do wrong."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey

from tests.web import Answer, Asked, WebServer, web_server

CLIENT, SECRET = "the gate", "s3cr3t: 100%"
JSON = {"Content-Type": "application/json"}
RSA = RSAKey.generate_key(2048, {"kid": "rsa-1", "use": "sig"})
EC = ECKey.generate_key("P-256", {"kid": "ec-1", "use": "sig"})

Sign = Callable[[dict[str, Any]], str]


def signed_by(key: RSAKey | ECKey, alg: str, **header: Any) -> Sign:
    """Signs claims with a key."""
    return lambda claims: jwt.encode({"alg": alg, "kid": key.kid, **header}, claims, key, algorithms=[alg])


def _part(value: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def unsigned(claims: dict[str, Any]) -> str:
    """`alg: none`."""
    return f"{_part({'alg': 'none', 'kid': RSA.kid})}.{_part(claims)}."


def keyed_with_what_is_published(claims: dict[str, Any]) -> str:
    """`alg: HS256`, with the public key as its secret. Libraries refuse to make one."""
    text = f"{_part({'alg': 'HS256', 'kid': RSA.kid})}.{_part(claims)}"
    mac = hmac.new(RSA.as_pem(private=False), text.encode(), hashlib.sha256).digest()
    return f"{text}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"


@dataclass
class Provider:
    """Whoever comes is `sub`, and has just signed in. `claims` are laid over those of the next ID tokens, None takes
    one out; `sign` signs them. `publishes` are the keys it tells of. A code is taken once, unless it is `lax`."""

    web: WebServer
    sub: str = "sub-1"
    claims: dict[str, Any] = field(default_factory=dict)
    sign: Sign = field(default_factory=lambda: signed_by(RSA, "RS256"))
    publishes: list[Any] = field(default_factory=lambda: [RSA, EC])
    describes: dict[str, Any] = field(default_factory=dict)
    lax: bool = False
    codes: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def issuer(self) -> str:
        return self.web.url

    def answer_of(self, address: str, **more: str) -> str:
        """Where the browser is sent back to that came to this address of authorization."""
        parts = urlsplit(address)
        asked = dict(parse_qsl(parts.query))
        assert f"{parts.scheme}://{parts.netloc}{parts.path}" == f"{self.issuer}/authorize"
        assert (asked["response_type"], asked["client_id"], asked["scope"]) == ("code", CLIENT, "openid")
        assert asked["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(16)
        self.codes[code] = asked
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state'], **more})}"

    def open(self) -> None:
        """Answers from now on."""
        self.web.routes.update(
            {"/.well-known/openid-configuration": self._describe, "/keys": self._keys, "/token": self._token}
        )

    def _describe(self, _: Asked) -> Answer:
        at = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            **self.describes,
        }
        return Answer(json.dumps(at), headers=JSON)

    def _keys(self, _: Asked) -> Answer:
        keys = [key if isinstance(key, dict) else key.as_dict(private=False) for key in self.publishes]
        return Answer(json.dumps({"keys": keys}), headers=JSON)

    def _token(self, asked: Asked) -> Answer:
        fields = {name: values[0] for name, values in parse_qs(asked.body.decode()).items()}
        pair = base64.b64encode(urlencode({CLIENT: SECRET}).replace("=", ":").encode()).decode()
        granted = self.codes.get(fields["code"])
        if not self.lax:
            self.codes.pop(fields["code"], None)
        challenge = hashlib.sha256(fields["code_verifier"].encode()).digest()
        if (
            asked.headers.get("authorization") != f"Basic {pair}"
            or granted is None
            or fields["redirect_uri"] != granted["redirect_uri"]
            or base64.urlsafe_b64encode(challenge).rstrip(b"=").decode() != granted["code_challenge"]
        ):
            return Answer('{"error": "invalid_grant"}', 400, JSON)
        return Answer(
            json.dumps(
                {"access_token": "x", "token_type": "Bearer", "id_token": self.sign(self.claims_for(granted))}
            ),
            headers=JSON,
        )

    def claims_for(self, asked: Mapping[str, str]) -> dict[str, Any]:
        """What an ID token says."""
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "sub": self.sub,
            "aud": CLIENT,
            "exp": now + 300,
            "iat": now,
            "auth_time": now,
        }
        claims |= {"nonce": asked["nonce"], **self.claims}
        return {name: value for name, value in claims.items() if value is not None}


@contextmanager
def provider() -> Iterator[Provider]:
    """Serves until the end of the block."""
    with web_server() as web:
        made = Provider(web)
        made.open()
        yield made
