"""Large tables cut into partitions by their owners, with PostgreSQL's own hash partitioning (ADR-0058).

A partitioned table takes a unique index only where that has the owner in it, so `delivery` and `log_leaf` stay whole;
the others that stay so have few rows an owner.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, text

from vouchgate.storage.errors import StorageError

# By how many rows a claim has in them, or how wide those are.
LARGE = (
    "decision", "dedup_key", "dedup_template", "embedding", "lineage", "log_entry", "memory", "memory_words", "pending",
    "similar_key", "source_text",
)  # fmt: skip
MOST = 128  # partitions of a table: all are locked at once when it is cut, for which PostgreSQL has room by default

_OTHERS = text(
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "
    "AND backend_type = 'client backend'"
)
_KINDS = text(
    "SELECT relname, relkind::text FROM pg_class "
    "WHERE oid IN (SELECT to_regclass(name) FROM unnest(CAST(:names AS text[])) AS name)"
)
_INDEXES = (
    "SELECT coalesce('ALTER TABLE {name} ADD CONSTRAINT ' || quote_ident(conname) || ' ' || "
    "pg_get_constraintdef(c.oid), "
    "pg_get_indexdef(indexrelid)) FROM pg_index "
    "LEFT JOIN pg_constraint c ON conindid = indexrelid AND contype IN ('p', 'u') "
    "WHERE indrelid = '{name}'::regclass ORDER BY indexrelid"
)
_RIGHTS = (
    "SELECT 'ALTER TABLE {name} OWNER TO ' || quote_ident(pg_get_userbyid(relowner)) FROM pg_class "
    "WHERE oid = '{name}'::regclass UNION ALL "
    "SELECT 'GRANT ' || privilege_type || ' ON {name} TO ' || coalesce(quote_ident(rolname), 'PUBLIC') "
    "FROM pg_class, aclexplode(relacl) AS granted LEFT JOIN pg_roles ON pg_roles.oid = grantee "
    "WHERE pg_class.oid = '{name}'::regclass"
)
# A trigger for each row is one of the partitions as well; one for a statement has to be made for each of them.
_TRIGGERS = (
    "SELECT pg_get_triggerdef(oid), tgtype & 1 = 1 FROM pg_trigger "
    "WHERE tgrelid = '{name}'::regclass AND NOT tgisinternal ORDER BY tgname"
)
_PARTITIONED = text(
    "SELECT relname AS name, count(*) AS parts FROM pg_inherits JOIN pg_class ON pg_class.oid = inhparent "
    "WHERE relkind = 'p' AND pg_table_is_visible(inhparent) GROUP BY relname ORDER BY relname"
)


def partition(connection: Connection, into: int) -> dict[str, int]:
    """Cuts the LARGE tables into so many partitions each, in the transaction at hand; how many rows each has.

    Indexes, constraints, triggers, owner and rights are kept under their names. Raises StorageError, after which the
    transaction is to be rolled back: not PostgreSQL, partitioned already, others are connected, or rows are missing.
    """
    if connection.dialect.name != "postgresql":
        raise StorageError("only PostgreSQL has partitions; a SQLite database stays as it is")
    if not 2 <= into <= MOST:
        raise StorageError(f"a table is cut into 2 to {MOST} partitions")
    kinds = {row.relname: row.relkind for row in connection.execute(_KINDS, {"names": list(LARGE)})}
    if done := sorted(name for name, kind in kinds.items() if kind == "p"):
        raise StorageError(f"the tables are partitioned already ({', '.join(done)})")
    if others := connection.scalar(_OTHERS):
        raise StorageError(f"others are connected to this database ({others}): stop the services first")
    return {name: cut(connection, name, into) for name in LARGE if name in kinds}


def partitions(connection: Connection) -> dict[str, int]:
    """How many partitions each partitioned table has."""
    if connection.dialect.name != "postgresql":
        return {}
    return {row.name: row.parts for row in connection.execute(_PARTITIONED)}


def cut(connection: Connection, name: str, into: int) -> int:
    """Cuts one table into so many partitions, under a lock; how many rows it has. Raises StorageError."""

    def run(statement: str) -> Any:
        return connection.execute(text(statement))

    run(f"LOCK TABLE {name} IN ACCESS EXCLUSIVE MODE")
    after = [row[0] for query in (_INDEXES, _RIGHTS) for row in run(query.format(name=name))]
    triggers = run(_TRIGGERS.format(name=name)).all()
    run(f"CREATE TABLE {name}_cut (LIKE {name} INCLUDING ALL EXCLUDING INDEXES) PARTITION BY HASH (owner_id)")
    for part in range(into):
        run(
            f"CREATE TABLE {name}_p{part} PARTITION OF {name}_cut FOR VALUES WITH (MODULUS {into}, REMAINDER {part})"
        )
    moved = run(f"INSERT INTO {name}_cut SELECT * FROM {name}").rowcount  # noqa: S608  (a name of ours)
    before, kept = run(f"SELECT (SELECT count(*) FROM {name}), (SELECT count(*) FROM {name}_cut)").one()  # noqa: S608
    if not before == moved == kept:
        raise StorageError(f"{name} has {before} rows and its partitions {kept}; nothing was changed")
    run(f"DROP TABLE {name}")
    run(f"ALTER TABLE {name}_cut RENAME TO {name}")
    for statement in after:
        run(statement)
    for definition, for_row in triggers:
        run(definition)
        for part in () if for_row else range(into):
            run(definition.replace(f"{name} FOR EACH", f"{name}_p{part} FOR EACH"))
    run(f"ANALYZE {name}")
    return int(kept)
