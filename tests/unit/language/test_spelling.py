"""Did you mean? A slip in a name is told, and nothing is made of a name that is like none."""

from __future__ import annotations

from pathlib import Path

import pytest

from vouchgate.ingest.citations import parse_citation
from vouchgate.ingest.data.policy_file import PolicyError, load_policy
from vouchgate.ingest.language.spelling import did_you_mean, nearest_name
from vouchgate.settings import SettingsError, load_settings


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("strcit", "strict"), ("BALANCE", "balanced"), ("review_al", "review_all"), ("loose", None), ("", None)],
)
def test_one_slip_in_four_letters_is_forgiven(name: str, nearest: str | None) -> None:
    assert nearest_name(name, ["strict", "balanced", "review_all"]) == nearest


def test_no_known_names() -> None:
    assert did_you_mean("anything", []) == ""


def test_a_mistyped_setting_is_named() -> None:
    with pytest.raises(
        SettingsError, match=r"^unknown setting VOUCHGATE_REPOO \(did you mean REPO\?\); known are"
    ):
        load_settings({"VOUCHGATE_REPOO": "."})
    with pytest.raises(SettingsError, match=r"^unknown setting VOUCHGATE_NONSENSE; known are"):
        load_settings({"VOUCHGATE_NONSENSE": "."})


def test_a_mistyped_key_of_the_settings_file_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "vouchgate.toml").write_text('polcy = "x.toml"')
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsError, match=r"VOUCHGATE_POLCY: .* \(did you mean policy\?\)"):
        load_settings({})


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("duplicate_treshold = 0.9", "duplicate_threshold"),
        ("[limits]\ncitation = 3", "citations"),
        ('preset = "strcit"', "strict"),
    ],
)
def test_a_mistyped_key_of_a_policy_is_named(tmp_path: Path, text: str, meant: str) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(text)
    with pytest.raises(PolicyError, match=rf"\(did you mean {meant}\?\)"):
        load_policy(path)


def test_a_key_that_is_like_none_is_told_without_a_guess(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text("colour = 1\n[limits.citations]\nnumber = 2")
    with pytest.raises(PolicyError) as refused:
        load_policy(path)
    assert "did you mean" not in str(refused.value)


@pytest.mark.parametrize(
    ("value", "meant"), [("RCF 9110", "RFC 9110"), ("ADDR-3", "ADR-3"), ("CEV-2024-3094", "CVE-2024-3094")]
)
def test_a_mistyped_citation_is_named(value: str, meant: str) -> None:
    with pytest.raises(ValueError, match=rf"is not one citation \(did you mean {meant}\?\); accepted forms"):
        parse_citation(value)


@pytest.mark.parametrize("value", ["hello", "ADDR-x", "RCF", "Redis 7"])
def test_what_would_be_no_citation_either_is_not_guessed(value: str) -> None:
    with pytest.raises(ValueError, match="is not one citation; accepted forms"):
        parse_citation(value)
