"""Agents and reviewers that call a running gate over kept connections, and remember what they were told.

A server may be killed and started again elsewhere at any moment: callers then follow it. A request whose
answer was lost is sent again when it has an Idempotency-Key, until it is answered.
"""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self
from urllib.parse import urlsplit

CONSONANTS, VOWELS = "bdklmnprstvz", "aeiou"
PATIENCE_SECONDS = 60  # for one request, over all restarts of the server
PAUSE_SECONDS = 0.1  # of a reviewer who has nothing to rule on


class GaveUpError(Exception):
    """The load is over, or a request was not answered in time."""


class Where:
    """The address of the server as it is now; callers wait for it while there is none."""

    def __init__(self, url: str | None = None, *, patience: float = PATIENCE_SECONDS) -> None:
        self.patience = patience  # seconds, for one request over all restarts
        self._change = threading.Condition()
        self._url = url
        self._abandoned = False
        self.callers: list[Caller] = []

    def set(self, url: str | None) -> None:
        """The server listens here now; None: nowhere."""
        with self._change:
            self._url = url
            self._change.notify_all()

    def close(self) -> None:
        """Closes every connection; for the end of a test."""
        for caller in self.callers:
            caller.close()

    def abandon(self) -> None:
        """There will be no server any more: whoever waits for one gives up."""
        with self._change:
            self._abandoned = True
            self._change.notify_all()

    def get(self) -> str:
        """The address, once there is one. Raises GaveUpError."""
        with self._change:
            self._change.wait_for(lambda: self._url is not None or self._abandoned, self.patience)
            if self._url is None or self._abandoned:
                raise GaveUpError
            return self._url


@dataclass(frozen=True)
class Reply:
    """An answer that arrived whole."""

    status: int
    body: str
    headers: dict[str, str]

    @property
    def json(self) -> Any:
        """The body, parsed."""
        return json.loads(self.body)


class Caller:
    """One kept connection of one principal. Not for several threads. `where` closes it in the end."""

    def __init__(self, where: Where, token: str) -> None:
        where.callers.append(self)
        self._where, self.patience = where, where.patience
        self.token = token
        self._connection: http.client.HTTPConnection | None = None
        self._url = ""

    def close(self) -> None:
        """Closes the connection; the next request opens one again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def send(self, method: str, path: str, body: Any = None, key: str | None = None) -> Reply | None:
        """One try. None: whether the server took it is not known, the answer was lost."""
        url = self._where.get()
        if self._connection is None or url != self._url:
            self.close()
            self._url = url
            self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        if key is not None:
            headers["Idempotency-Key"] = key
        try:
            self._connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = self._connection.getresponse()
            text = answer.read().decode()
            return Reply(answer.status, text, {name.lower(): value for name, value in answer.getheaders()})
        except (OSError, http.client.HTTPException):
            self.close()
            return None

    def ask(self, method: str, path: str, body: Any = None, key: str | None = None) -> Reply:
        """Tries until there is an answer that is not 503. For requests that may be repeated."""
        end = time.monotonic() + self.patience
        while time.monotonic() < end:
            reply = self.send(method, path, body, key)
            if reply is not None and reply.status != 503:
                return reply
            time.sleep(0.02)
        raise GaveUpError


@dataclass(frozen=True)
class Sent:
    """A submit as it went out; `rows` has more than one claim when it was a batch."""

    token: str
    rows: tuple[dict[str, Any], ...]
    key: str | None
    batch: bool

    @property
    def path(self) -> str:
        """Where it is sent."""
        return "/v1/claims/batch" if self.batch else "/v1/claims"

    @property
    def body(self) -> dict[str, Any]:
        """The request's body."""
        return {"claims": list(self.rows)} if self.batch else self.rows[0]


@dataclass
class Ledger:
    """What callers were told. Lists only grow, so threads may add without a lock."""

    answered: list[tuple[Sent, Reply]] = field(default_factory=list)
    ruled: list[tuple[str, str, Reply]] = field(default_factory=list)  # item id, act, answer
    lost: list[Sent] = field(default_factory=list)  # without a key, so not sent again
    retried: list[str] = field(default_factory=list)  # keys of requests that were sent more than once
    refused: list[tuple[Sent, Reply]] = field(default_factory=list)  # 503
    failures: list[str] = field(default_factory=list)  # what no caller should ever see

    @property
    def count(self) -> int:
        """How many requests were answered."""
        return len(self.answered) + len(self.ruled)


def seeded(seed: object) -> random.Random:
    """A generator that throws the same in every run."""
    return random.Random(str(seed))  # noqa: S311  (to be repeated, not to be secret)


