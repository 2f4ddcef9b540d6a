"""The base of every domain type. All are frozen; rows and wire models are separate types.

Nothing in this folder knows a clock, a network or a database: times and ids come in as values.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """Base of every domain type: immutable, and an unknown field is an error. The validator of a type is built
    when it is first used, because a process uses few of them and would build all when it starts."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
