"""The provider that people sign in with by OpenID Connect: where to send their browser, and what it says of them when
they are back. Authorization code flow with PKCE; the provider is the operator's setting, never a visitor's.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar
from urllib.parse import quote_plus, urlencode

from pydantic import BaseModel, ConfigDict, ValidationError

from vouchgate.ingest.net.client import Outbound
from vouchgate.ingest.net.fetched import Fetched
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.sources.answers import Clock, utc_now
from vouchgate.server.id_token import Expected, Key, Proof, Refusal, check, import_keys
from vouchgate.settings import Settings, is_safe_origin, plain
from vouchgate.sources.setup import outbound_of
from vouchgate.storage.identity.identities import derived

CALLBACK = "/review/sign-in/oidc/back"
LATELY = timedelta(minutes=15)  # how long ago they may have signed in there who are to prove it anew

_SECONDS = 10.0  # for each of the three documents of a provider
_BYTES = 262_144  # of each
_KEPT_SECONDS = 3600.0  # how long description and keys are believed
_REFETCH_SECONDS = 60.0  # so often at most, when a token names an unknown key
_AT_ONCE = 8


class SignInFailed(Exception):
    """The provider did not say who signed in; `reason` is for the operator. `unreachable`: it may later."""

    def __init__(self, reason: str, *, unreachable: bool = False) -> None:
        super().__init__(reason)
        self.unreachable = unreachable


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


_Shape = TypeVar("_Shape", bound=_Answer)


class _Description(_Answer):
    """OpenID Connect Discovery 1.0, as far as it is needed."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    token_endpoint_auth_methods_supported: list[str] = ["client_secret_basic"]
    code_challenge_methods_supported: list[str] = ["S256"]
    authorization_response_iss_parameter_supported: bool = False


class _KeySet(_Answer):
    keys: list[Any]


class _Tokens(_Answer):
    id_token: str