def word(number: int) -> str:
    """A word for a number: no hedge, no hexadecimal digits, no other number's."""
    syllables = []
    for _ in range(4):
        number, rest = divmod(number, len(CONSONANTS) * len(VOWELS))
        syllables.append(CONSONANTS[rest % len(CONSONANTS)] + VOWELS[rest // len(CONSONANTS)])
    return "zor" + "".join(syllables)


def claim(number: int, owner: str, source: str) -> dict[str, Any]:
    """A claim that is like no other number's. `user` is stored, `ai_synthesis` waits, `guess` is blocked."""
    content = f"The {word(number)} pump feeds its {word(number + 10**6)} tank in the {word(number + 2 * 10**6)} hall."
    if source == "guess":
        return wire(f"I think that {content[0].lower()}{content[1:]}", owner, "user")
    return wire(content, owner, source)


def conflict(number: int, port: int, owner: str) -> dict[str, Any]:
    """A claim that says the same as another of its number, but for the value."""
    return wire(
        f"The {word(number)} gateway in the northern hall forwards every message of the billing team to the archive"
        f" host through the inner proxy, keeps a copy in its own vault, and listens there on port {port} at all"
        " times.",
        owner,
        "user",
    )


def wire(content: str, owner: str, source: str) -> dict[str, Any]:
    """A claim as a request's body."""
    return {"content": content, "memory_type": "fact", "source": source, "user_id": owner}


def agent(caller: Caller, number: int, owners: Sequence[str], ledger: Ledger, stop: threading.Event) -> None:
    """Submits until told to stop: new claims and repeats, alone and in batches, with and without keys."""
    dice = seeded(f"agent {number}")
    sent_before: list[dict[str, Any]] = []
    serial = number * 100_000

    def one() -> dict[str, Any]:
        nonlocal serial
        serial += 1
        owner, kind = dice.choice(owners), dice.random()
        if kind < 0.1 and sent_before:
            return dice.choice(sent_before)
        if kind < 0.2:
            made = conflict(number * 100_000 + dice.randrange(20), 8000 + dice.randrange(500), owner)
        else:
            source = "user" if kind < 0.55 else "ai_synthesis" if kind < 0.9 else "guess"
            made = claim(serial, owner, source)
        sent_before.append(made)
        return made

    while not stop.is_set():
        batch = dice.random() < 0.1
        rows = tuple(one() for _ in range(dice.randint(2, 8) if batch else 1))
        key = f"agent-{number}-{serial}" if batch or dice.random() < 0.7 else None
        submit(caller, Sent(caller.token, rows, key, batch), ledger)


def submit(caller: Caller, sent: Sent, ledger: Ledger) -> None:
    """Sends it, again and again if it has a key, and notes what came back."""
    end = time.monotonic() + caller.patience
    tries = 0
    while time.monotonic() < end:
        reply = caller.send("POST", sent.path, sent.body, sent.key)
        tries += 1
        if tries == 2 and sent.key is not None:
            ledger.retried.append(sent.key)
        if reply is not None and reply.status == 503:
            ledger.refused.append((sent, reply))
        elif reply is not None and not (sent.batch and _refused_in_part(reply)):
            ledger.answered.append((sent, reply))
            return
        if sent.key is None:
            if reply is None:
                ledger.lost.append(sent)
            return
        time.sleep(0.02)
    raise GaveUpError


def _refused_in_part(reply: Reply) -> bool:
    return reply.status == 200 and any(row.get("status") == 503 for row in reply.json["results"])


def reviewer(caller: Caller, number: int, ledger: Ledger, stop: threading.Event) -> None:
    """Rules on what waits until told to stop; leaves half of what it sees waiting."""
    dice = seeded(f"reviewer {number}")
    while not stop.is_set():
        page = caller.send("GET", "/v1/reviews?limit=40")
        items = page.json["items"] if page is not None and page.status == 200 else []
        if page is not None and page.status not in (200, 503):
            ledger.failures.append(f"reviews: {page.status} {page.body}")
        for item in items[: len(items) // 2]:
            act = "approve" if dice.random() < 0.6 else "reject"
            body: dict[str, Any] = {"version": item["version"]}
            if act == "reject":
                body["reason"] = "it is not so"
            elif item["conflicting_memory_id"] is not None:
                body["supersede"] = dice.random() < 0.5
            reply = caller.send("POST", f"/v1/reviews/{item['id']}/{act}", body)
            if reply is not None:
                ledger.ruled.append((item["id"], act, reply))
        if len(items) < 2:  # of which there is no half: not asked for again and again, each time as much work
            stop.wait(PAUSE_SECONDS)


class Load:
    """One thread for each of these tokens, from the beginning of the block to `finish`.
    `connect` makes the caller of a token."""

    def __init__(
        self,
        where: Where,
        agents: Sequence[str],
        reviewers: Sequence[str],
        owners: Sequence[str],
        *,
        connect: Callable[[Where, str], Caller] = Caller,
    ) -> None:
        self.ledger = Ledger()
        self._where = where
        self._stop = threading.Event()
        self._callers = [connect(where, token) for token in (*agents, *reviewers)]
        self._threads = []
        for number, caller in enumerate(self._callers):
            if number < len(agents):
                act = partial(agent, caller, number, owners, self.ledger, self._stop)
            else:
                act = partial(reviewer, caller, number, self.ledger, self._stop)
            self._threads.append(threading.Thread(target=self._run, args=(act,), daemon=True))

    def add(self, act: Callable[[threading.Event], None]) -> None:
        """One thread more, ahead of the block: it is given what tells it to stop."""
        self._threads.append(
            threading.Thread(target=self._run, args=(partial(act, self._stop),), daemon=True)
        )

    def _run(self, act: Callable[[], None]) -> None:
        try:
            act()
        except Exception as error:  # noqa: BLE001  (it fails the test, not the thread alone)
            self.ledger.failures.append(repr(error))

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def finish(self) -> Ledger:
        """Lets every caller finish what it has under way, for which there must be a server."""
        self._stop.set()
        for thread in self._threads:
            thread.join(PATIENCE_SECONDS)
        assert not any(thread.is_alive() for thread in self._threads)
        return self.ledger

    def __exit__(self, *_: object) -> None:
        self._where.abandon()
        self.finish()

    def wait_for(self, more: int) -> None:
        """Waits until so many more requests were answered."""
        goal, end = self.ledger.count + more, time.monotonic() + PATIENCE_SECONDS
        while self.ledger.count < goal:
            assert time.monotonic() < end, "the load does not move on"
            assert not self.ledger.failures, self.ledger.failures
            time.sleep(0.005)
