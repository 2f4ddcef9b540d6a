"""Modes and stops as the database has them: read in the transaction that writes, so that a switch counts at once for
every process."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, literal, or_, select

from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.modes import Mode, ModeSwitch, bearing
from vouchgate.storage import switches
from vouchgate.storage.errors import ReadOnly
from vouchgate.storage.identity.owners import SERVICE_OWNER
from vouchgate.storage.sql import PreparedSelect, among, time_of
from vouchgate.storage.switches import Kind

_TABLE = switches.TABLE
_LATER = _TABLE.alias("later")
_KINDS = (Kind.MODE.value, Kind.STOP.value)
_NOW = PreparedSelect(
    select(_TABLE.c.owner_id, _TABLE.c.subject, _TABLE.c.document, _TABLE.c.by, _TABLE.c.at).where(
        or_(_TABLE.c.kind == _KINDS[0], _TABLE.c.kind == _KINDS[1]),
        among(_TABLE.c.owner_id, "owner_ids"),
        _TABLE.c.seq
        == select(func.max(_LATER.c.seq))
        .where(
            _LATER.c.kind == _TABLE.c.kind,
            _LATER.c.owner_id == _TABLE.c.owner_id,
            _LATER.c.subject == _TABLE.c.subject,
        )
        .scalar_subquery(),
    )
)


@dataclass(frozen=True, slots=True)
class Halted:
    """Nothing is taken at the moment, and nothing was written. `read_only`: of nobody in this scope; else of this
    agent, for this owner or at all, because it was stopped."""

    switch: ModeSwitch

    @property
    def read_only(self) -> bool:
        """Whether it is the mode that says so, and not a stop."""
        return self.switch.mode is Mode.READ_ONLY

    @property
    def sentence(self) -> str:
        """For whoever sent it."""
        return self.switch.sentence


def in_force(connection: Connection, owner_ids: Collection[str]) -> list[ModeSwitch]:
    """The modes and stops that stand for these owners, and for all of them."""
    rows = _NOW.rows(connection, {"owner_ids": sorted({SERVICE_OWNER, *owner_ids})})
    return [
        _switch(owner_id, agent, json.loads(document), by, time_of(at))
        for owner_id, agent, document, by, at in rows
    ]


def everything(connection: Connection) -> list[ModeSwitch]:
    """Those of every owner, as they stand."""
    return [
        _switch(one.owner_id, one.subject, one.about, one.by, one.at)
        for kind in (Kind.MODE, Kind.STOP)
        for one in switches.in_force(connection, kind)
    ]


def figures(switches: Collection[ModeSwitch]) -> dict[str, int]:
    """How many scopes are observed, read-only and stopped."""
    counted = {Mode.OBSERVE.value: 0, Mode.READ_ONLY.value: 0, "stopped": 0}
    for one in switches:
        if one.matters:
            counted["stopped" if one.mode is None else one.mode.value] += 1
    return counted


def _switch(owner_id: str, agent: str, about: dict[str, Any], by: str, at: datetime) -> ModeSwitch:
    said = {name: about[name] for name in ("mode", "stopped", "reason") if name in about}
    return ModeSwitch(owner_id=owner_id, agent=agent, by=by, since=at, **said)


def halted(connection: Connection, owner_id: str, agent: Collection[str]) -> Halted | None:
    """Whether nothing is taken for this owner of who has these ids."""
    switch = bearing(in_force(connection, [owner_id]), owner_id, agent).halted_by
    return None if switch is None else Halted(switch)


def refuse_read_only(connection: Connection, owner_ids: Collection[str]) -> None:
    """Raises ReadOnly when nothing may be written for one of these owners."""
    stand = in_force(connection, owner_ids) if owner_ids else ()
    for owner_id in owner_ids if stand else ():
        found = bearing(stand, owner_id)
        if found.by is not None and found.mode is Mode.READ_ONLY:  # whether there is a stop, too, or not
            raise ReadOnly(found.by.sentence)


def read_only(connection: Connection) -> dict[str, set[str]]:
    """The owners for whom nothing is written, as the parameter of `writable`; SERVICE_OWNER among them is all."""
    found = switches.in_force(connection, Kind.MODE)
    of_owners = {one.owner_id for one in found if not one.subject and one.about["mode"] == Mode.READ_ONLY}
    return {"read_only": of_owners}


def writable(owner_id: ColumnElement[str]) -> ColumnElement[bool]:
    """Whether something may be written for this owner of a row, of which `read_only` is asked: what is due of any other
    waits, and keeps nobody's waiting."""
    return ~or_(among(owner_id, "read_only"), among(literal(SERVICE_OWNER), "read_only"))


def put(connection: Connection, switch: ModeSwitch) -> ModeSwitch:
    """Notes and logs a switch, in place of the one of its scope and kind before. The caller holds the owner's lock."""
    about: dict[str, Any] = {"owner": switch.owner_id, "agent": switch.agent, "reason": switch.reason}
    if switch.mode is not None:
        action, about = Action.MODE_SET, about | {"mode": switch.mode.value}
    else:
        action = Action.STOPPED if switch.stopped else Action.RESUMED
        about |= {"stopped": bool(switch.stopped)}
    switches.put(connection, switch.owner_id, action, switch.agent, about, by=switch.by, now=switch.since)
    return switch