class OidcClient:
    """One provider. Belongs to one event loop; `clock` gives the time now, aware, `timer` monotonic seconds."""

    def __init__(
        self,
        outbound: Outbound,
        *,
        issuer: str,
        client_id: str,
        client_secret: str | None,
        public_url: str,
        label: str,
        clock: Clock = utc_now,
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        self.issuer = issuer
        self.label = label
        self._outbound = outbound
        self._client_id = client_id
        self._client_secret = client_secret
        self._redirect_uri = public_url + CALLBACK
        self._clock = clock
        self._timer = timer
        self._lock = asyncio.Lock()
        self._described: tuple[_Description, float] | None = None
        self._keys: tuple[tuple[Key, ...], float] | None = None

    async def address(self, secret: str, *, again: bool) -> str:
        """Where to send the browser that holds this secret of a sign-in. `again`: the provider is to ask them who they
        are even if it knows. Raises SignInFailed."""
        description = await self._description()
        verifier = derived(secret, "verifier").encode()
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier).digest()).rstrip(b"=").decode()
        asked = {
            "response_type": "code",
            "client_id": self._client_id,
            "redirect_uri": self._redirect_uri,
            "scope": "openid",
            "state": derived(secret, "state"),
            "nonce": derived(secret, "nonce"),
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        if again:
            asked |= {"prompt": "login", "max_age": str(int(LATELY.total_seconds()))}
        joint = "&" if "?" in description.authorization_endpoint else "?"
        return f"{description.authorization_endpoint}{joint}{urlencode(asked)}"

    async def prove(self, secret: str, *, code: str, said_issuer: str | None, again: bool) -> Proof:
        """Who came back with this code from the sign-in of this secret. Raises SignInFailed."""
        description = await self._description()
        # RFC 9207: an answer of another provider is not brought to this one.
        wanted = self.issuer if description.authorization_response_iss_parameter_supported else None
        if (said_issuer or wanted) not in (None, self.issuer) or (wanted and not said_issuer):
            raise SignInFailed("the answer is of another issuer")
        text = await self._redeem(description, secret, code)
        expected = Expected(self.issuer, self._client_id, derived(secret, "nonce"))
        proof = check(text, await self._known_keys(description), expected, self._clock())
        if isinstance(proof, Refusal) and proof.unknown_key:
            keys = await self._known_keys(description, _REFETCH_SECONDS)
            proof = check(text, keys, expected, self._clock())
        if isinstance(proof, Refusal):
            raise SignInFailed(f"its ID token does not hold: {proof.reason}")
        if again and (proof.proved_at is None or proof.proved_at < self._clock() - LATELY):
            raise SignInFailed("it did not have them sign in anew, or does not say so (auth_time)")
        return proof

    async def _redeem(self, description: _Description, secret: str, code: str) -> str:
        fields = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._redirect_uri,
            "code_verifier": derived(secret, "verifier"),
        }
        hidden: dict[str, str] = {}
        ways = description.token_endpoint_auth_methods_supported
        if self._client_secret is None:
            fields["client_id"] = self._client_id
        elif "client_secret_basic" in ways:
            pair = f"{quote_plus(self._client_id)}:{quote_plus(self._client_secret)}"  # RFC 6749, 2.3.1
            hidden["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        elif "client_secret_post" in ways:
            fields |= {"client_id": self._client_id, "client_secret": self._client_secret}
        else:
            raise SignInFailed("it takes no client secret, neither as client_secret_basic nor _post")
        body = urlencode(fields).encode()
        return (await self._fetch(description.token_endpoint, _Tokens, body, hidden)).id_token

    async def _description(self) -> _Description:
        async with self._lock:
            if self._described is None or self._timer() - self._described[1] >= _KEPT_SECONDS:
                address = f"{self.issuer.rstrip('/')}/.well-known/openid-configuration"
                found = await self._fetch(address, _Description)
                places = (found.authorization_endpoint, found.token_endpoint, found.jwks_uri)
                if found.issuer != self.issuer or not all(map(is_safe_origin, places)):
                    raise SignInFailed("it describes another issuer, or a place without https")
                if "S256" not in found.code_challenge_methods_supported:
                    raise SignInFailed("it does not know PKCE with S256")
                self._described = found, self._timer()
            return self._described[0]

    async def _known_keys(
        self, description: _Description, older_than: float = _KEPT_SECONDS
    ) -> tuple[Key, ...]:
        """The provider's keys, fetched again when those there are older than so many seconds."""
        async with self._lock:
            if self._keys is None or self._timer() - self._keys[1] >= older_than:
                found = await self._fetch(description.jwks_uri, _KeySet)
                self._keys = import_keys(found.keys), self._timer()
            return self._keys[0]

    async def _fetch(
        self, url: str, shape: type[_Shape], body: bytes | None = None, hidden: dict[str, str] | None = None
    ) -> _Shape:
        answer = await self._outbound.fetch(
            url,
            method="GET" if body is None else "POST",
            headers={"Accept": "application/json"}
            | ({} if body is None else {"Content-Type": "application/x-www-form-urlencoded"}),
            secret_headers=hidden,
            body=body,
            max_bytes=_BYTES,
            seconds=_SECONDS,
            follow=False,
        )
        if not isinstance(answer, Fetched):
            raise SignInFailed(f"{answer.url}: {answer.detail}", unreachable=True)
        if answer.status != 200:
            raise SignInFailed(f"{url} answered {answer.status}", unreachable=answer.status >= 500)
        if not answer.whole:
            raise SignInFailed(f"{url} answered more than {_BYTES} bytes", unreachable=True)
        try:
            return shape.model_validate_json(answer.body)
        except ValidationError as error:
            fields = ", ".join(".".join(map(str, each["loc"])) or "JSON" for each in error.errors())
            raise SignInFailed(f"{url} answered something else ({fields})", unreachable=True) from error


def open_oidc(settings: Settings, policy: Policy) -> OidcClient | None:
    """The provider that the settings name; None when they name none."""
    if settings.oidc_issuer is None or settings.oidc_client_id is None or settings.public_url is None:
        return None
    return OidcClient(
        outbound_of(settings, policy, _AT_ONCE, 0.0),
        issuer=settings.oidc_issuer,
        client_id=settings.oidc_client_id,
        client_secret=plain(settings.oidc_client_secret),
        public_url=settings.public_url,
        label=settings.oidc_label,
    )
