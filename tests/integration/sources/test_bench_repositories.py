"""The bench of claims about repositories: what it prints is what the gate decides."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench import repositories
from bench.fireweed_gate import load_fireweed

RECORD = """# 1. Keep sessions in Redis

## Status

Accepted

## Decision

We will keep sessions in Redis.
"""
ROWS = [
    {"repo": "acme/app", "claim": "We keep sessions in Redis (ADR-0001).", "kind": "T"},
    {"repo": "acme/app", "claim": "We keep sessions in Oracle (ADR-0001).", "kind": "F-value"},
    {"repo": "acme/app", "claim": "We keep sessions in Redis (ADR-0007).", "kind": "F-nonexist"},
]


def test_true_and_false_claims_are_counted_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = tmp_path / "acme__app" / "docs" / "adr"
    records.mkdir(parents=True)
    (records / "0001-sessions.md").write_text(RECORD, "utf-8")
    asked: list[tuple[str, str]] = []

    def admits(claim: str, evidence: str) -> bool:
        asked.append((claim, evidence))
        return bool(evidence)

    repositories.run(ROWS, tmp_path, admits)
    assert capsys.readouterr().out.splitlines() == [
        "  stored: true 1 of 1 (1.000), false 0 of 2 (0.000)",
        "  fireweed: true 1 of 1 (1.000), false 1 of 2 (0.500)",
    ]
    assert asked == [
        ("We keep sessions in Redis .", RECORD),
        ("We keep sessions in Oracle .", RECORD),
        ("We keep sessions in Redis .", ""),
    ]


def test_a_rival_that_is_not_installed_is_said_to_be_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "fireweed.grounding", None)
    assert load_fireweed() is None
    assert "fireweed-mcp is not installed" in capsys.readouterr().out
