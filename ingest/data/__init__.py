"""The audited lists and tables of the package, one TOML file each."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import Any


def read_data(name: str) -> dict[str, Any]:
    """What is in the file of that name."""
    return tomllib.loads(resources.files(__name__).joinpath(name).read_text("utf-8"))
