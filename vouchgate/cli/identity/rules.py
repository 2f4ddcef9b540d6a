"""`vouchgate owners who`: what owner rules say of claims."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from vouchgate.cli.lines.answering import Answer, answer_lines
from vouchgate.cli.output import Failure, write_json
from vouchgate.importing.lines import BadLine, Line
from vouchgate.ingest.claims.decision import ValidationResult
from vouchgate.review import acts
from vouchgate.review.vouching import voting
from vouchgate.review.vouching.loading import load_rules
from vouchgate.review.vouching.owner_rules import OwnerRules, facts_of
from vouchgate.storage.queue import pending
from vouchgate.storage.store import Store


def of_lines(path: str, rules_file: Path, agent: str) -> int:
    """Answers each decision, as `check` writes them, by what it would take; 1 when any line was bad."""
    rules = load_rules(rules_file)
    return answer_lines(path, lambda line: _answer(line, rules, agent))


def _answer(line: Line, rules: OwnerRules, agent: str) -> Answer:
    fields = dict(line.fields)
    given = {"id": fields.pop("id")} if "id" in fields else {}
    try:
        decision = ValidationResult.model_validate(fields)
    except ValidationError:
        return BadLine(line.number, "decision_invalid", "this is no line that check wrote", line.fields)
    return {**given, **asdict(rules.required(facts_of(decision, {agent} - {""})))}


def of_item(store: Store, item_id: str, rules_file: Path) -> None:
    """The same of an item of the queue. Raises Failure when there is none."""
    rules = load_rules(rules_file)
    with store.read() as connection:
        item = pending.get(connection, item_id, owners=None)
        if item is None:
            raise Failure(f"there is no item {item_id[:50]!a}")
        answer = acts.stored_answer(connection, item)
        sent, now = item.submitted_by, datetime.now(UTC)
        asked = voting.required_for(
            connection, rules, answer, owner_id=item.owner_id, submitted_by=sent, now=now
        )
        write_json(asdict(asked))
