"""Reading a policy: the built-in one, with an operator's file laid over it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import cache
from math import inf
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from vouchgate.ingest.data import read_data
from vouchgate.ingest.hedges.lexicon import extend_lexicon, load_lexicon
from vouchgate.ingest.language.spelling import did_you_mean
from vouchgate.ingest.language.validation import plain_messages
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.scoring.reputation import extend_reputation, load_reputation
from vouchgate.ingest.scoring.sites import host_of, is_public_suffix, site_of

MOST = 10**15  # of any number: with room below what 64 bits hold, as numbers are added up


class PolicyError(ValueError):
    """A policy file that cannot be used; the message names the file, the key and what is wrong."""


def _overlay(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """`over` laid over `base`: tables key by key, everything else replaced."""
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        merged[key] = _overlay(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return merged


def load_policy(path: Path | None = None) -> Policy:
    """The built-in policy, with the file at `path` laid over it.

    Raises PolicyError when the file cannot be read, is not TOML, or holds an unknown key or a bad value.
    """
    return _built_in() if path is None else _load_policy(path)


@cache
def _built_in() -> Policy:
    return _load_policy(None)


def _load_policy(path: Path | None) -> Policy:
    built_in = deepcopy(read_data("policy.toml"))
    presets = built_in.pop("presets")
    built_in["values"] = read_data("values.toml")
    over: dict[str, Any] = {}
    if path is not None:
        try:
            over = tomllib.loads(path.read_text("utf-8"))
        except OSError as error:
            raise PolicyError(f"policy {path}: cannot be read: {error.strerror}") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise PolicyError(f"policy {path}: is not valid TOML: {error}") from error
    if over.pop("require_relevance", False) is True:  # of policy files of before there was `spoken_of`
        over.setdefault("spoken_of", "queue")
    preset = over.get("preset", built_in["preset"])
    if not isinstance(preset, str) or preset not in presets:
        raise PolicyError(
            f"policy {path}: preset must be one of {', '.join(sorted(presets))}, not {preset!r}"
            f"{did_you_mean(str(preset), presets)}"
        )
    lexicon, reputation = over.pop("lexicon", {}), over.pop("reputation", {})
    document = _overlay(_overlay(built_in, presets[preset]), over)
    try:
        _check_numbers(over, built_in)
        with _naming("lexicon"):
            document["lexicon"] = extend_lexicon(load_lexicon(), lexicon)
        with _naming("reputation"):
            document["reputation"] = extend_reputation(load_reputation(), reputation)
        policy = Policy.model_validate(document)
        _check_domains(policy)
    except ValidationError as error:
        problems = plain_messages(error.errors(), Policy, whole="policy")
        raise PolicyError(f"policy {path or '(built-in)'}: {problems}") from error
    except ValueError as error:  # a change to a table that does not fit it
        raise PolicyError(f"policy {path or '(built-in)'}: {error}") from error
    return policy


def _check_numbers(over: dict[str, Any], usual: dict[str, Any], above: str = "") -> None:
    """Raises ValueError for a truth value where a number belongs, or the other way round, as they would count as 1 and
    0; and for a number that no database takes, with which each claim would fail."""
    for key, value in over.items():
        known, place = usual.get(key), f"{above}{key}"
        if isinstance(value, dict):
            _check_numbers(value, known if isinstance(known, dict) else {}, f"{place}.")
        if not isinstance(value, int | float):
            continue
        if isinstance(known, int | float) and isinstance(value, bool) != isinstance(known, bool):
            raise ValueError(f"{place}: must be {'true or false' if isinstance(known, bool) else 'a number'}")
        if MOST < value < inf:
            raise ValueError(f"{place}: must be at most {MOST:,}")


@contextmanager
def _naming(table: str) -> Iterator[None]:
    """Says in a ValueError which table it is about."""
    try:
        yield
    except ValidationError:
        raise
    except ValueError as error:
        raise ValueError(f"{table}: {error}") from error


def _check_domains(policy: Policy) -> None:
    """Raises ValueError for an entry that would silently match nothing, or would make strangers official.

    Not asked when a stored policy is read back: the answer may change with the Public Suffix List.
    """
    for name, entries in (
        ("banned_domains", policy.banned_domains),
        ("official_domains", policy.official_domains),
    ):
        for entry in entries:
            url = f"https://{entry.lower()}"
            if (site_of(url) if "/" in entry else host_of(url)) != entry.lower():
                raise ValueError(
                    f"{name}: {entry!r} is neither a host name nor an account like github.com/alice"
                )
    for entry in policy.official_domains:
        if is_public_suffix(entry.lower()):
            raise ValueError(f"official_domains: anybody can have a name below {entry!r}")
