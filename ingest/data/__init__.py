"""The audited lists and tables of the package, one TOML file each."""

from __future__ import annotations

import tomllib
from functools import cache, lru_cache
from importlib import resources
from typing import Any


@lru_cache(maxsize=4)  # several modules that are loaded one after another take their lists from one file
def read_data(name: str) -> dict[str, Any]:
    """What is in the file of that name; nobody changes it."""
    return tomllib.loads(resources.files(__name__).joinpath(name).read_text("utf-8"))


@cache
def read_languages() -> dict[str, dict[str, Any]]:
    """What is in the files of languages other than English, by their codes."""
    folder = resources.files(__name__).joinpath("languages")
    names = sorted(file.name for file in folder.iterdir() if file.name.endswith(".toml"))
    return {name.removesuffix(".toml"): read_data(f"languages/{name}") for name in names}
