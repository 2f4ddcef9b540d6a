"""More callers of a running gate, beside the agents and reviewers of `load`: those who cite pages, check, deliver, read
back, retract and erase; the pages; and what must never be told."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.running.load import Caller, GaveUpError, Ledger, Reply, Sent, Where, claim, seeded, wire, word
from tests.web import Answer, Asked, Route

NAMED = {
    "storage_unavailable"
}  # the one problem with status 503 that callers may see while things are killed
HANGS = 4.0  # seconds, beyond the deadline of a claim
NUMBERS = 40**4  # of claims
VOUCHED, READS, ENDED = "tier 1 is vouched for", "what was answered reads back", "what was ended is gone"
# Short deadlines, quick re-checks, and queues that are full before long where nobody clears them.
POLICY = """deadline_seconds = 2.0
queue = {{ per_agent = {places}, per_owner = {places} }}
limits = {{ claims_per_minute = 1000000 }}
web = {{ spacing_seconds = 0.02 }}
recheck = {{ first_seconds = 2, growth = 2 }}
remember = {{ missing_minutes = 1 }}
documents = {{ waiting = 1000, kept = 100000 }}
"""


class Pages(dict[str, Route]):
    """Pages that say what a claim of their number says (`/page/N`), or another value (`/lie/N`), and a receiver of
    messages (`/hook`). One time in four it hangs, breaks or talks nonsense, until `well`."""

    def __init__(self, seed: object) -> None:
        self._dice, self.well, self.faults = seeded(seed), threading.Event(), Counter[str]()
        self.bodies = defaultdict[str, set[bytes]](set)  # of messages that were taken in, by their id

    def get(self, path: str, default: Any = None) -> Any:
        return self._answer

    def _answer(self, asked: Asked) -> Answer:
        fault = "" if self.well.is_set() else self._dice.choice([""] * 9 + ["hangs", "500", "garbage"])
        self.faults[fault] += 1
        if fault == "500":
            return Answer("out of order", 500)
        if fault == "garbage":
            headers = {"Content-Type": "text/html", "Content-Encoding": "gzip"}
            return Answer(self._dice.randbytes(3000), headers=headers)
        delay = HANGS if fault else 0.0
        if asked.path == "/hook":
            self.bodies[asked.headers["webhook-id"]].add(asked.body)
            return Answer(delay=delay)
        kind, _, number = asked.path.strip("/").partition("/")
        said = statement(int(number), lie=kind == "lie") if number.isdecimal() else "Nothing"
        return Answer(f"<html><title>Ports</title><body><p>{said}.</p></body></html>", delay=delay)


def statement(number: int, *, lie: bool = False) -> str:
    """What a page says."""
    return f"The {word(number)} gateway exports its metrics on port {10_000 + number % 40_000 + lie}"


@dataclass
class Told:
    """What callers were told, beside the ledger. `broken` has, by the invariant, what nobody may ever be told."""

    broken: dict[str, list[str]] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)  # of each answer since somebody last looked
    statuses: Counter[int] = field(default_factory=Counter)
    lies: set[str] = field(default_factory=set)  # decisions on claims that cite one
    to_deliver: set[str] = field(default_factory=set)  # memories
    delivered: dict[str, str] = field(
        default_factory=dict
    )  # deliveries that were done, and heard; their memories
    documents: list[str] = field(default_factory=list)
    ended: dict[str, str] = field(default_factory=dict)  # memories that were retracted or erased

    def note(self, name: str, sentences: Iterable[str]) -> None:
        """What did not hold of the invariant of this name."""
        if found := list(sentences):
            self.broken.setdefault(name, []).extend(found)

    def expect(self, name: str, reply: Reply, *statuses: int) -> None:
        """Notes an answer of another status."""
        if reply.status not in statuses:
            self.note(name, [f"the answer was {reply.status} {reply.body[:200]}"])


class Paced(Caller):
    """A caller that sends so many requests a second at most, and notes what it is told."""

    def __init__(self, where: Where, token: str, told: Told, rate: float) -> None:
        super().__init__(where, token)
        self._told, self._pause, self._next = told, 1 / rate, 0.0

    def send(self, method: str, path: str, body: Any = None, key: str | None = None) -> Reply | None:
        """One try, when its turn has come."""
        time.sleep(max(0.0, self._next - time.monotonic()))
        begin = time.monotonic()
        self._next = begin + self._pause
        if (reply := super().send(method, path, body, key)) is not None:
            self._told.seconds.append(time.monotonic() - begin)
            self._told.statuses[reply.status] += 1
            named = reply.status == 503 and "retry-after" in reply.headers and reply.json.get("code") in NAMED
            if reply.status >= 500 and not named:
                self._told.expect("no 5xx but the named ones", reply)
        return reply


def until_stopped(act: Callable[[Random], None]) -> Callable[[threading.Event], None]:
    """`act` again and again, for a thread of a `Load`."""

    def run(stop: threading.Event) -> None:
        dice = seeded(act.__name__)
        while not stop.is_set():
            try:
                act(dice)
            except GaveUpError:
                if not stop.is_set():
                    raise

    return run


@dataclass
class Actor:
    """One who does things to the gate that no ledger of the tests has."""

    told: Told
    ledger: Ledger
    caller: Caller
    site: str = ""  # where the pages are
    owner: Caller | None = None

    def claim(self, body: dict[str, Any]) -> dict[str, Any]:
        """Sends a claim until it is answered, under a key of its own, and notes it."""
        key = f"soak {body['content']}"
        reply = self.caller.ask("POST", "/v1/claims", body, key)
        self.ledger.answered.append((Sent(self.caller.token, (body,), key, batch=False), reply))
        return dict(reply.json)

    def cites(self, dice: Random) -> None:
        """Cites a page, a true one or another, in a claim that nothing else vouches for."""
        number, lie = dice.randrange(NUMBERS), dice.random() < 0.3
        text = f"{statement(number)}, see {self.site}/{'lie' if lie else 'page'}/{number}"
        decided = self.claim(wire(text, "cite", "ai_synthesis")).get("decision_id")
        if lie and decided is not None:
            self.told.lies.add(decided)

    def checks(self, dice: Random) -> None:
        """Checks a claim, and now and then leaves a document to be checked."""
        number = dice.randrange(NUMBERS)
        text = f"{statement(number)}, see {self.site}/page/{number}"
        asked = self.caller.ask("POST", "/v1/claims/check", wire(text, "check", "ai_synthesis"))
        self.told.expect("checks are answered", asked, 200)
        if dice.random() < 0.3:
            sent = {"content": f"# Ports\n\n{text}.\n", "user_id": "check", "name": "ports.md"}
            reply = self.caller.ask("POST", "/v1/documents", sent, f"document {number}")
            self.told.expect("documents are taken", reply, 202)
            if reply.status == 202:
                self.told.documents.append(reply.json["id"])

    def delivers(self, dice: Random) -> None:
        """Sends a claim for a store of its own, and fetches for it what may be written."""
        number = dice.randrange(NUMBERS)
        there = {"sink": "shelf", "place": f"box {number}", "op": "put", "data": {"box": number}}
        row = self.claim(claim(number, "shelf", "user") | {"delivery": there})
        if row.get("outcome") == "stored":
            self.told.to_deliver.add(row["memory_id"])
        self.fetch(dice)

    def fetch(self, dice: Random | None = None) -> bool:
        """Takes over what is due, but for some that fail with the `dice`; whether there was anything."""
        wanted = {"sink": "shelf", "user_id": "shelf"}
        leased = self.caller.ask("POST", "/v1/deliveries/lease", wanted).json["deliveries"]
        for one in leased:
            path, lease = f"/v1/deliveries/{one['id']}", {"lease": one["lease"]}
            if one["id"] in self.told.delivered:
                self.told.note("deliveries come once", [f"{one['id']} came again after it was done"])
            if dice is not None and dice.random() < 0.1:
                self.caller.send("POST", f"{path}/failed", lease | {"error": "no room"})
                break
            if self.caller.ask("POST", f"{path}/done", lease).status == 200:
                self.told.delivered[one["id"]] = one["memory_id"]
        return bool(leased)

    def ends(self, dice: Random) -> None:
        """Stores a claim, and then perhaps takes it back, or has it erased for good."""
        stored = self.claim(claim(dice.randrange(NUMBERS), "end", "user")).get("memory_id")
        how = dice.choices(("", "retracted", "erased"), (20, 6, 1))[0]
        if stored is None or not how or self.owner is None:
            return
        self.told.ended[stored] = how  # from now on it may be so
        if how == "retracted":
            gone = self.owner.ask("DELETE", f"/v1/memories/{stored}?reason=over")
        else:
            gone = self.owner.ask("POST", f"/v1/erasures/{stored}", {"basis": "GDPR Art. 17"})
        self.told.expect(ENDED, gone, 200, 409, 410)  # 409, 410: an earlier one whose answer was lost

    def reads(self, dice: Random) -> None:
        """Reads back what was answered; asks for a receipt."""
        if not self.ledger.answered:
            time.sleep(0.1)
            return
        self.read_back(dice.choice(self.ledger.answered)[1], 200, 202)

    def read_back(self, reply: Reply, *receipt: int) -> None:
        """Looks whether a claim that was sent alone is as it was answered, and its receipt has one of these statuses,
        unless it was erased."""
        row = reply.json
        if (name := row.get("decision_id")) is None:
            return
        memory = row["memory_id"] or ""
        read = self.caller.ask("GET", f"/v1/memories/{memory}") if memory else None
        decided = self.caller.ask("GET", f"/v1/decisions/{name}")
        end = time.monotonic() + (0 if 202 in receipt else 60)  # it may come late where the machine is busy
        while (
            proof := self.caller.ask("GET", f"/v1/receipts/{name}")
        ).status == 202 and time.monotonic() < end:
            time.sleep(0.2)
        if self.told.ended.get(memory) == "erased":
            return
        self.told.expect("receipts come", proof, *receipt)
        self.told.expect(READS, decided, 200)
        if decided.status == 200 and decided.json["outcome"] != row["outcome"]:
            self.told.note(READS, [f"{name} was {row['outcome']}, and reads {decided.body[:200]}"])
        if read is not None and (read.status, read.json.get("content")) != (
            200,
            row["evidence"]["claim"]["content"],
        ):
            self.told.note(READS, [f"{memory} was stored, and reads {read.status} {read.body[:200]}"])
