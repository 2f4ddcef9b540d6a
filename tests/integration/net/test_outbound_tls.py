"""The outbound client and certificates, with authorities made for the test."""

from __future__ import annotations

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme

from tests.hostile import PUBLIC, Line, answer, client_of, failed, fetched, hostile, names, played
from vouchgate.ingest.net.fetched import Fetched, FetchFailed

NAME = "secure.example"
YESTERDAY = datetime.now(UTC) - timedelta(days=1)


def server_with(certificate: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    return context


def trusting(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


def ask(
    server: ssl.SSLContext, tls: ssl.SSLContext | None, url: str = f"https://{NAME}/"
) -> Fetched | FetchFailed:
    with hostile(lambda line, head: line.send(answer(b"safe")), server) as site:
        options = {} if tls is None else {"tls": tls}
        client = client_of(resolve=names({NAME: [PUBLIC]}), dial=played([], https=site.port), **options)
        outcome = asyncio.run(client.fetch(url))
        assert len(site.heads) == isinstance(outcome, Fetched), (
            "nothing is sent before the certificate is checked"
        )
    return outcome


@pytest.mark.parametrize(
    "url", [f"https://{NAME}/", f"https://{NAME}.:8443/", f"https://{PUBLIC}/", "https://[2a00::1]/"]
)
def test_a_certificate_for_the_name_that_was_asked_for(url: str) -> None:
    authority = trustme.CA()
    served: list[str | None] = []
    context = server_with(authority.issue_cert(NAME, PUBLIC, "2a00::1"))
    context.sni_callback = lambda sock, name, _: served.append(name)
    page = fetched(ask(context, trusting(authority), url))
    assert page.body == b"safe"
    assert served == [NAME if NAME in url else None], "the greeting names the host, and no address"


def test_certificates_that_are_not_good() -> None:
    authority = trustme.CA()
    good = authority.issue_cert(NAME)
    expired = authority.issue_cert(NAME, not_after=YESTERDAY)
    other = authority.issue_cert("other.example", "*.secure.example", "127.0.0.1")
    for server, trusted, word in (
        (expired, authority, "expired"),
        (other, authority, "Hostname mismatch"),
        (good, trustme.CA(), "certificate"),
        (good, None, "certificate"),
    ):
        outcome = failed(ask(server_with(server), None if trusted is None else trusting(trusted)), "tls")
        assert word in outcome.detail
        assert NAME in outcome.detail


def test_a_certificate_that_signs_itself(tmp_path: Path) -> None:
    alone = trustme.CA()
    alone.cert_pem.write_to_path(str(tmp_path / "cert"))
    alone.private_key_pem.write_to_path(str(tmp_path / "key"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert", tmp_path / "key")
    assert "self-signed" in failed(ask(context, None), "tls").detail


def test_an_old_protocol_is_not_spoken() -> None:
    context = server_with(trustme.CA().issue_cert(NAME))
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_3
    tls = ssl.create_default_context()
    tls.maximum_version = ssl.TLSVersion.TLSv1_2
    failed(ask(context, tls), "tls")


def test_a_server_that_speaks_no_tls() -> None:
    def behave(line: Line, head: bytes) -> None:
        line.send(answer(b"plain"))

    async def run(port: int) -> Fetched | FetchFailed:
        client = client_of(resolve=names({NAME: [PUBLIC]}), dial=played([], https=port))
        return await client.fetch(f"https://{NAME}/", seconds=0.5)

    # This server waits for the end of a header, which a TLS greeting seldom has: the client's time runs out first.
    with hostile(behave) as site:
        assert isinstance(outcome := asyncio.run(run(site.port)), FetchFailed)
    assert outcome.code in ("timeout", "tls")


def test_a_greeting_that_never_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vouchgate.ingest.net.transport.CONNECT_SECONDS", 0.3)
    with hostile(lambda line, head: line.hang()) as site:
        client = client_of(resolve=names({NAME: [PUBLIC]}), dial=played([], https=site.port))
        failed(asyncio.run(client.fetch(f"https://{NAME}/", seconds=20)), "timeout")


def test_from_https_to_http_is_refused() -> None:
    authority = trustme.CA()
    there = answer(status="301 Moved", headers=[f"Location: http://{NAME}/"])
    with hostile(lambda line, head: line.send(there), server_with(authority.issue_cert(NAME))) as site:
        client = client_of(
            resolve=names({NAME: [PUBLIC]}), dial=played([], https=site.port), tls=trusting(authority)
        )
        refused = failed(asyncio.run(client.fetch(f"https://{NAME}/")), "refused")
    assert refused.detail.endswith("it leads from https to http")
    assert refused.hops == (f"https://{NAME}/",)


def test_only_http_1_is_offered() -> None:
    authority = trustme.CA()
    context = server_with(authority.issue_cert(NAME))
    context.set_alpn_protocols(["h2", "http/1.1"])
    assert fetched(ask(context, trusting(authority))).body == b"safe"
