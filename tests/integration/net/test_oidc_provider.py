"""When a provider is asked, how often, and what it may answer."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field

import pytest
from joserfc.jwk import RSAKey

from tests.identity_provider import CLIENT, RSA, SECRET, Provider, provider, signed_by, unsigned
from tests.web import Answer
from vouchgate.ingest.net.client import Outbound
from vouchgate.server.oidc import OidcClient, SignInFailed

GATE, COOKIE = "http://127.0.0.1:9", "c" * 43


@pytest.fixture
def idp() -> Iterator[Provider]:
    with provider() as opened:
        yield opened


@dataclass
class Gate:
    """A client with a watch of its own."""

    idp: Provider
    secret: str | None = SECRET
    seconds: float = 0.0
    client: OidcClient = field(init=False)

    def __post_init__(self) -> None:
        self.client = OidcClient(
            Outbound(allow_networks=[ipaddress.ip_network("127.0.0.1/32")], spacing_seconds=0.0),
            issuer=self.idp.issuer,
            client_id=CLIENT,
            client_secret=self.secret,
            public_url=GATE,
            label="x",
            timer=lambda: self.seconds,
        )

    async def signs_in(self) -> bool:
        """Whether somebody who goes there and comes back has proved who they are."""
        try:
            address = await self.client.address(COOKIE, again=False)
            code = self.idp.answer_of(address).partition("code=")[2].partition("&")[0]
            proof = await self.client.prove(COOKIE, code=code, said_issuer=None, again=False)
        except SignInFailed:
            return False
        assert proof.sub == self.idp.sub
        return True

    def asked(self, path: str) -> int:
        return self.idp.web.paths().count(path)


def run(idp: Provider, work: Callable[[Gate], Awaitable[None]]) -> None:
    async def main() -> None:
        await work(Gate(idp))

    asyncio.run(main())


def test_a_new_key_is_fetched_and_an_unknown_one_once_a_minute(idp: Provider) -> None:
    async def work(gate: Gate) -> None:
        for _ in range(2):
            assert await gate.signs_in()
        assert (gate.asked("GET /keys"), gate.asked("GET /.well-known/openid-configuration")) == (1, 1)
        new = RSAKey.generate_key(2048, {"kid": "rsa-2"})
        idp.sign, idp.publishes = signed_by(new, "RS256"), [RSA, new]
        gate.seconds = 59
        assert not await gate.signs_in()
        gate.seconds = 60
        assert await gate.signs_in()
        idp.sign = signed_by(RSAKey.generate_key(2048, {"kid": "rsa-3"}), "RS256")
        for _ in range(3):
            assert not await gate.signs_in()
        assert gate.asked("GET /keys") == 2
        # A key that is published no more is believed for an hour.
        idp.sign, idp.publishes = signed_by(RSA, "RS256"), [new]
        assert await gate.signs_in()
        gate.seconds += 3600
        assert not await gate.signs_in()

    run(idp, work)


@pytest.mark.parametrize(
    "describes",
    [
        {"issuer": "https://evil.example"},
        {"issuer": None},
        {"token_endpoint": "http://login.example.org/token"},
        {"jwks_uri": "file:///etc/passwd"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"code_challenge_methods_supported": ["plain"]},
        {"token_endpoint_auth_methods_supported": ["private_key_jwt"]},
        {"authorization_response_iss_parameter_supported": True},
    ],
)
def test_a_description_that_is_not_the_issuers_or_not_safe_is_not_followed(
    idp: Provider, describes: dict[str, object]
) -> None:
    async def work(gate: Gate) -> None:
        idp.describes = describes
        assert not await gate.signs_in()
        gate.seconds += 3600
        idp.describes = {}
        assert await gate.signs_in()

    run(idp, work)


@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/keys", "/token"])
def test_none_of_its_answers_is_read_beyond_a_bound_or_elsewhere(idp: Provider, path: str) -> None:
    async def work(gate: Gate) -> None:
        for odd in (
            Answer(" " * 262_145),
            Answer("", 302, {"Location": "/other"}),
            Answer("[]"),
            Answer("{}"),
        ):
            idp.web.routes[path] = odd
            assert not await gate.signs_in()
        assert "GET /other" not in idp.web.paths()
        idp.open()
        assert await gate.signs_in()

    run(idp, work)


def test_an_unsigned_token_is_no_reason_to_ask_for_keys(idp: Provider) -> None:
    async def work(gate: Gate) -> None:
        assert await gate.signs_in()
        gate.seconds = 600
        idp.sign = unsigned
        assert not await gate.signs_in()
        assert gate.asked("GET /keys") == 1

    run(idp, work)
