"""A database with much in it, made once for a module and kind, and copied for each of its tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import copied
from vouchgate.storage.store import Store


@pytest.fixture(scope="module")
def kept(module_database_url: str) -> str:
    """The database to copy from: what `test_reindex.fill` fills."""
    from tests.integration.dedup.test_reindex import HERE, fill, open_for

    opened = open_for(module_database_url, HERE)
    fill(opened)
    opened.close()
    return module_database_url


@pytest.fixture
def filled_url(kept: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A copy of it."""
    yield from copied(request, kept, tmp_path)


@pytest.fixture
def filled(filled_url: str) -> Iterator[Store]:
    """That copy, opened."""
    from tests.integration.dedup.test_reindex import HERE, open_for

    opened = open_for(filled_url, HERE)
    yield opened
    opened.close()
