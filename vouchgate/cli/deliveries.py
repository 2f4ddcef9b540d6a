"""`vouchgate sink` and `vouchgate delivery`: who gets memories, and what became of each delivery. A new secret is the
only thing on standard output when a sink is made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from pydantic import TypeAdapter

from vouchgate.cli.database import open_store
from vouchgate.cli.output import FAILED, USAGE, Failure, complain, hint, one_line, say, show_table, write_json
from vouchgate.cli.tokens import ACTOR
from vouchgate.gate import deliveries as acts
from vouchgate.gate.deliveries import NotDeadLetter, Outdated
from vouchgate.settings import Settings
from vouchgate.storage import sink_consumers
from vouchgate.storage.outgoing import deliveries, sinks
from vouchgate.storage.outgoing.deliveries import DeliveryFilter, DeliveryRecord, DeliveryState
from vouchgate.storage.store import Store
from vouchgate.wire import SinkName

_SINK_NAME: TypeAdapter[str] = TypeAdapter(SinkName)


def create(settings: Settings, *, owner: str, url: str) -> int:
    """Makes a sink and prints its secret, this once."""
    with open_store(settings) as store:
        try:
            made, secret = sinks.create(store, owner_id=owner, url=url, actor=ACTOR, now=datetime.now(UTC))
        except ValueError as error:
            raise Failure(str(error), USAGE) from error
    print(secret, flush=True)
    hint(
        f"Sink {made.id} made: it gets every memory of the owner {made.owner_id} from now on, with its text. "
        "The secret is shown this once; the receiver needs it to know that what comes is real."
    )
    if made.url.startswith("http:"):
        hint("The URL is not https: whoever is on the way can read the memories.")
    if settings.offline:
        hint("The service is set to be offline: as long as it is, nothing is sent.")
    return 0


def show_sinks(settings: Settings, *, as_json: bool) -> int:
    """Every sink without its secret, oldest first."""
    with open_store(settings) as store, store.read() as connection:
        found = sinks.listing(connection)
    if as_json:
        for sink in found:
            write_json(sink.model_dump(mode="json"))
    elif not found:
        hint("There is no sink. Make one: vouchgate sink create --owner ID --url URL")
    else:
        rows = [(sink.id, sink.owner_id, sink.url, f"{sink.created_at:%Y-%m-%d %H:%M}Z") for sink in found]
        show_table(("id", "owner", "url", "made"), rows)
    return 0


def remove(settings: Settings, sink_id: str) -> int:
    """Ends a sink. Raises Failure when there is none of this id."""
    with open_store(settings) as store:
        known = sinks.remove(store, sink_id, actor=ACTOR, now=datetime.now(UTC))
    if not known:
        raise Failure(f"there is no sink {sink_id!r}; vouchgate sink list shows the ids")
    hint(f"Sink {sink_id} is removed. What is being sent at this moment may still arrive.")
    return 0


def show_consumers(settings: Settings, *, as_json: bool) -> int:
    """Every sink that claims named, and the token that serves it."""
    with open_store(settings) as store, store.read() as connection:
        found = sink_consumers.listing(connection)
    if as_json:
        for one in found:
            write_json(one.model_dump(mode="json"))
    elif not found:
        hint("No claim has named a sink yet.")
    else:
        rows = [
            (
                one_line(one.owner_id),
                one.sink,
                one.token_id,
                one.token_name or "?",
                f"{one.since:%Y-%m-%d %H:%M}Z",
            )
            for one in found
        ]
        show_table(("owner", "sink", "token", "name", "since"), rows, whole=3)
    return 0


def hand_over(settings: Settings, *, to: str, owner: str | None, sink: str | None, former: str | None) -> int:
    """Has the token `to` serve one sink of an owner, or all that the token `former` serves. Raises Failure when it
    cannot, and then nothing is changed."""
    if (owner is None) != (sink is None) or (owner is None) == (former is None):
        raise Failure("give --owner and --sink, or --from", USAGE)
    try:
        keys = [] if owner is None else [(owner, _SINK_NAME.validate_python(sink))]
    except ValueError:
        raise Failure(f"{sink!r} is no name that a claim can give to a sink", USAGE) from None
    with open_store(settings) as store:
        if former is not None:
            with store.read() as connection:
                listed = sink_consumers.listing(connection)
            keys = [(one.owner_id, one.sink) for one in listed if one.token_id == former]
            if not keys:
                raise Failure(f"no sink is served by a token {former!r}; vouchgate delivery sinks shows them")
        try:
            handed = acts.hand_over(store, keys, to, actor=ACTOR, now=datetime.now(UTC))
        except ValueError as error:
            raise Failure(str(error), USAGE) from error
    hint(
        f"{handed} {'sink' if handed == 1 else 'sinks'} handed over. "
        f"What the old token has leased comes to {to} within a minute."
    )
    return 0


def show(
    settings: Settings,
    *,
    owner: str | None,
    sink: str | None,
    state: DeliveryState | None,
    most: int,
    as_json: bool,
) -> int:
    """Deliveries that match, the newest of an owner first."""
    owners = None if owner is None else frozenset({owner})
    wanted = DeliveryFilter(owners=owners, sink=sink, state=state, limit=most)
    with open_store(settings) as store, store.read() as connection:
        found = deliveries.search(connection, wanted)
    if as_json:
        for record in found:
            write_json(record.model_dump(mode="json"))
    elif not found:
        hint("There is no such delivery.")
    else:
        headings = ("id", "owner", "sink", "place", "op", "state")
        show_table(headings, [(*_names(record), record.op.value, _state(record)) for record in found])
    return 0


def _names(record: DeliveryRecord) -> tuple[str, str, str, str]:
    return record.id, one_line(record.owner_id), record.sink, one_line(record.place)


def _state(record: DeliveryRecord) -> str:
    tries = "" if not record.attempts else f", failed {record.attempts}x"
    next_try = f", next try {record.due_at:%Y-%m-%d %H:%M:%S}Z" if record.due_at and record.attempts else ""
    error = f": {record.last_error}" if record.last_error else ""
    return f"{record.state.value}{tries}{next_try}{error}"


DeliveryAct = Callable[[Store, str], DeliveryRecord | NotDeadLetter | Outdated | None]


def retry(settings: Settings, ids: Sequence[str]) -> int:
    """Puts dead letters back; 1 when one of them could not be."""
    return _each(
        settings,
        ids,
        lambda store, one: acts.retry(store, None, one, actor=ACTOR, now=datetime.now(UTC)),
        "is tried again",
    )


def drop(settings: Settings, ids: Sequence[str]) -> int:
    """Gives dead letters up; 1 when one of them could not be."""
    return _each(
        settings,
        ids,
        lambda store, one: acts.drop(store, None, one, actor=ACTOR, now=datetime.now(UTC)),
        "is dropped",
    )


def _each(settings: Settings, ids: Sequence[str], act: DeliveryAct, done: str) -> int:
    status = 0
    with open_store(settings) as store:
        for one in ids:
            answer = act(store, one)
            match answer:
                case DeliveryRecord():
                    say(f"{one} {done}.")
                    continue
                case NotDeadLetter():
                    complain(f"{one} is {answer.record.state.value}, no dead letter")
                case Outdated():
                    complain(f"{one} would undo something that its place was told later; drop it instead")
                case None:
                    complain(f"there is no delivery {one!r}; vouchgate delivery list shows the ids")
            status = FAILED
    return status
