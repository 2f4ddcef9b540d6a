"""Claims that are known and let pass for a time, each with its reason: a TOML file beside the documents."""

from __future__ import annotations

import tomllib
from datetime import date
from pathlib import Path

from pydantic import Field, ValidationError

from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.ingest.documents.gate import Accepted


class BaselineError(ValueError):
    """A baseline that cannot be used; the message names the file and what is wrong."""


class _Entry(Frozen):
    fingerprint: str = Field(pattern=r"^[0-9a-f]{20}$")
    reason: str = Field(min_length=3, max_length=1000)
    until: date
    text: str = ""  # the claim, for whoever reads the file


class _Baseline(Frozen):
    accepted: tuple[_Entry, ...] = ()


def read(path: Path) -> dict[str, Accepted]:
    """The entries by fingerprint. Raises BaselineError."""
    try:
        found = _Baseline.model_validate(tomllib.loads(path.read_text("utf-8")))
    except OSError as error:
        raise BaselineError(f"baseline {path}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BaselineError(f"baseline {path}: is not valid TOML: {error}") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise BaselineError(f"baseline {path}: {where}: {first['msg']}") from error
    return {one.fingerprint: Accepted(one.fingerprint, one.reason, one.until) for one in found.accepted}
