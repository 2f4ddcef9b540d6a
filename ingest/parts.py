"""Parts that register themselves: each is one file of a package, found by looking there."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any


def parts_of(package: ModuleType, name: str) -> Iterator[Any]:
    """What each file of the package says of itself under `name`, by the names of the files. Raises ValueError for one
    that says nothing."""
    for file in sorted(each.stem for folder in package.__path__ for each in Path(folder).glob("[!_]*.py")):
        part = getattr(import_module(f"{package.__name__}.{file}"), name, None)
        if not part:
            raise ValueError(f"{package.__name__}.{file} does not say what it is ({name})")
        yield part
