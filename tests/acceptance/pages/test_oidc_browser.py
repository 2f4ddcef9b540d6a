"""Signing in at a provider that is not ours, in a real browser, and again for what weighs more."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect
from sqlalchemy import update

from tests.acceptance.site import Site, open_site
from tests.browser import Chromium, Window, is_for_everybody
from vouchgate.ingest.claims.people import Membership, Role
from vouchgate.storage.identity import identities, memberships, persons
from vouchgate.storage.tables.doors import SessionRow

SUB = "Ann's sub"


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@contextmanager
def provider_of_others() -> Iterator[str]:
    """The provider of the package oidc-provider-mock, which is made of authlib: its issuer."""
    port = free_port()
    arguments = [sys.executable, "-W", "ignore", "-m", "oidc_provider_mock", "--port", str(port)]
    with subprocess.Popen(
        [*arguments, "--require-nonce", "true"], stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        try:
            said = []
            for line in process.stderr:
                said.append(line)
                if "running on" in line:
                    break
            else:
                raise RuntimeError("".join(said))
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.communicate(timeout=30)


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    with provider_of_others() as at:
        yield at


@pytest.fixture(scope="module", params=["sqlite"])
def site(tmp_path_factory: pytest.TempPathFactory, issuer: str) -> Iterator[Site]:
    folder, port = tmp_path_factory.mktemp("oidc"), free_port()
    environment = {
        "VOUCHGATE_OIDC_ISSUER": issuer,
        "VOUCHGATE_OIDC_CLIENT_ID": "gate",
        "VOUCHGATE_OIDC_CLIENT_SECRET": "secret",
        "VOUCHGATE_OIDC_LABEL": "Example Login",
        "VOUCHGATE_PUBLIC_URL": f"http://127.0.0.1:{port}",
        "VOUCHGATE_ALLOW_NETWORKS": "127.0.0.1/32",
    }
    with open_site(f"sqlite:///{folder}/vouchgate.db", environment=environment, port=port) as opened:
        yield opened


def sign_in_there(page: Page, issuer: str, sub: str = SUB) -> None:
    page.get_by_role("link", name="Sign in with Example Login").click()
    page.wait_for_url(f"{issuer}/**")
    page.get_by_placeholder("sub").fill(sub)
    page.get_by_role("button", name="Authorize").click()


def open_window(windows: Chromium, site: Site, issuer: str, *, javascript: bool) -> Window:
    window = windows.window(site.running.url, javascript=javascript, calm=True)
    # What the provider's own pages are is not ours to look at, and that we were not known is told with a 403.
    window.expect(issuer, "status of 403", "https://")
    window.context.route("https://**", lambda route: route.abort())  # they want a style from elsewhere
    return window


def test_ann_signs_in_acts_and_is_asked_again_before_what_weighs_more(
    site: Site, windows: Chromium, issuer: str
) -> None:
    now, owner = datetime.now(UTC), site.owner()
    window = open_window(windows, site, issuer, javascript=True)
    page = window.go("/review")
    is_for_everybody(page)
    sign_in_there(page, issuer)
    expect(page.get_by_role("heading", name="Not known here")).to_be_visible()
    command = f"--issuer {issuer} --sub 'Ann'\"'\"'s sub'"
    expect(page.locator("code")).to_contain_text(command)
    is_for_everybody(page)

    ann = persons.create(site.store, "ann", actor="test", now=now)
    memberships.create_owner(site.store, owner, actor="test", now=now)
    role = Membership(owner_id=owner, member_id=ann.id, role=Role.REVIEWER, since=now)
    memberships.grant(site.store, role, actor="test")
    identities.link(site.store, ann, issuer, SUB, actor="test", now=now)
    page = window.go("/review/publishers?publisher=example.com")
    assert urlsplit(page.url).path == "/review/sign-in"
    sign_in_there(page, issuer)
    expect(page.get_by_role("button", name="Ban it")).to_be_visible()

    page.get_by_role("link", name="Sessions").click()
    expect(page.get_by_text("this one")).to_be_visible()
    is_for_everybody(page)

    table = SessionRow.metadata.tables["session"]
    long_ago = update(table).values(proved_at=datetime(2026, 1, 1, tzinfo=UTC))
    site.store.writer.run((), lambda c: c.execute(long_ago)).result()
    page = window.go("/review/publishers?publisher=example.com")
    page.get_by_role("button", name="Ban it").click()
    expect(page.get_by_role("heading", name="Sign in again")).to_be_visible()
    is_for_everybody(page)
    sign_in_there(page, issuer)
    page.get_by_role("button", name="Ban it").click()
    expect(page.get_by_role("button", name="Take it back")).to_be_visible()


def test_it_needs_no_script(site: Site, windows: Chromium, issuer: str) -> None:
    page = open_window(windows, site, issuer, javascript=False).go("/review/sign-in")
    sign_in_there(page, issuer, "nobody")
    expect(page.get_by_role("heading", name="Not known here")).to_be_visible()
