"""Domain types to rows and back. Both sides have the same names, but for one: `metadata` is taken by
SQLModel, so its column is `details`."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from pydantic import BaseModel


def to_row(model: BaseModel) -> dict[str, Any]:
    """The fields as parameters of INSERT. Enums go as their values: a driver may write a member's name."""
    # The fields themselves, not a copy through pydantic: this runs for every claim that is stored.
    fields = {n: v.value if isinstance(v, Enum) else v for n, v in model.__dict__.items()}
    fields["details"] = fields.pop("metadata")
    return fields


def to_fields(row: Mapping[Any, Any]) -> dict[str, Any]:
    """The columns as fields of the domain type, still to be validated by it."""
    fields = {str(name): value for name, value in row.items()}
    fields["metadata"] = fields.pop("details")
    return fields
