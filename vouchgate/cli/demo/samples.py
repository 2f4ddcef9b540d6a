"""What `vouchgate demo` sends: claims for every rule, the repository they cite, and the pages they cite."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from vouchgate.ingest.claims.claim import MemoryType, Source

# What the demo's agent may assert. Documentation is left out, to show what becomes of a source not granted.
GRANTED = (Source.USER, Source.CONVERSATION, Source.CHAT)


@dataclass(frozen=True, slots=True)
class Sample:
    """A claim to send. `{kept}` and `{undone}` in `content` become commit ids of the demo's repository, `{site}`
    the address of its website; `note` says what there is to see when that is not plain."""

    content: str
    memory_type: MemoryType
    source: Source
    note: str = ""


_EXPORT = (
    "The nightly export job starts at 02:00 UTC, writes one compressed file per customer to the archive"
    " bucket, and must finish before the billing run begins at {}."
)

SAMPLES = (
    Sample("Orders are kept in PostgreSQL, see ADR-003.", MemoryType.DECISION, Source.AI_SYNTHESIS),
    Sample("Webhooks are retried three times since {kept}.", MemoryType.FACT, Source.AI_SYNTHESIS),
    Sample(
        "Orders are kept in PostgreSQL (ADR-003), and refunds need no approval.",
        MemoryType.DECISION,
        Source.AI_SYNTHESIS,
        "half of it is true, and half is said nowhere",
    ),
    Sample(
        "As ADR-004 says, parcels are tracked by polling.",
        MemoryType.DECISION,
        Source.AI_SYNTHESIS,
        "the record weighed it, and chose another",
    ),
    Sample("I prefer answers in British spelling.", MemoryType.PREFERENCE, Source.USER),
    Sample("We release on Tuesdays, never on Fridays.", MemoryType.DECISION, Source.CONVERSATION),
    Sample(_EXPORT.format("05:30"), MemoryType.FACT, Source.USER),
    Sample(_EXPORT.format("06:30"), MemoryType.FACT, Source.USER),
    Sample(
        "orders are kept  in PostgreSQL, see adr-003.",
        MemoryType.DECISION,
        Source.AI_SYNTHESIS,
        "case and spacing change nothing",
    ),
    Sample("Sessions live in Redis, as ADR-042 says.", MemoryType.DECISION, Source.AI_SYNTHESIS),
    Sample("Orders are kept in MongoDB (ADR-002).", MemoryType.DECISION, Source.AI_SYNTHESIS),
    Sample("Invoices are cached for an hour since {undone}.", MemoryType.FACT, Source.AI_SYNTHESIS),
    Sample("Parcels over 30 kg go by freight, see {site}/shipping.", MemoryType.FACT, Source.AI_SYNTHESIS),
    Sample(
        "Refunds are guaranteed within three days, see {site}/refund-promise.",
        MemoryType.FACT,
        Source.AI_SYNTHESIS,
        "a link that was made up",
    ),
    Sample(
        "Gift cards lose their value after two years ({site}/shipping).",
        MemoryType.FACT,
        Source.AI_SYNTHESIS,
        "the page is real, and about something else",
    ),
    Sample(
        "Orders placed by 18:00 leave the warehouse the same day, as {site}/shipping says.",
        MemoryType.FACT,
        Source.AI_SYNTHESIS,
        "the page is real, and says otherwise",
    ),
    Sample(
        "The carrier's tracking interface allows 60 calls a minute, see {site}/carrier.",
        MemoryType.FACT,
        Source.AI_SYNTHESIS,
        "it is asked again by itself, and stored when the page is back: the policy lists the site",
    ),
    Sample("I think we should move the cache to Redis.", MemoryType.FACT, Source.AI_SYNTHESIS),
    Sample(
        "I th\u0456nk the sign-in cache has no limit.",
        MemoryType.FACT,
        Source.USER,
        "an і of another alphabet hides nothing, and no source carries a guess",
    ),
    Sample("I have not checked whether refunds are logged.", MemoryType.FACT, Source.AI_SYNTHESIS),
    Sample("Maybe we could shard the orders table.", MemoryType.DECISION, Source.AI_SYNTHESIS),
    Sample("The import may time out on large files.", MemoryType.FACT, Source.AI_SYNTHESIS),
    Sample(
        "The dashboard header is #c0ffee.",
        MemoryType.FACT,
        Source.AI_SYNTHESIS,
        "a colour is no commit and no issue",
    ),
    Sample(
        "Passwords are hashed with Argon2.",
        MemoryType.FACT,
        Source.DOCUMENTATION,
        "not granted to this agent, so it counts as ai_synthesis",
    ),
    Sample(
        "Parcels are tracked by webhooks.",
        MemoryType.FACT,
        Source.AI_SYNTHESIS,
        "it cites nothing, and the gate found the record that says so",
    ),
    Sample(
        "Damaged goods are taken back for 30 days.",
        MemoryType.FACT,
        Source.AI_SYNTHESIS,
        "the same, from the shop's handbook: a folder that is official",
    ),
    Sample("The public API answers in JSON.", MemoryType.FACT, Source.AI_SYNTHESIS),
    Sample(
        "The public API answers in JSON.", MemoryType.FACT, Source.AI_SYNTHESIS, "asked again: no second item"
    ),
)

_ADRS = {
    "0002-mongodb.md": """# 2. Keep orders in MongoDB

