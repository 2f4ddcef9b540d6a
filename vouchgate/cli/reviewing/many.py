"""What `vouchgate review` does to several items: those that are named, or all that a query finds, counted first."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import typer

from vouchgate.cli.output import FAILED, USAGE, Failure, complain, hint, one_line, say
from vouchgate.cli.review import ReviewSession, get_item, not_done, open_review_session
from vouchgate.ingest.claims.waiting import PendingMemory
from vouchgate.review.attending import attention
from vouchgate.review.attending.attention import Attended, AttentionAnswer, NotPossible
from vouchgate.settings import Settings
from vouchgate.storage.queue.query import Query, QueryError, moment, parse

MOST_SHOWN = 20  # items that are listed before the question; the others are counted


@dataclass(frozen=True, slots=True)
class Choice:
    """Which items are meant: `ids`, of which one may be in `version`, or all that `query` finds. `dry_run`: only tell
    them. `yes`: do not ask."""

    ids: Sequence[str] = ()
    query: str | None = None
    version: int | None = None
    dry_run: bool = False
    yes: bool = False


def parsed(query: str) -> Query:
    """The query that was typed. Raises Failure."""
    try:
        found = parse(query, datetime.now(UTC))
    except QueryError as error:
        raise Failure(f"--filter: {error}", USAGE) from error
    if not found.terms:
        raise Failure("--filter finds everything: say what is meant", USAGE)
    return found


def rule_on(
    settings: Settings, chosen: Choice, verb: str, act: Callable[[ReviewSession, PendingMemory], str]
) -> int:
    """Does `act`, which says what it did and raises Failure where it was not done, to each item in the version that
    was looked at; one that is not done spoils no other. 1 when some were not."""
    with open_review_session(settings) as desk:
        items = _chosen(desk, chosen)
        if not _go_on(items, chosen, verb):
            return 0
        if len(chosen.ids) == 1:
            say(act(desk, items[0]))
            return 0
        left = 0
        for item in items:
            try:
                say(act(desk, item))
            except Failure as error:
                left += 1
                complain(f"{item.id}: {error}")
    hint(f"Done: {len(items) - left} of {len(items)}." if left else f"Done: all {len(items)}.")
    return FAILED if left else 0


def let_go(settings: Settings, chosen: Choice, reason: str) -> int:
    """Ends the wait of items that cannot be decided well, all in one act."""
    with open_review_session(settings) as desk:
        items = _chosen(desk, chosen)
        if len(items) > attention.MOST_LET_GO:
            raise Failure(f"{len(items)} items are meant; at most {attention.MOST_LET_GO} go at once")
        if not _go_on(items, chosen, "let go"):
            return 0
        try:
            done = attention.let_go(desk.queue, desk.principal, items, reason=reason, now=datetime.now(UTC))
        except ValueError as error:
            raise Failure(str(error)) from error
    say(f"Let go: {done.count} {_items(done.count)}.")
    if done.left:
        complain(f"{done.left} had changed meanwhile, and were left")
    return FAILED if done.left else 0


def attend(settings: Settings, ids: Sequence[str], said: str, act: Callable[..., AttentionAnswer]) -> int:
    """Says something about each item; `said` is what is told when it is kept, with the item's fields in it."""

    def one(desk: ReviewSession, item: PendingMemory) -> str:
        answer = act(desk.queue, desk.principal, item.id, now=datetime.now(UTC))
        match answer:
            case Attended():
                return f"{item.id}: {said.format(item=answer.item)}"
            case NotPossible():
                raise Failure(f"not done ({answer.code}): {answer.message.rstrip('.')}")
            case _:
                raise not_done(item.id, answer)

    return rule_on(settings, Choice(ids, yes=True), said, one)


def later(text: str) -> datetime:
    """A time to come: a day, a time, or so long from now. Raises Failure."""
    now = datetime.now(UTC)
    try:
        if "T" in text:
            at = datetime.fromisoformat(text)
            return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
        return moment(text, now, ahead=True)
    except (QueryError, ValueError, OverflowError) as error:
        raise Failure(f"--until: {one_line(str(error))}", USAGE) from error


def _chosen(desk: ReviewSession, chosen: Choice) -> list[PendingMemory]:
    if chosen.query is None:
        items = [get_item(desk, item_id) for item_id in dict.fromkeys(chosen.ids)]
        if chosen.version is not None:
            return [item.model_copy(update={"version": chosen.version}) for item in items]
        return items
    found = attention.matching(desk.queue, desk.principal, parsed(chosen.query), now=datetime.now(UTC))
    return list(found)


def _go_on(items: Sequence[PendingMemory], chosen: Choice, verb: str) -> bool:
    """Whether it is to be done: what a query found is told first, and asked about where somebody can answer."""
    if chosen.query is None and not chosen.dry_run:
        return True
    for item in items[:MOST_SHOWN]:
        say(f"{item.id}  {item.rule}  {one_line(item.content)[:100]}")
    if len(items) > MOST_SHOWN:
        say(f"and {len(items) - MOST_SHOWN} more")
    if chosen.dry_run or not items:
        say(f"Would {verb} {len(items)} {_items(len(items))}; nothing was done.")
        return False
    if chosen.yes:
        return True
    if not sys.stdin.isatty():
        raise Failure(
            f"this would {verb} {len(items)} {_items(len(items))}: say --yes, or --dry-run first", USAGE
        )
    return typer.confirm(f"{verb.capitalize()} {len(items)} {_items(len(items))}?")


def _items(count: int) -> str:
    return "item" if count == 1 else "items"
