"""The served gate, one for each module and database, and a browser to look at it with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.acceptance.site import Site, open_site
from tests.browser import Chromium, open_chromium


@pytest.fixture(scope="module")
def site(module_database_url: str) -> Iterator[Site]:
    """A gate with the built-in policy and no repository."""
    with open_site(module_database_url) as opened:
        yield opened


@pytest.fixture
def owner(site: Site) -> str:
    """An owner nobody else uses."""
    return site.owner()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Chromium]:
    """A running browser. Tests open windows through `windows`, which looks what went wrong in them."""
    with open_chromium() as opened:
        yield opened


@pytest.fixture
def windows(chromium: Chromium) -> Iterator[Chromium]:
    """The browser, whose windows are closed after the test. One in which a script failed, the
    Content-Security-Policy was broken, a dialog opened, a request failed or another origin was asked, fails it."""
    yield chromium
    assert chromium.close() == []