## Status

Superseded by ADR-003

## Decision

Orders are documents in MongoDB.
""",
    "0003-postgresql.md": """# 3. Keep orders in PostgreSQL

## Status

Accepted

## Decision

Orders are kept in PostgreSQL as rows, because money needs transactions.
""",
    "0004-tracking.md": """# 4. How parcels are tracked

## Status

Accepted

## Considered Options

* Polling
* Webhooks

## Decision Outcome

Chosen option: "Webhooks", because a carrier counts the calls it gets. Parcels are tracked by webhooks.
""",
}

# The documents of the demo's official corpus.
HANDBOOK = {
    "returns.md": """# Returns

Damaged goods are taken back for 30 days. Whoever takes them back writes down what was broken, and when it was noticed.
""",
}

# The pages of the demo's website. All else there is a 404; /carrier is out of order for CARRIER_SECONDS.
PAGES = {
    "/shipping": """<!doctype html><html lang="en"><head><title>Shipping</title></head><body><main>
<h1>Shipping</h1>
<p>Orders placed by 14:00 leave the warehouse the same day; later ones leave on the next working day.</p>
<p>Parcels up to 30 kg are delivered by the parcel service. Parcels over 30 kg go by freight, and the driver rings
an hour ahead.</p>
</main></body></html>""",
    "/carrier": """<!doctype html><html lang="en"><head><title>Tracking interface</title></head><body><main>
<h1>The carrier's tracking interface</h1>
<p>The tracking interface allows 60 calls a minute for each customer of the carrier. Calls over that are answered
with status 429.</p>
</main></body></html>""",
}
CARRIER_SECONDS = 20

_ENVIRONMENT = {
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
    "GIT_AUTHOR_DATE": "2026-03-02T09:00:00Z",  # fixed, so that the commit ids are the same every time
    "GIT_COMMITTER_DATE": "2026-03-02T09:00:00Z",
    "GIT_CONFIG_GLOBAL": os.devnull,  # hooks, signing and templates of the person who runs this are not asked
    "GIT_CONFIG_NOSYSTEM": "1",
}


def make_repository(path: Path) -> dict[str, str]:
    """Makes the repository that the samples cite; the abbreviated ids of its `kept` and `undone` commits.

    Raises OSError when there is no git program, CalledProcessError when it fails.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ("git", *arguments),
            cwd=path,
            env={**inherited, **_ENVIRONMENT},
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    def commit(message: str, files: dict[str, str]) -> str:
        for name, text in files.items():
            file = path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
        git("add", "--all")
        git("commit", "--quiet", "--message", message)
        return git("rev-parse", "--short=7", "HEAD")

    path.mkdir(parents=True)
    git("init", "--quiet", "--initial-branch=main")
    commit("Write down where orders are kept", {f"docs/adr/{name}": text for name, text in _ADRS.items()})
    kept = commit("Retry webhooks three times", {"webhooks.toml": "retries = 3\n"})
    undone = commit("Cache invoices for an hour", {"cache.toml": "invoices_seconds = 3600\n"})
    git("revert", "--no-edit", "HEAD")
    return {"kept": kept, "undone": undone}
