"""`vouchgate review standing`: standing rulings, straight from the database, with the same rights as over
HTTP."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime

from vouchgate.cli.output import USAGE, Failure, one_line, say, write_json
from vouchgate.cli.review import open_review_session
from vouchgate.ingest.claims.standing_rulings import RulingDraft
from vouchgate.ingest.claims.trust import RulingVerdict
from vouchgate.review.answers import NotFound
from vouchgate.review.trust.standing_rulings import DAYS, RulingRefused, StandingRulings
from vouchgate.review.trust.taking_back import Then, take_back
from vouchgate.settings import Settings


def list_rulings(settings: Settings, *, as_json: bool) -> int:
    """The reviewer's standing rulings, with what each did."""
    with open_review_session(settings) as desk:
        found = StandingRulings(desk.store, desk.policy).listing(desk.principal)
    for ruling, did in found:
        if as_json:
            write_json({"ruling": ruling.model_dump(mode="json"), "did": asdict(did)})
            continue
        until = f"until {ruling.until:%Y-%m-%d}" if ruling.ended_at is None else "taken back"
        say(f"{ruling.id}  {ruling.verdict}  {until}  {one_line(ruling.name)}")
        said = ruling.terms.model_dump(mode="json", exclude_none=True) | asdict(did)
        say(f"  {', '.join(f'{name} {one_line(str(value))}' for name, value in said.items())}")
    if not found and not as_json:
        say("You have no standing rulings.")
    return 0


def make_ruling(
    settings: Settings, item_id: str, verdict: RulingVerdict, *, terms: list[str], days: int, name: str | None
) -> int:
    """What a standing ruling made of the ruling on an item would have done; with a name, it is confirmed. Raises
    Failure."""
    now = datetime.now(UTC)
    with open_review_session(settings) as desk:
        book = StandingRulings(desk.store, desk.policy, desk.rules)
        found = book.propose(desk.principal, item_id)
        if isinstance(found, NotFound):
            raise Failure(
                f"there is no item {item_id!r} in your queue of which a standing ruling could be made"
            )
        chosen = found.terms.model_dump(include=set(terms))
        try:
            draft = RulingDraft.model_validate({"verdict": verdict, "terms": chosen})
        except ValueError as error:
            raise Failure(f"this cannot be a standing ruling: {error}", USAGE) from error
        seen = book.preview(desk.principal, found.owner_id, draft, now)
        say(f"In {DAYS} days it would {verdict} {seen.would} of {seen.looked_at} claims.")
        say(f"Ruled the same: {seen.same}; otherwise: {seen.otherwise}; by nobody: {seen.nobody}.")
        if name is None:
            say("Nothing was changed. Give it a --name to confirm it.")
            return 0
        made = book.confirm(
            desk.principal, found.owner_id, draft, name=name, days=days, item_id=item_id, now=now
        )
    if isinstance(made, RulingRefused):
        raise Failure(made.message.rstrip("."))
    say(f"{made.id} counts until {made.until:%Y-%m-%d}.")
    return 0


def end_ruling(settings: Settings, ruling_id: str, then: Then) -> int:
    """Takes a standing ruling back, with what it did as `then` says. Raises Failure when it is not done."""
    with open_review_session(settings) as desk:
        book = StandingRulings(desk.store, desk.policy)
        ended = take_back(book, desk.principal, ruling_id, then, datetime.now(UTC))
    if isinstance(ended, NotFound):
        raise Failure(f"you have no standing ruling {ruling_id!r}; vouchgate review standing lists them")
    more = "; the queue is full, decide others and take it back again" if ended.full else ""
    say(f"Taken back: {ended.queued} to the queue, {ended.retracted} retracted, {ended.left} left{more}.")
    return 0
