"""Settings: where they come from, in which order, and what stops the start."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.settings import (
    DATABASE,
    EARLIER_DATABASE,
    EarlierDatabase,
    SettingsError,
    database_to_open,
    load_settings,
)
from vouchgate.sources.repositories import RepositoryError, open_repositories
from vouchgate.sources.setup import open_sources


@pytest.fixture(autouse=True)
def _somewhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in os.environ:
        if name.startswith("VOUCHGATE_"):
            monkeypatch.delenv(name)


def test_defaults() -> None:
    settings = load_settings({})
    assert settings.database_url == "sqlite:///vouchgate.db"
    assert settings.adr_dirs == ()  # they are found by themselves
    assert settings.repo == ()


def test_a_database_by_its_earlier_name_is_not_passed_over() -> None:
    settings, named = load_settings({}), load_settings({}, database_url="sqlite:///other.db")
    assert database_to_open(settings, "earlier.db") == f"sqlite:///{DATABASE}"
    Path("earlier.db").touch()
    with pytest.raises(
        EarlierDatabase, match=rf"earlier\.db: rename it to {DATABASE}, .*DATABASE_URL=sqlite:///earlier"
    ):
        database_to_open(settings, "earlier.db")
    assert database_to_open(named, "earlier.db") == "sqlite:///other.db"
    Path(DATABASE).touch()
    assert database_to_open(settings, "earlier.db") == f"sqlite:///{DATABASE}"
    assert EARLIER_DATABASE.startswith("ground")


def test_flags_win_over_environment_and_environment_over_file(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("vouchgate.toml").write_text('database_url = "sqlite:///file.db"\nport = 1\nhost = "::1"\n', "utf-8")
    monkeypatch.setenv("VOUCHGATE_DATABASE_URL", "sqlite:///environment.db")
    monkeypatch.setenv("VOUCHGATE_PORT", "2")
    settings = load_settings(os.environ, port=3)
    assert (settings.host, settings.database_url, settings.port) == ("::1", "sqlite:///environment.db", 3)


def test_lists_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOUCHGATE_REPO", os.pathsep.join(["/a", "/b"]))
    monkeypatch.setenv("VOUCHGATE_ADR_DIRS", "adr, docs/decisions")
    monkeypatch.setenv("VOUCHGATE_ALLOW_NETWORKS", "127.0.0.0/8,::1/128")
    monkeypatch.setenv("VOUCHGATE_CITATION_NETWORKS", "10.1.0.0/16, 127.0.0.1:8443,[::1]:8000,fd00::/8")
    settings = load_settings(os.environ)
    assert settings.citation_networks == ("10.1.0.0/16", "127.0.0.1:8443", "[::1]:8000", "fd00::/8")
    assert settings.repo == (Path("/a"), Path("/b"))
    assert settings.adr_dirs == ("adr", "docs/decisions")
    assert settings.allow_networks == ("127.0.0.0/8", "::1/128")


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("VOUCHGATE_DATABSE_URL", "x", "VOUCHGATE_DATABSE_URL"),
        ("VOUCHGATE_PORT", "eighty", "VOUCHGATE_PORT"),
        ("VOUCHGATE_PORT", "70000", "VOUCHGATE_PORT"),
        ("VOUCHGATE_ALLOW_NETWORKS", "10.0.0.0/99", "VOUCHGATE_ALLOW_NETWORKS"),
        ("VOUCHGATE_CITATION_NETWORKS", "10.0.0.0/8,127.0.0.1:0", "VOUCHGATE_CITATION_NETWORKS"),
        ("VOUCHGATE_CITATION_NETWORKS", "::1:80", "VOUCHGATE_CITATION_NETWORKS"),
        ("VOUCHGATE_CITATION_NETWORKS", "localhost:80", "VOUCHGATE_CITATION_NETWORKS"),
        ("VOUCHGATE_CITATION_NETWORKS", "10.0.0.1/8", "VOUCHGATE_CITATION_NETWORKS"),
        ("VOUCHGATE_GITHUB_REPO", "no-slash", "VOUCHGATE_GITHUB_REPO"),
        ("VOUCHGATE_MEMORY_FILES", "notes.md,/etc/notes.md", "VOUCHGATE_MEMORY_FILES: '/etc/notes.md' is no"),
        ("VOUCHGATE_OFFICIAL_PATHS", "../policies", "VOUCHGATE_OFFICIAL_PATHS"),
        ("VOUCHGATE_OIDC_ISSUER", "http://login.example.org", "VOUCHGATE_OIDC_ISSUER"),
        ("VOUCHGATE_OIDC_ISSUER", "https://me@login.example.org", "VOUCHGATE_OIDC_ISSUER"),
        ("VOUCHGATE_OIDC_ISSUER", "https://login.example.org?a=b", "VOUCHGATE_OIDC_ISSUER"),
        ("VOUCHGATE_OIDC_ISSUER", "https://[", "VOUCHGATE_OIDC_ISSUER"),
        ("VOUCHGATE_OIDC_ISSUER", "https://login.example.org", "VOUCHGATE_OIDC_CLIENT_ID"),
        ("VOUCHGATE_OIDC_CLIENT_ID", "gate", "VOUCHGATE_OIDC_ISSUER"),
        ("VOUCHGATE_OIDC_CLIENT_SECRET", "x", "VOUCHGATE_OIDC_ISSUER"),
        ("VOUCHGATE_PUBLIC_URL", "gate.example.org", "VOUCHGATE_PUBLIC_URL"),
        ("VOUCHGATE_PUBLIC_URL", "ftp://gate.example.org", "VOUCHGATE_PUBLIC_URL"),
        ("VOUCHGATE_PUBLIC_URL", "https://gate.example.org/review", "VOUCHGATE_PUBLIC_URL"),
        ("VOUCHGATE_PUBLIC_URL", "https://gate.example.org?a=b", "VOUCHGATE_PUBLIC_URL"),
        ("VOUCHGATE_PUBLIC_URL", "https://me@gate.example.org", "VOUCHGATE_PUBLIC_URL"),
        ("VOUCHGATE_PUBLIC_URL", "https://gate.example.org:99999", "VOUCHGATE_PUBLIC_URL"),
        ("VOUCHGATE_PUBLIC_URL", "https://gate.example.org\n", "VOUCHGATE_PUBLIC_URL"),
    ],
)
def test_bad_setting_is_named(monkeypatch: pytest.MonkeyPatch, name: str, value: str, says: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=says):
        load_settings(os.environ)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("ADR_DIRS", "docs,/adrs", "The ADR directory '/adrs' is not"),
        ("REF", "main,a b", "'a b' is no name"),
        ("GITLAB_REPO", "/acme/gate", "'/acme/gate' is not the path"),
        ("LINEAR_TEAMS", "OPS,night shift", "projects must be the keys of projects, like OPS"),
        ("TRACKERS", "nowhere.toml", "nowhere.toml: No such file or directory"),
    ],
)
def test_what_only_shows_when_sources_are_opened_is_named_on_one_line(
    name: str, value: str, says: str
) -> None:
    settings = load_settings({}, **{name.lower(): value})
    with (
        pytest.raises((SettingsError, RepositoryError)) as raised,
        open_sources(settings, load_policy(None), open_repositories(settings)),
    ):
        pass
    assert str(raised.value).startswith(f"VOUCHGATE_{name}: {says}")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "text", ["databse_url = 1", "[repo", "port = []", "repo = [1]", "policy = []", f"a = {'[' * 9999}"]
)
def test_bad_file_is_an_error(text: str) -> None:
    Path("vouchgate.toml").write_text(text, "utf-8")
    with pytest.raises(SettingsError):
        load_settings({})


def test_a_provider_is_asked_for_a_place_to_come_back_to_and_not_offline() -> None:
    given = {"oidc_issuer": "http://127.0.0.1:5/realm", "oidc_client_id": "gate"}
    with pytest.raises(SettingsError, match="needs VOUCHGATE_PUBLIC_URL"):
        load_settings({}, **given)
    given["public_url"] = "http://127.0.0.1:6"
    assert load_settings({}, **given).oidc_issuer == given["oidc_issuer"]
    with pytest.raises(SettingsError, match="VOUCHGATE_OFFLINE"):
        load_settings({}, **given, offline=True)


def test_a_secret_does_not_show() -> None:
    given = {"oidc_issuer": "https://a.example", "oidc_client_id": "g", "public_url": "https://b.example"}
    given |= {"oidc_client_secret": "oidc_secret", "token": "vg_secret", "github_token": "ghp_secret"}
    settings = load_settings({}, **given)
    assert not [secret for secret in ("oidc_secret", "vg_secret", "ghp_secret") if secret in repr(settings)]


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ({}, "http://127.0.0.1:8080"),
        ({"host": "0.0.0.0", "port": 9}, "http://127.0.0.1:9"),  # noqa: S104  (what it is set to, not listened at)
        ({"host": "::", "port": 9}, "http://[::1]:9"),
        ({"host": "10.0.0.7"}, "http://10.0.0.7:8080"),
        ({"public_url": "https://Gate.Example.org/", "host": "10.0.0.7"}, "https://gate.example.org"),
        ({"public_url": "https://gate.example.org:443"}, "https://gate.example.org"),
        ({"public_url": "http://gate.example.org:443"}, "http://gate.example.org:443"),
        ({"public_url": "http://[::1]:8080"}, "http://[::1]:8080"),
    ],
)
def test_where_people_open_the_pages(given: dict[str, Any], address: str) -> None:
    assert load_settings({}, **given).pages_url == address
