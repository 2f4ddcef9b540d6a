"""`vouchgate policy show`, `diff` and `test`: what decided, how two policies differ, what another would have done."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from vouchgate.cli.database import open_store, refuse_unknown_owner
from vouchgate.cli.output import Failure, one_line, say, show_table, write_json
from vouchgate.cli.progress import Progress
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.policy import Policy
from vouchgate.review.trust.backtest import Backtest, Backtester
from vouchgate.review.trust.in_force import in_force
from vouchgate.settings import Settings
from vouchgate.storage import policies
from vouchgate.storage.claims import decisions
from vouchgate.storage.store import Store

NOW = "now"
_PREFIX = 4  # characters of a digest that are enough to name it
_MOST = 200  # characters of a value in a difference


def show(settings: Settings, digest: str | None, at: datetime | None, owner: str | None) -> int:
    """A policy that was kept, or what was in force at a time."""
    with open_store(settings) as store:
        if at is None:
            write_policy(kept(store, digest or ""))
            return 0
        with store.browse() as connection:
            refuse_unknown_owner(connection, owner)
            found = in_force(connection, at, None if owner is None else frozenset({owner}))
        policy = None if found.policy_digest is None else store.load_policy(found.policy_digest)
    document = found.model_dump(mode="json") | {"policy": policy and json.loads(policy.document)}
    say(json.dumps(document, indent=2, ensure_ascii=False))
    return 0


def write_policy(policy: Policy) -> None:
    """One policy as JSON, with its digest."""
    document = {"digest": policy.digest, "policy": json.loads(policy.document)}
    say(json.dumps(document, indent=2, ensure_ascii=False))


def diff(settings: Settings, first: str, second: str) -> int:
    """How two policies differ, a line a field; nothing where they do not."""
    before, after = (named(settings, name) for name in (first, second))
    lines = list(differences(_plain(before), _plain(after)))
    for line in lines:
        say(one_line(line))
    say(
        f"{before.digest[:12]} and {after.digest[:12]}: {len(lines) or 'no'} difference{'s' * (len(lines) != 1)}."
    )
    return 0


def _plain(value: Any) -> Any:
    """As JSON, but with what a policy leaves out of its document because it is as ever."""
    if isinstance(value, BaseModel):
        return {name: _plain(getattr(value, name)) for name in type(value).model_fields}
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    return sorted(value) if isinstance(value, frozenset) else value


def differences(before: Any, after: Any, name: str = "") -> Iterator[str]:
    """What is otherwise in the second document, field by field, in words."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted(before.keys() | after.keys()):
            inner = f"{name}.{key}" if name else key
            if key not in after:
                yield f"{inner}: {_shown(before[key])} before, now not there"
            elif key not in before:
                yield f"{inner}: not there before, now {_shown(after[key])}"
            else:
                yield from differences(before[key], after[key], inner)
    elif before != after:
        if isinstance(before, list) and isinstance(after, list):
            gone, new = (
                [one for one in before if one not in after],
                [one for one in after if one not in before],
            )
            said = [f"without {_shown(one)}" for one in gone] + [f"with {_shown(one)}" for one in new]
            yield f"{name}: now " + (", ".join(said) or "in another order")
        else:
            yield f"{name}: {_shown(before)} before, now {_shown(after)}"


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _MOST else text[:_MOST] + "…"


def test(settings: Settings, other: str, *, since: datetime | None, owner: str | None, as_json: bool) -> int:
    """What the other policy would have made of the decisions that there are."""
    policy = named(settings, other)
    tester = Backtester(policy, lambda digest: None)
    with open_store(settings) as store, store.browse() as connection:
        refuse_unknown_owner(connection, owner)
        tester.load = store.load_policy
        total = decisions.count(connection, owner, since)
        with Progress("decisions made again") as progress:
            documents = (answer for _, answer in decisions.walk(connection, owner, since))
            tester.add(documents, lambda done: progress(done, total) if done % 100 == 0 else None)
    result = tester.result()
    write_json(result.model_dump(mode="json")) if as_json else _show(result)
    return 0


def _show(result: Backtest) -> None:
    if result.moves:
        rows = [
            [
                str(move.decisions),
                f"{move.from_tier.value} {move.from_rule}",
                f"{move.to_tier.value} {move.to_rule}",
            ]
            for move in result.moves
        ]
        show_table(["Decisions", "Was", "Would be"], rows)
    for move in result.moves:
        say(f"From {move.from_rule} to {move.to_rule}, such as:")
        for one in move.examples:
            say(f"  {one.decision_id} of {one_line(one.owner_id)}: {one_line(one.words)}")
    say(f"Under {result.digest[:12]}, of {result.decisions:,} decisions {result.moved:,} would go elsewhere;")
    say(f"{result.same:,} would stay where they are, {result.other_rule:,} of them by another rule.")
    for why, count in result.unknown.items():
        say(f"Not known of {count:,}: {why}.")


def named(settings: Settings, name: str) -> Policy:
    """The policy that a word names: a file, the beginning of a digest, or `now`. Raises Failure, PolicyError."""
    if name == NOW:
        return load_policy(settings.policy)
    if Path(name).is_file() or name.endswith(".toml"):
        return load_policy(Path(name))
    with open_store(settings) as store:
        return kept(store, name)


def kept(store: Store, prefix: str) -> Policy:
    """The policy whose digest begins so. Raises Failure where there is none, or several."""
    if len(prefix) < _PREFIX:
        raise Failure(f"name a policy by a file, or by at least {_PREFIX} characters of its digest")
    with store.browse() as connection:
        found = policies.known(connection, prefix.lower())
    if len(found) > 1:
        raise Failure(f"several policies begin so: {', '.join(digest[:16] for digest in found)}")
    policy = store.load_policy(found[0]) if found else None
    if policy is None:
        raise Failure(f"no policy {prefix!r} was ever in force here, and there is no such file")
    return policy
