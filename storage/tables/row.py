"""What every table's class is."""

from __future__ import annotations

from pydantic import ConfigDict
from sqlmodel import SQLModel


class Row(SQLModel):
    """Base of every row. A row is not validated, so the validator of its class is built when somebody asks for it,
    which is never: that saves a start."""

    model_config = ConfigDict(defer_build=True)  # type: ignore[assignment]  # SQLModel's own type of it
