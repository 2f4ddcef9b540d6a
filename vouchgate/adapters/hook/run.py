"""`vouchgate hook run`: a harness's JSON on standard input, its answer on standard output. Whatever fails denies.

Each part that a call adds to memory is a claim, an agent's own word; the call goes on when all of them are stored.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

from vouchgate.adapters.hook.harnesses import HARNESSES, SECONDS, Answer
from vouchgate.adapters.hook.writes import Unnamed, Unreadable, added, after, paths, writes_of
from vouchgate.ingest.sources.patterns import MEMORY_FILES, PathPatterns

MOST_BYTES = 8 * 1024 * 1024  # of a call
MOST_CLAIMS = 100  # that a call may add: the gate reads the sources of each
PATIENCE = SECONDS - 15.0  # seconds until the call is denied; the harness's own limit would let it through
_MOST_SHOWN = 10  # of what is held, in an answer
_WHAT_NOW = (
    "Nothing was written. Write the rest alone, and these word for word once approved; do not go round it."
)


def main(name: str) -> int:
    """Answers one call. The status is 2, which every harness takes for a denial, when it cannot even be answered."""
    harness = HARNESSES.get(name)
    if harness is None:
        print(f"vouchgate: {name} is none of {', '.join(HARNESSES)}", file=sys.stderr)
        return 2
    answers: list[Answer] = []
    worker = threading.Thread(target=lambda: answers.append(_answer(os.environ)), daemon=True)
    worker.start()
    worker.join(PATIENCE)
    answer = answers[0] if answers else _denied(f"there was no answer within {PATIENCE:.0f} seconds")
    print(json.dumps(harness.form(answer)), flush=True)
    if worker.is_alive():
        os._exit(0)  # without waiting for what it has hold of, which would end in an abort
    return 0


def _answer(environment: Mapping[str, str]) -> Answer:
    try:
        return decide(sys.stdin.buffer.read(MOST_BYTES + 1), environment)
    except Exception as error:  # noqa: BLE001  (whatever it is, it denies, and is told)
        known = isinstance(error, ValueError) or type(error).__module__.startswith("vouchgate")
        return _denied(str(error) if known else f"{type(error).__name__}: {error}")


def _denied(why: str) -> Answer:
    text = f"Vouchgate could not decide about a write to memory, so it is denied: {why.rstrip('.')}."
    return Answer(f"{text} Nothing was written. Tell the user; do not write it another way.", text)


def decide(given: bytes, environment: Mapping[str, str]) -> Answer:
    """What the call is answered. Raises Unreadable, ValueError for settings, and the client's VouchgateError."""
    if len(given) > MOST_BYTES:
        raise Unreadable(f"the call is over {MOST_BYTES} bytes")
    try:
        match json.loads(given):
            case {"tool_name": str(tool), "tool_input": dict(asked), **more}:
                memory = MemoryFiles(str(more.get("cwd") or "."), environment)
            case _:
                raise Unreadable("what the harness sent names no tool, or not what it is to do")
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
        raise Unreadable("what the harness sent is no JSON") from None
    try:
        writes = writes_of(tool, asked)
    except Unnamed:
        raise
    except Unreadable as error:
        if named := next(filter(None, map(memory.touched, paths(asked))), None):
            raise Unreadable(f"{error}, and it names {named}, a memory file") from None
        return Answer()
    claims: list[tuple[str, str]] = []
    for path, edits in writes:
        if name := memory.settings(path):  # where what is taken out counts as well
            return Answer(
                f"Vouchgate lets no agent write {name}, in which its hook stands. Nothing was written. Tell the user, "
                "who can change it; do not write it another way.",
                f"Vouchgate denied a write to {name}, in which its hook stands: change it yourself.",
            )
        if name := memory.name(path):
            file = Path(memory.path(path))
            before = file.read_text("utf-8-sig", "replace") if file.exists() else ""
            claims += [(text, name) for text in added(before, after(before, edits))]
    if len(claims) > MOST_CLAIMS:
        raise Unreadable(f"it adds {len(claims)} statements; write at most {MOST_CLAIMS} at a time")
    return _ask(claims, environment) if claims else Answer()


