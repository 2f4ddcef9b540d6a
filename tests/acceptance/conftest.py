"""The served gate, one for each module and database, and a browser to look at it with."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.cli_program import cli
from tests.acceptance.site import Site, open_site
from tests.browser import Chromium, open_chromium
from tests.running.on_path import forked_on_path


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
def upgraded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a database in which nothing is kept yet."""
    folder = tmp_path_factory.mktemp("upgraded")
    assert cli("db", "upgrade", cwd=folder).returncode == 0
    return folder


@pytest.fixture(scope="session")
def programs() -> Iterator[Path]:
    """A folder with a `vouchgate` that need not be loaded anew, and memory servers, for what starts programs by their
    names."""
    servers = {name: f"tests.stores.{name}_server" for name in ("recall", "changing", "notes")}
    with (
        tempfile.TemporaryDirectory(prefix="gg-") as short,
        forked_on_path(Path(short, "bin"), **servers) as folder,
    ):
        yield folder


@pytest.fixture(scope="session")
def sleeping_chromium() -> Iterator[Chromium]:
    """The browser of this test process."""
    with open_chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def chromium(sleeping_chromium: Chromium) -> Iterator[Chromium]:
    """The browser, awake for a module. Tests open windows through `windows`, which looks what went wrong in them."""
    with sleeping_chromium.awake():
        yield sleeping_chromium


@pytest.fixture
def windows(chromium: Chromium) -> Iterator[Chromium]:
    """The browser, whose windows are closed after the test. One in which a script failed, the
    Content-Security-Policy was broken, a dialog opened, a request failed or another origin was asked, fails it."""
    yield chromium
    assert chromium.close() == []
