"""The repository that two of the memories cite: made anew, the same every time, hashes included."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def _record(number: int, title: str, decision: str, consequences: str) -> str:
    return (
        f"# {number}. {title}\n\n## Status\n\nAccepted\n\n## Decision\n\n{decision}\n\n"
        f"## Consequences\n\n{consequences}\n"
    )


_FIRST = {
    "README.md": "# Ferryman\n\nFerryman is a Python 3.12 service that tracks shipments.\n",
    "docs/adr/0001-use-postgresql.md": _record(
        1,
        "Use PostgreSQL",
        "Shipments are stored in PostgreSQL 15.",
        "The read model lives in a schema of its own.",
    ),
    "docs/adr/0002-redis-streams.md": _record(
        2,
        "Redis Streams for events",
        "We chose Redis Streams for events. Events travel over Redis Streams. "
        "This replaced the old Celery workers.",
        "Celery is gone. Old Celery tasks may not be added again.",
    ),
    "docs/adr/0003-retries.md": _record(
        3,
        "Retries",
        "Failed deliveries are retried five times with exponential backoff.",
        "The retry policy is in src/ferryman/retry.py.",
    ),
    "docs/adr/0004-token-lifetime.md": _record(
        4, "Token lifetime", "API tokens expire after 30 days.", "Clients have to renew tokens."
    ),
    "docs/adr/0005-uv.md": _record(
        5,
        "Use uv",
        "Dependencies are managed with uv.",
        "Poetry was used before and is gone.",
    ),
    "docs/runbook.md": "# A stuck queue\n\nA stuck queue is cleared with "
    "`ferry queue drain --older 1h`. The command asks before it drops anything.\n",
    "docs/style.md": "# Style\n\nThis is the style guide. Error messages end without a full stop.\n",
    "src/ferryman/config.py": '"""Settings."""\n\nDEFAULT_PORT = 8080  # the default port\n'
    "TIMEOUT_SECONDS = 10  # the request timeout\n",
    "src/ferryman/address.py": "def validate_postcode(text):\n"
    '    """Postcodes are validated here."""\n    return bool(text)\n',
    "src/ferryman/store.py": '"""Queries go through here, never from a view."""\n',
    "src/ferryman/api/tokens.py": '"""The token code: API tokens are signed with Ed25519."""\n',
    "src/web/client.ts": "// The frontend talks to the API through this client.\n",
    "scripts/anonymise.sql": "-- The dump is made by this script.\n",
    "flags.toml": "new_labels = true\nsplit_invoices = false\n",
    "holidays.csv": "date,carrier\n2025-12-25,DHL\n",
    "notes/travel/lisbon.md": "# Travel notes about Lisbon\n\n"
    "Lisbon: take the tram 28 before nine in the morning.\n",
    "notes/recipes/bacalhau.md": "# Recipe for bacalhau\n\nBacalhau is soaked for 24 hours.\n",
    "runbooks/certificates.md": "# Certificates\n\nCertificates are renewed 30 days before they expire.\n",
    "runbooks/2025-07-plover.md": "# Post-mortem of the incident 2025-07\n\n"
    "Plover lost 31 jobs on 18 July 2025. The jobs were run again the next day.\n",
}
_RETRY = {"src/ferryman/retry.py": '"""The retry policy."""\n\nTRIES = 5\nBASE_SECONDS = 2\n'}
_TIMEOUT = {
    "src/ferryman/config.py": '"""Settings."""\n\nDEFAULT_PORT = 8080  # the default port\n'
    "TIMEOUT_SECONDS = 30  # the request timeout\n"
}
_COMMITS = (
    ("Start Ferryman", _FIRST),
    ("Remove Celery: the retry policy is ours now, Celery is gone", _RETRY),
    ("Raise the request timeout to 30 seconds", _TIMEOUT),
)


def make_repository(folder: Path) -> list[str]:
    """A git repository in the empty folder; the hashes of its commits, the first one first."""
    who = {
        f"GIT_{role}_{what}": value
        for role in ("AUTHOR", "COMMITTER")
        for what, value in (
            ("NAME", "Ferryman"),
            ("EMAIL", "ferryman@example.org"),
            ("DATE", "2025-01-01T12:00:00Z"),
        )
    }
    environment = {**os.environ, **who, "GIT_CONFIG_GLOBAL": os.devnull}

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments],
            cwd=folder,
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    git("init", "--quiet", "--initial-branch", "main")
    hashes = []
    for message, files in _COMMITS:
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        git("add", "--all")
        git("commit", "--quiet", "--message", message)
        hashes.append(git("rev-parse", "HEAD"))
    return hashes
