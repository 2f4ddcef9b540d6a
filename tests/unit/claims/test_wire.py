"""The shapes that come in: what is taken and what is refused, before anything is looked at."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from vouchgate.wire import ClaimIn

GOOD: dict[str, Any] = {"content": "The cache is warm", "memory_type": "fact", "source": "user"}


def test_smallest_claim() -> None:
    sent = ClaimIn.model_validate(GOOD)
    assert sent.user_id is None
    assert sent.citations == []
    assert sent.metadata == {}


@pytest.mark.parametrize(
    "change",
    [
        {"content": ""},
        {"content": " \t\n\u3000"},
        {"content": "a\x00b"},
        {"content": "x" * 8193},
        {"content": 5},
        {"content": None},
        {"memory_type": "rumour"},
        {"source": "rumour"},
        {"surprise": 1},
        {"user_id": ""},
        {"user_id": " "},
        {"user_id": "x" * 201},
        {"user_id": "a\x00"},
        {"citations": ["ADR-1"] * 21},
        {"citations": [{"type": "adr"}]},
        {"citations": "ADR-1"},
        {"metadata": []},
        {"metadata": {"deep": {"a": ["\x00"]}}},
        {"metadata": {"\x00": 1}},
        {"metadata": {"n": float("inf")}},
        {"metadata": {"n": float("nan")}},
        {"validity_horizon": 1700000000},
        {"validity_horizon": "tomorrow"},
        {"validity_horizon": "1700000000"},
        {"validity_horizon": "0001-01-01T00:00:00+14:00"},
        {"validity_horizon": True},
    ],
)
def test_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ClaimIn.model_validate(GOOD | change)


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("2027-01-31T00:00:00Z", datetime(2027, 1, 31, tzinfo=UTC)),
        ("2027-01-31T02:00:00+02:00", datetime(2027, 1, 31, tzinfo=UTC)),
        ("2027-01-31T00:00:00", datetime(2027, 1, 31, tzinfo=UTC)),
        ("2027-01-31", datetime(2027, 1, 31, tzinfo=UTC)),
    ],
)
def test_validity_horizon_is_a_time_in_utc(text: str, means: datetime) -> None:
    sent = ClaimIn.model_validate(GOOD | {"validity_horizon": text})
    assert sent.validity_horizon == means
    assert sent.validity_horizon is not None
    assert sent.validity_horizon.tzinfo is UTC
