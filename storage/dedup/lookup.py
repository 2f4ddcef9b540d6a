"""The one statement of a look-up in the dedup index: what the keys lead to, and which index that is.

Each row is (owner, keys, id, words, memory's text, its horizon, pending item's text): of an item, with all the
keys that lead to it, parted by commas, and its text if it still counts; of a template (only these have words), which is
a key's; and one without an owner, whose words name the index in use. A long text shares hundreds of keys with one that
is like it, and each row costs the threads of a busy process a turn of the interpreter, so an item is one row. One
owner's keys, the usual case, come as one list; those of many owners as pairs, which takes a third longer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from vouchgate.storage.sql import fetch

_STATEMENT = """
    WITH hit AS MATERIALIZED (SELECT k.owner_id, k.key, k.item_id FROM {keys} {where} LIMIT {most})
    SELECT i.owner_id, i.keys, i.item_id, NULL, m.content, m.validity_horizon, p.content
    FROM (
        SELECT owner_id, item_id, {joined} AS keys FROM hit GROUP BY owner_id, item_id LIMIT {items}
    ) AS i
    LEFT JOIN memory AS m ON m.owner_id = i.owner_id AND m.id = i.item_id AND m.status = 'active'
    LEFT JOIN pending AS p ON p.owner_id = i.owner_id AND p.id = i.item_id AND p.status = 'pending'
    UNION ALL
    SELECT k.owner_id, CAST(k.key AS TEXT), k.id, k.words, NULL, NULL, NULL FROM {templates} {where}
    UNION ALL
    SELECT '', '', '', value, NULL, NULL, NULL FROM meta WHERE name = 'dedup_index'"""


def _statement(wanted: str, where: str, most: str, items: str, joined: str) -> str:
    return _STATEMENT.format(
        keys=wanted.format("dedup_key"),
        templates=wanted.format("dedup_template"),
        where=where,
        most=most,
        items=items,
        joined=joined,
    )


_JOINED = {"sqlite": "group_concat(key)", "postgresql": "string_agg(CAST(key AS text), ',')"}
# CROSS JOIN makes SQLite start with the keys, never with a table.
_ONE_OWNER = {
    "sqlite": _statement(
        "json_each(?2) AS w CROSS JOIN {} AS k ON k.owner_id = ?1 AND k.key = w.value",
        "",
        "?3",
        "?4",
        _JOINED["sqlite"],
    ),
    "postgresql": _statement(
        "{} AS k",
        "WHERE k.owner_id = %(owner)s AND k.key = ANY(%(keys)s::bigint[])",
        "%(most)s",
        "%(items)s",
        _JOINED["postgresql"],
    ),
}
_MANY_OWNERS = {
    "sqlite": _statement(
        "json_each(?1) AS o CROSS JOIN json_each(o.value) AS w "
        "CROSS JOIN {} AS k ON k.owner_id = o.key AND k.key = w.value",
        "",
        "?2",
        "?3",
        _JOINED["sqlite"],
    ),
    "postgresql": _statement(
        "unnest(%(owner)s::text[], %(keys)s::bigint[]) AS w (owner_id, key) "
        "JOIN {} AS k ON k.owner_id = w.owner_id AND k.key = w.key",
        "",
        "%(most)s",
        "%(items)s",
        _JOINED["postgresql"],
    ),
}


def fetch_rows(
    connection: Connection, wanted: Mapping[str, Sequence[int]], most: int, items: int
) -> list[Any]:
    """Everything known of the keys of each owner, but not more than `most` rows of keys, and so many items."""
    sqlite = connection.dialect.name == "sqlite"
    if len(wanted) == 1:
        ((owner_id, keys),) = wanted.items()
        if sqlite:
            return fetch(connection, _ONE_OWNER["sqlite"], (owner_id, json.dumps(keys), most, items))
        # Written out, because the driver takes as long to make an array of numbers as the server to use it.
        flat = f"{{{','.join(map(str, keys))}}}"
        one = {"owner": owner_id, "keys": flat, "most": most, "items": items}
        return fetch(connection, _ONE_OWNER["postgresql"], one)
    if sqlite:
        return fetch(connection, _MANY_OWNERS["sqlite"], (json.dumps(wanted), most, items))
    pairs = [(owner_id, key) for owner_id, keys in wanted.items() for key in keys]
    many = {"owner": [owner_id for owner_id, _ in pairs], "keys": [key for _, key in pairs]}
    return fetch(connection, _MANY_OWNERS["postgresql"], many | {"most": most, "items": items})
