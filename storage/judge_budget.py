"""How many questions the judge may be asked on one day, over all processes of a database."""

from __future__ import annotations

from datetime import date

from sqlalchemy import Connection, text

# One statement, so that nothing happens between looking and counting: whoever comes second waits for the row,
# then sees what the first left.
_TAKE = text(
    "INSERT INTO judge_day (day, asked) VALUES (:day, :wanted) "
    "ON CONFLICT (day) DO UPDATE SET asked = judge_day.asked + excluded.asked "
    "WHERE judge_day.asked + excluded.asked <= :limit"
)


def take_questions(connection: Connection, day: date, wanted: int, limit: int) -> bool:
    """Takes `wanted` questions from the day's `limit`, all or none of them; whether they were there.

    Call it in a write transaction. What was taken stays taken, also when the question is never asked: the
    limit bounds what is spent, and is not an account of it.
    """
    if wanted > limit:
        return False
    taken = connection.execute(_TAKE, {"day": day.isoformat(), "wanted": wanted, "limit": limit})
    return taken.rowcount == 1
