"""The served gate, one for each module and database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.acceptance.site import Site, open_site


@pytest.fixture(scope="module")
def site(module_database_url: str) -> Iterator[Site]:
    """A gate with the built-in policy and no repository."""
    with open_site(module_database_url) as opened:
        yield opened


@pytest.fixture
def owner(site: Site) -> str:
    """An owner nobody else uses."""
    return site.owner()
