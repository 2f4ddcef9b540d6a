"""Rules in the database are numbers, and one of the numbers had two meanings once."""

from __future__ import annotations

import re

from alembic import command
from sqlalchemy import Connection, text

from tests.conftest import THRESHOLD
from tests.integration.outgoing.test_outbox import AT_ONE, TEA, WATER, item, removal, send
from vouchgate.ingest.claims.decision import ValidationResult
from vouchgate.ingest.rules import Rule
from vouchgate.storage.claims import decisions
from vouchgate.storage.engine import migration_config
from vouchgate.storage.queue import overview
from vouchgate.storage.store import Store

BEFORE = "0005"


def test_what_was_fifteen_is_told_apart(database_url: str) -> None:
    store = Store.open(database_url, threshold=THRESHOLD)
    send(store, TEA, AT_ONE)
    sent = [send(store, WATER, AT_ONE), send(store, TEA, removal(AT_ONE))]
    assert [answer.rule for answer in sent] == ["place_change", "removal"]

    def as_before(connection: Connection) -> None:
        config = migration_config()
        config.attributes["connection"] = connection
        command.downgrade(config, BEFORE)
        for answer in sent:
            old = re.sub(r'"rule":"\w+"', '"rule":15', answer.model_dump_json(), count=1)
            values = {"old": old, "id": answer.decision_id}
            connection.execute(text("UPDATE decision SET answer = :old WHERE id = :id"), values)

    store.writer.run(("ann",), as_before).result()
    store.close()

    store = Store.open(database_url, threshold=THRESHOLD)
    assert [item(store, answer).rule for answer in sent] == ["place_change", "removal"]
    with store.read() as connection:
        assert overview.facets(connection, "ann", 2, 0, None).by_rule == {
            Rule.PLACE_CHANGE: 1,
            Rule.REMOVAL: 1,
        }
        numbers = text("SELECT rule, count(*) FROM decision GROUP BY rule ORDER BY rule")
        assert connection.execute(numbers).all() == [(9, 1), (15, 1), (16, 1)]
        for answer in sent:
            kept = decisions.get(connection, str(answer.decision_id), owners=frozenset({"ann"}))
            assert '"rule":15' in str(kept)  # an answer stays as it was given
            assert ValidationResult.model_validate_json(str(kept)) == answer
    store.close()