class MemoryFiles:
    """Which files are memory: those that VOUCHGATE_MEMORY_FILES names, seen from the directories of the call, and the
    settings of the harnesses, in which this hook stands."""

    def __init__(self, cwd: str, environment: Mapping[str, str]) -> None:
        named = environment.get("VOUCHGATE_MEMORY_FILES", "").split(",")
        patterns = tuple(filter(None, map(str.strip, named))) or MEMORY_FILES
        own = [f"**/{file}" for harness in HARNESSES.values() for file in harness.settings]
        self._settings = PathPatterns(own, any_case=True)
        self._patterns = PathPatterns([*patterns, *own], any_case=True)
        real = os.path.realpath(cwd)
        above = [real, *map(str, Path(real).parents)]
        project = [each for each in above if os.path.exists(f"{each}/.git")][:1]  # noqa: PTH110  (may be forbidden)
        given = [environment.get("CLAUDE_PROJECT_DIR"), environment.get("GEMINI_PROJECT_DIR")]
        roots = [cwd, *project, *given, "~", "/"]
        self._roots = [os.path.expanduser(each) for each in roots if each]  # noqa: PTH111  (pathlib takes 5 ms)

    def path(self, path: str) -> str:
        """Where that is, from the call's working directory."""
        return os.path.join(self._roots[0], os.path.expanduser(path))  # noqa: PTH111, PTH118

    def name(self, path: str) -> str | None:
        """What a memory file is called, by the way to it or by what links lead to; None when it is none."""
        return self._named(self._patterns, path)

    def touched(self, path: str) -> str | None:
        """The same, of what is done to it nobody knows: a folder may be moved with the settings in it."""
        return (
            self.name(path) or self.settings(f"{path}/hooks.json") or self.settings(f"{path}/settings.json")
        )

    def settings(self, path: str) -> str | None:
        """The same, of those files alone by which a harness knows whether there is a hook."""
        return self._named(self._settings, path)

    def _named(self, patterns: PathPatterns, path: str) -> str | None:
        for resolve in (os.path.normpath, os.path.realpath):
            found = resolve(self.path(path.removeprefix("file://")))
            for root in self._roots:
                below = os.path.relpath(found, resolve(root)).replace(os.sep, "/")
                if not below.startswith("../") and patterns.match(below):
                    return below
        return None


def _ask(claims: list[tuple[str, str]], environment: Mapping[str, str]) -> Answer:
    from vouchgate.client import Client, Problem, next_step  # noqa: PLC0415  (which most calls do not need)
    from vouchgate.client.config import DEFAULT_URL  # noqa: PLC0415
    from vouchgate.ingest.rules import Rule  # noqa: PLC0415

    place = f"{(environment.get('VOUCHGATE_URL') or DEFAULT_URL).rstrip('/')}/review"
    bodies = [{"content": text, "metadata": {"file": name}} for text, name in claims]
    held: list[str] = []
    waiting = 0
    with Client(retries=1) as client:
        for (text, _), result in zip(claims, client.save_many(bodies), strict=True):
            if isinstance(result, Problem):
                step = f"{result.detail} {result.next_step}".strip()
            else:
                # Of what is stored already, this very text may be written; what is only like it may not.
                earlier = result.conflicting_memory_id if result.rule is Rule.DUPLICATE else None
                if result.as_sent or (earlier and client.memory(earlier).content.split() == text.split()):
                    continue
                step = next_step(result)
                if result.queue_id is not None:
                    waiting += 1
                    step += f" Its owner rules on it at {place}/items/{result.queue_id}."
            line = " ".join(text.split())
            held.append(f"- “{line if len(line) <= 100 else line[:99] + '…'}”: {step}")
    if not held:
        return Answer()
    files = ", ".join(dict.fromkeys(name for _, name in claims))
    head = f"Vouchgate holds back this write to {files}: {len(held)} of {len(claims)} statements do not pass."
    more = [f"- and {len(held) - _MOST_SHOWN} more"] if len(held) > _MOST_SHOWN else []
    return Answer(
        "\n".join([head, *held[:_MOST_SHOWN], *more, _WHAT_NOW]),
        f"{head} {waiting} wait for their owner at {place} (or: vouchgate review list).",
    )
