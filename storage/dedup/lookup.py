"""The one statement of a look-up in the dedup index: what the keys lead to, and which index that is.

Each row is (owner, key, id, words, memory's text, its horizon, pending item's text): of an item, of a template
(only these have words), and one without an owner, whose words name the index in use. One owner's keys, the
usual case, come as one list; those of many owners as pairs, which takes a third longer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from vouchgate.storage.sql import fetch

_STATEMENT = """
    SELECT * FROM (
        SELECT k.owner_id, k.key, k.item_id, NULL, m.content, m.validity_horizon, p.content
        FROM {keys}
        LEFT JOIN memory AS m ON m.owner_id = k.owner_id AND m.id = k.item_id AND m.status = 'active'
        LEFT JOIN pending AS p ON p.owner_id = k.owner_id AND p.id = k.item_id AND p.status = 'pending'
        {where} LIMIT {most}
    ) AS items
    UNION ALL
    SELECT k.owner_id, k.key, k.id, k.words, NULL, NULL, NULL FROM {templates} {where}
    UNION ALL
    SELECT '', 0, '', value, NULL, NULL, NULL FROM meta WHERE name = 'dedup_index'"""


def _statement(wanted: str, where: str, most: str) -> str:
    return _STATEMENT.format(
        keys=wanted.format("dedup_key"), templates=wanted.format("dedup_template"), where=where, most=most
    )


# CROSS JOIN makes SQLite start with the keys, never with a table.
_ONE_OWNER = {
    "sqlite": _statement(
        "json_each(?2) AS w CROSS JOIN {} AS k ON k.owner_id = ?1 AND k.key = w.value", "", "?3"
    ),
    "postgresql": _statement(
        "{} AS k", "WHERE k.owner_id = %(owner)s AND k.key = ANY(%(keys)s::bigint[])", "%(most)s"
    ),
}
_MANY_OWNERS = {
    "sqlite": _statement(
        "json_each(?1) AS o CROSS JOIN json_each(o.value) AS w "
        "CROSS JOIN {} AS k ON k.owner_id = o.key AND k.key = w.value",
        "",
        "?2",
    ),
    "postgresql": _statement(
        "unnest(%(owner)s::text[], %(keys)s::bigint[]) AS w (owner_id, key) "
        "JOIN {} AS k ON k.owner_id = w.owner_id AND k.key = w.key",
        "",
        "%(most)s",
    ),
}


def fetch_rows(connection: Connection, wanted: Mapping[str, Sequence[int]], most: int) -> list[Any]:
    """Everything known of the keys of each owner, but not more than `most` items."""
    sqlite = connection.dialect.name == "sqlite"
    if len(wanted) == 1:
        ((owner_id, keys),) = wanted.items()
        if sqlite:
            return fetch(connection, _ONE_OWNER["sqlite"], (owner_id, json.dumps(keys), most))
        # Written out, because the driver takes as long to make an array of numbers as the server to use it.
        one = {"owner": owner_id, "keys": f"{{{','.join(map(str, keys))}}}", "most": most}
        return fetch(connection, _ONE_OWNER["postgresql"], one)
    if sqlite:
        return fetch(connection, _MANY_OWNERS["sqlite"], (json.dumps(wanted), most))
    pairs = [(owner_id, key) for owner_id, keys in wanted.items() for key in keys]
    owners, flat = [owner_id for owner_id, _ in pairs], [key for _, key in pairs]
    return fetch(connection, _MANY_OWNERS["postgresql"], {"owner": owners, "keys": flat, "most": most})
