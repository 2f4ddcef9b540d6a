"""What every table's class is."""

from __future__ import annotations

from pydantic import ConfigDict
from sqlalchemy.ext.declarative import DeferredReflection
from sqlmodel import SQLModel


class Row(DeferredReflection, SQLModel):
    """Base of every row. A row is not validated, so the validator of its class is built when somebody asks for it,
    which is never; and no object is ever loaded as one, so it is mapped to its table when somebody prepares that, which
    is never either. Both save a start."""

    model_config = ConfigDict(defer_build=True)  # type: ignore[assignment]  # SQLModel's own type of it
