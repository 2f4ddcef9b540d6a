"""The grammars of addresses in any script, which jsonschema loads, built when one is asked: it takes seconds to build
them all, and hardly any process asks. Who installs vouchgate has none of them: they come with what makes the SBOM."""

from __future__ import annotations

import importlib
import sys
from functools import cache
from types import ModuleType
from typing import Any

_NAME = "rfc3987_syntax"


def put_off_grammars() -> None:
    """From now on what loads them in this process, or in those forked from it, has them built by the first question."""
    if _NAME not in sys.modules:
        put_off: Any = ModuleType(_NAME)
        put_off.is_valid_syntax = _is_valid
        sys.modules[_NAME] = put_off


def _is_valid(term: str, value: str) -> bool:
    return bool(_loaded().is_valid_syntax(term, value))


@cache
def _loaded() -> Any:
    del sys.modules[_NAME]
    return importlib.import_module(_NAME)
