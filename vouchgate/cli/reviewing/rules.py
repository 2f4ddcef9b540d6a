"""`vouchgate review rule`: rules made of rulings, straight from the database, with the same rights as over HTTP."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime

from vouchgate.cli.output import USAGE, Failure, one_line, say, write_json
from vouchgate.cli.review import open_review_session
from vouchgate.ingest.claims.owner_rules import RuleDraft
from vouchgate.ingest.claims.types import RuleVerdict
from vouchgate.review.answers import NotFound
from vouchgate.review.trust.owner_rules import DAYS, RuleBook, RuleRefused
from vouchgate.review.trust.taking_back import Then, take_back
from vouchgate.settings import Settings


def list_rules(settings: Settings, *, as_json: bool) -> int:
    """The reviewer's rules, with what each did."""
    with open_review_session(settings) as desk:
        found = RuleBook(desk.store, desk.policy).listing(desk.principal)
    for rule, did in found:
        if as_json:
            write_json({"rule": rule.model_dump(mode="json"), "did": asdict(did)})
            continue
        until = f"until {rule.until:%Y-%m-%d}" if rule.ended_at is None else "taken back"
        say(f"{rule.id}  {rule.verdict}  {until}  {one_line(rule.name)}")
        said = rule.terms.model_dump(mode="json", exclude_none=True) | asdict(did)
        say(f"  {', '.join(f'{name} {one_line(str(value))}' for name, value in said.items())}")
    if not found and not as_json:
        say("You have no rules.")
    return 0


def make_rule(
    settings: Settings, item_id: str, verdict: RuleVerdict, *, terms: list[str], days: int, name: str | None
) -> int:
    """What a rule made of the ruling on an item would have done; with a name, it is confirmed. Raises Failure."""
    now = datetime.now(UTC)
    with open_review_session(settings) as desk:
        book = RuleBook(desk.store, desk.policy)
        found = book.propose(desk.principal, item_id)
        if isinstance(found, NotFound):
            raise Failure(f"there is no item {item_id!r} in your queue of which a rule could be made")
        chosen = found.terms.model_dump(include=set(terms))
        try:
            draft = RuleDraft.model_validate({"verdict": verdict, "terms": chosen})
        except ValueError as error:
            raise Failure(f"this cannot be a rule: {error}", USAGE) from error
        seen = book.preview(desk.principal, found.owner_id, draft, now)
        say(f"In {DAYS} days it would {verdict} {seen.would} of {seen.looked_at} claims.")
        say(f"Ruled the same: {seen.same}; otherwise: {seen.otherwise}; by nobody: {seen.nobody}.")
        if name is None:
            say("Nothing was changed. Give it a --name to confirm it.")
            return 0
        made = book.confirm(
            desk.principal, found.owner_id, draft, name=name, days=days, item_id=item_id, now=now
        )
    if isinstance(made, RuleRefused):
        raise Failure(made.message.rstrip("."))
    say(f"{made.id} counts until {made.until:%Y-%m-%d}.")
    return 0


def end_rule(settings: Settings, rule_id: str, then: Then) -> int:
    """Takes a rule back, with what it did as `then` says. Raises Failure when it is not done."""
    with open_review_session(settings) as desk:
        book = RuleBook(desk.store, desk.policy)
        ended = take_back(book, desk.principal, rule_id, then, datetime.now(UTC))
    if isinstance(ended, NotFound):
        raise Failure(f"you have no rule {rule_id!r}; vouchgate review rule lists them")
    more = "; the queue is full, decide others and take it back again" if ended.full else ""
    say(f"Taken back: {ended.queued} to the queue, {ended.retracted} retracted, {ended.left} left{more}.")
    return 0
