"""Whether the gate holds what nobody vouches for, only watches, or takes nothing (ADR-0052)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.ingest.rules import Rule


class Mode(StrEnum):
    """What becomes of a claim that nobody vouches for."""

    ENFORCE = "enforce"  # it waits or is blocked, as the policy says
    OBSERVE = "observe"  # it is stored unvouched, and counts for nothing; the answer says what would have become of it
    READ_ONLY = "read_only"  # nothing is written at all


# What is held whatever the mode. A credential must not be kept; a place or a memory that somebody vouched for must not
# go because nobody looks; what is there already need not come again; and what its owner rejected is rejected.
ALWAYS_HELD = frozenset(
    {Rule.CREDENTIAL, Rule.REMOVAL, Rule.PLACE_CHANGE, Rule.DUPLICATE, Rule.STANDING_RULING}
)


_SAYS = {
    Mode.ENFORCE: "is enforced",
    Mode.OBSERVE: "is only observed: what nobody vouches for is let through, unvouched",
    Mode.READ_ONLY: "is read-only",
}


class ModeSwitch(Frozen):
    """A mode or a stop as it stands for one scope: `owner_id` empty is every owner, `agent` empty is everybody, else a
    token's or a person's id. Exactly one of `mode` and `stopped` is set."""

    owner_id: str
    agent: str
    mode: Mode | None = None
    stopped: bool | None = None
    reason: str
    by: str
    since: datetime

    @property
    def scope(self) -> str:
        """For whom, in words."""
        whose = f"owner {self.owner_id}" if self.owner_id else ""
        if self.agent:
            return f"agent {self.agent}" + (f" for {whose}" if whose else "")
        return whose or "the whole service"

    @property
    def matters(self) -> bool:
        """Whether it makes anything other than it would be without."""
        return bool(self.stopped) or self.mode in (Mode.OBSERVE, Mode.READ_ONLY)

    @property
    def sentence(self) -> str:
        """What it says, without who said so."""
        what = "is stopped" if self.stopped else "goes on" if self.mode is None else _SAYS[self.mode]
        return f"{self.scope[0].upper()}{self.scope[1:]} {what}" + (
            f": {self.reason}" if self.reason else "."
        )


@dataclass(frozen=True, slots=True)
class Bearing:
    """What bears on one claim: its mode, the switch that set it (None: nobody did), and a stop."""

    mode: Mode = Mode.ENFORCE
    by: ModeSwitch | None = None
    stop: ModeSwitch | None = None

    @property
    def halted_by(self) -> ModeSwitch | None:
        """Why nothing is taken; None when it is."""
        return self.stop or (self.by if self.mode is Mode.READ_ONLY else None)


def bearing(switches: Sequence[ModeSwitch], owner_id: str, agent: Collection[str] = ()) -> Bearing:
    """What bears on claims for an owner, sent by who has these ids. Read-only counts wherever it is said; else what is
    said of an agent goes before what is said of an owner, and that before what is said of the service."""
    about = [
        one for one in switches if one.owner_id in ("", owner_id) and (not one.agent or one.agent in agent)
    ]
    stop = next((one for one in about if one.stopped), None)
    modes = [one for one in about if one.mode is not None]
    chosen = max(
        modes, key=lambda one: (one.mode is Mode.READ_ONLY, bool(one.agent), bool(one.owner_id)), default=None
    )
    return Bearing((chosen and chosen.mode) or Mode.ENFORCE, chosen, stop)
