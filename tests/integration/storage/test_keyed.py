"""What a statement says of whose rows it is about, from its text alone."""

from __future__ import annotations

import pytest

from vouchgate.storage.tables.keyed import Keyed, known, uses

KEYED, BY_ID, ALL, NEITHER = Keyed
# A statement, and what it comes to: how each of its parts is keyed, and the shapes of those that are not.
CASES = [
    ("SELECT memory.id FROM memory WHERE memory.owner_id = %(o)s::VARCHAR AND memory.id = %(i)s", [KEYED], []),
    ("SELECT content FROM memory WHERE owner_id = $1", [KEYED], []),
    ("SELECT content FROM memory m WHERE m.owner_id IN ($1, $2) OR m.id = $3", [ALL], ["select memory of all by id"]),
    ("SELECT content FROM memory WHERE memory.owner_id = ANY($1) AND status = 'active'", [KEYED], []),
    ("SELECT content FROM memory WHERE (owner_id, id) IN (($1, $2))", [KEYED], []),
    ("SELECT content FROM memory WHERE (owner_id, id) > ($1, $2)", [ALL], ["select memory of all by id"]),
    ("SELECT content FROM memory WHERE owner_id > $1", [ALL], ["select memory of all"]),
    ("SELECT content FROM memory WHERE NOT owner_id = $1", [ALL], ["select memory of all"]),
    ("SELECT content FROM memory WHERE id = %s", [BY_ID], ["select memory by id"]),
    ("DELETE FROM pending WHERE id IN ($1, $2)", [BY_ID], ["delete pending by id"]),
    ("SELECT * FROM memory m JOIN decision d ON d.owner_id = m.owner_id AND d.id = m.decision_id WHERE m.owner_id = $1",
     [KEYED], []),
    ("SELECT * FROM memory m JOIN decision d ON d.id = m.decision_id WHERE m.owner_id = $1", [ALL],
     ["select decision of all by id"]),
    ("SELECT 1 FROM memory m LEFT JOIN decision d ON d.owner_id = m.owner_id AND m.owner_id = $1", [ALL],
     ["select decision, memory of all"]),
    ("SELECT 1 FROM memory m LEFT JOIN decision d ON d.owner_id = m.owner_id WHERE m.owner_id = $1", [KEYED], []),
    ("SELECT * FROM unnest($1::text[], $2::bigint[]) AS w (owner_id, key) "
     "JOIN dedup_key k ON k.owner_id = w.owner_id AND k.key = w.key", [KEYED], []),
    ("SELECT * FROM unnest($1::text[], $2::text[]) AS w (o, i) CROSS JOIN LATERAL "
     "(SELECT 1 FROM pending p WHERE p.owner_id = w.o AND p.id = w.i) AS x", [NEITHER, KEYED], []),
    ("SELECT log_seq FROM owner o WHERE o.owner_id = $1 AND EXISTS "
     "(SELECT 1 FROM pending p WHERE p.owner_id = o.owner_id)", [KEYED, KEYED], []),
    ("SELECT 1 FROM token WHERE EXISTS (SELECT 1 FROM pending WHERE status = 'pending')", [NEITHER, ALL],
     ["select pending of all by status"]),
    ("INSERT INTO memory (owner_id, id) VALUES ($1, $2) ON CONFLICT DO NOTHING", [KEYED], []),
    ("UPDATE memory SET status = 'x' FROM decision d WHERE d.owner_id = memory.owner_id AND memory.owner_id = $1",
     [KEYED], []),
    ("UPDATE memory SET content = '' WHERE memory.id = $1 AND content <> ''", [BY_ID],
     ["update memory by content, id"]),
    ("WITH due AS (SELECT owner_id, item_id FROM recheck WHERE due_at < $1) DELETE FROM recheck r USING due "
     "WHERE r.owner_id = due.owner_id", [KEYED, ALL], ["select recheck of all by due_at"]),
    ("SELECT document FROM policy WHERE digest = :digest", [NEITHER], []),
    ("SET lock_timeout = 5", [], []),
    ('DECLARE "c_1" CURSOR FOR SELECT seq FROM log_entry ORDER BY seq', [ALL], ["select log_entry of all"]),
    ('FETCH FORWARD 500 FROM "c_1"', [], []),
    (";", [], []),
    ("LOCK TABLE meta IN EXCLUSIVE MODE", [], []),
]  # fmt: skip


def test_whose_rows_a_statement_is_about() -> None:
    for statement, keyed, shapes in CASES:
        found = uses(statement)
        assert sorted(use.keyed for use in found) == sorted(keyed), statement
        assert [use.shape for use in found if use.keyed in (BY_ID, ALL)] == shapes, statement
    for statement in ("SELECT FROM WHERE (", "SELEC 1", "TRUNCATE memory", "COPY memory TO STDOUT"):
        with pytest.raises(ValueError, match="statement"):
            uses(statement)


def test_each_exception_has_a_reason_and_is_listed_once() -> None:
    for listed in known():
        assert all(len(why) > 20 for why in listed.values())
        assert len(listed) > 1
