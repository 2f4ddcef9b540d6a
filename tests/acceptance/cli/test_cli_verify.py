"""`vouchgate verify` on every type of citation, against local servers that answer as the real ones do."""

from __future__ import annotations

import json
from pathlib import Path

from tests.acceptance.cli_program import cli
from tests.integration.sources import test_registries as registries
from tests.repos import TestRepository
from tests.web import Answer, Route, web_server

ADR = "# 1. Queues are bounded\n\n## Status\n\nAccepted\n\n## Decision\n\nEvery queue has a length.\n"
ISSUE = {
    "number": 12,
    "title": "The queue never drains",
    "state": "open",
    "updated_at": "2026-02-03T10:00:00Z",
}
ROUTES: dict[str, Route] = {
    "/page": Answer("<html><title>Queues</title><body><p>A queue has a length of 512.</p></body></html>"),
    "/repos/acme/app/issues/12": Answer(json.dumps(ISSUE), headers=registries.JSON),
    "/repos/acme/app": Answer('{"full_name": "acme/app"}', headers=registries.JSON),
    "/api/handles/10.5555/abc.1": registries.answer(registries.HANDLE),
    "/10.5555/abc.1": registries.answer(registries.WORK, headers=registries.CSL),
    registries.PAPER: registries.feed(),
    "/rfc/rfc9999.json": registries.answer(registries.RECORD),
    "/rfc/rfc9999.txt": registries.TEXT,
    "/pep-0008/": registries.pep_page(),
    "/api/cve/CVE-2024-12345": registries.answer(registries.cve_record()),
}


def test_every_type_exists_or_is_missing(tmp_path: Path) -> None:
    repository = TestRepository(tmp_path / "work")
    commit = repository.commit("Bound every queue", {"docs/adr/0001-queues.md": ADR})
    with web_server(dict(ROUTES)) as web:
        bases = ("GITHUB", "DOI", "ARXIV", "RFC", "PEP", "CVE")
        environment = {f"VOUCHGATE_{base}_URL": web.url for base in bases}
        environment |= {
            "VOUCHGATE_ALLOW_NETWORKS": "127.0.0.0/8",
            "VOUCHGATE_CITATION_NETWORKS": web.place,
            "VOUCHGATE_GITHUB_REPO": "acme/app",
        }
        there = {
            "ADR-1": "ADR-001",
            commit[:10]: f"commit:{commit[:7]}",
            f"{web.url}/page": f"{web.url}/page",
            "#12": "issue:acme/app#12",
            "10.5555/abc.1": "doi:10.5555/abc.1",
            "arXiv:2101.00001": "arxiv:2101.00001",
            "RFC 9999": "RFC 9999",
            "PEP 8": "PEP 8",
            "CVE-2024-12345": "CVE-2024-12345",
        }
        done = cli("verify", "--json", *there, "--repo", repository.path, cwd=tmp_path, env=environment)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        assert {
            row["citation"]["value"]: row["reading"].get("source_id", row["reading"]["detail"])
            for row in rows
        } == there
        assert {row["verdict"] for row in rows} == {"in force", "exists"}
        assert all(row["reading"]["excerpt"] for row in rows)
        assert done.returncode == 0

        made_up = ["ADR-7", "0123abcdef45", f"{web.url}/other", "#13", "RFC 7", "PEP 9"]
        done = cli("verify", "--json", *made_up, "--repo", repository.path, cwd=tmp_path, env=environment)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        assert [row["verdict"] for row in rows] == ["missing"] * len(made_up)
        assert done.returncode == 1
