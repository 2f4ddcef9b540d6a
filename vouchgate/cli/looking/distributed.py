"""`vouchgate db doctor --distributed`: what of the tables and of recorded statements does not go by owner."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import Connection, inspect, text

from vouchgate.cli.database import open_existing
from vouchgate.cli.output import FAILED, Failure, one_line, say
from vouchgate.settings import Settings
from vouchgate.storage.engine import reading
from vouchgate.storage.tables.keyed import Keyed, known, uses
from vouchgate.storage.tables.partitions import partitions

_TRIGGERS = text(
    "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal AND tgparentid = 0 AND pg_table_is_visible(tgrelid)"
)


def run(settings: Settings, statements: Path | None) -> int:
    """Says of each table, and of each way in which a statement finds rows, whether it goes by owner; 1 when one does
    not and nobody has said why. Raises Failure, StorageError."""
    engine = open_existing(settings)
    try:
        with reading(engine) as connection:
            found = [*_schema(connection), *(() if statements is None else _statements(statements))]
    finally:
        engine.dispose()
    for what, why in sorted(found, key=lambda each: each[1] is None):
        say(one_line(f"{what}: {why or 'NOT KEYED BY OWNER, and not on the list of what need not be'}"))
    unknown = sum(not why for _, why in found)
    say(f"{unknown} of these are not on the list." if unknown else "Everything else is keyed by owner.")
    return FAILED if unknown else 0


Finding = tuple[str, str | None]  # what is not keyed, and why that is so


def _schema(connection: Connection) -> Iterator[Finding]:
    """Tables whose key does not begin with the owner, and what partitions or shards would have to know."""
    look, listed = inspect(connection), known()
    parts = partitions(connection)
    names = {name for name in look.get_table_names() if name.rpartition("_p")[0] not in parts}
    for name in sorted(names - {"alembic_version"}):
        if name in parts:
            yield f"table {name}", f"in {parts[name]} partitions by owner"
        if look.get_pk_constraint(name)["constrained_columns"][:1] != ["owner_id"]:
            yield f"table {name}", listed.tables.get(name)
            continue
        for index in look.get_indexes(name):
            if index["unique"] and "owner_id" not in index["column_names"]:
                yield f"unique index {index['name']}", listed.uniques.get(str(index["name"]))
        for key in look.get_foreign_keys(name):
            if "owner_id" not in key["constrained_columns"]:
                yield f"foreign key {key['name']} of {name}", None
    if connection.dialect.name == "postgresql":
        for sequence in look.get_sequence_names():
            yield f"sequence {sequence}", listed.tables.get(sequence)
        for trigger in sorted(set(connection.scalars(_TRIGGERS))):
            yield f"trigger {trigger}", listed.tables.get(trigger)


def _statements(file: Path) -> Iterator[Finding]:
    """The same of statements, one a line, as PostgreSQL logs them."""
    listed, counted = known().statements, Counter[Keyed]()
    seen = dict[str, Keyed]()
    try:
        lines = set(file.read_text("utf-8").splitlines())
        for use in {use for line in sorted(lines) for use in uses(line)}:
            counted[use.keyed] += 1
            if use.keyed in (Keyed.BY_ID, Keyed.ALL):
                seen[use.shape] = use.keyed
    except (OSError, ValueError) as error:
        raise Failure(f"--statements {file}: {error}") from error
    say(f"{len(lines)} statements")
    for shape, keyed in sorted(seen.items()):
        why = listed.get(shape)
        yield shape, why and f"{keyed.value}; {why}"
