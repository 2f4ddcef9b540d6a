"""Claims with a source that speaks of them, and some with a source that says otherwise, written by hand.

Every claim with the source of another pair of its field is a pair that is off topic: the hard ones, since they
share the words of the field.
"""

from __future__ import annotations

from typing import NamedTuple


class Pair(NamedTuple):
    """`source` speaks of `claim`; its first line is its title."""

    field: str
    claim: str
    source: str


PAIRS = (
    Pair(
        "pages",
        "The Lindera bridge was closed to lorries in 1987.",
        "Lindera bridge\nThe bridge carries the old road over the gorge. After cracks had been found in two of its "
        "arches, it was shut for lorries in 1987 and strengthened a decade later.",
    ),
    Pair(
        "pages",
        "Orsolya Varga trained as a glassblower before she took up painting.",
        "Orsolya Varga\nVarga is a Hungarian painter. She learned glassblowing in her uncle's workshop and only began "
        "to paint at the age of thirty.",
    ),
    Pair(
        "pages",
        "Grey herons nest in colonies high up in trees.",
        "Nesting of the grey heron\nPairs build large nests of sticks, usually in the crowns of tall trees and close "
        "to others of their kind; such a heronry can be used for generations.",
    ),
    Pair(
        "pages",
        "The Brenwick lighthouse burned whale oil until 1861.",
        "Brenwick lighthouse\nThe tower was first lit in 1802. Its lamps were fed with whale oil, which was replaced "
        "by paraffin in 1861.",
    ),
    Pair(
        "pages",
        "Saltmarsh lamb is darker than other lamb.",
        "Saltmarsh lamb\nAnimals that graze on tidal marshes eat samphire and sea lavender. The meat is darker and "
        "has a deeper flavour than that of lamb raised inland.",
    ),
    Pair(
        "pages",
        "The comet Ferrant-Oyelaran comes back every 74 years.",
        "Comet Ferrant-Oyelaran\nThe comet was found on photographic plates in 1951. With a period of 74 years it will "
        "be seen again in 2025.",
    ),
    Pair(
        "pages",
        "Moss gardens need shade and acid soil.",
        "How to grow moss\nMosses have no roots. A site in the shade, a soil that is slightly acid, and regular "
        "watering in the first summer are all that a moss garden asks for.",
    ),
    Pair(
        "pages",
        "The tram line to Ostrava harbour has seven stops.",
        "Harbour line\nTrams leave the market square every ten minutes. The line to the harbour serves seven stops "
        "and ends at the ferry terminal in Ostrava.",
    ),
    Pair(
        "commits",
        "The importer skips rows whose checksum is wrong.",
        "importer: do not stop at a bad checksum\nA row with a wrong checksum ended the whole import. Skip it, count "
        "it, and say at the end how many were left out.\n\nimporter/rows.py\nimporter/report.py",
    ),
    Pair(
        "commits",
        "Login sessions now survive a restart.",
        "sessions: keep them in the database\nUntil now they lived in memory, so that everybody had to log in again "
        "after each restart.\n\nauth/sessions.py",
    ),
    Pair(
        "commits",
        "parseInterval() used to accept negative durations.",
        'time: refuse durations below zero\nparse_interval let "-5m" through, and the scheduler then ran the job in '
        "a tight loop. Raise instead.\n\nscheduler/interval.py",
    ),
    Pair(
        "commits",
        "The thumbnail worker holds at most 4 images in memory.",
        "thumbnails: bound the pool\nEach worker decoded as many pictures as were queued. Keep four decoded images at "
        "a time; the rest wait on disk.\n\nthumbs/worker.go",
    ),
    Pair(
        "commits",
        "max-idle-streams is deprecated in favour of idle-limit.",
        "proxy: rename the idle option\nThe old name, max-idle-streams, counted connections and not streams. It still "
        "works and prints a warning; use idle-limit.\n\nproxy/options.rs\ndocs/proxy.md",
    ),
    Pair(
        "commits",
        "Search results are sorted by date when two scores are equal.",
        "search: stable order\nTwo hits with one score came in any order, which made paging repeat some. Break ties by "
        "date, newest first.\n\nsearch/rank.py",
    ),
    Pair(
        "commits",
        "The Makefile builds the manual pages only when pandoc is there.",
        "build: manual pages are optional\nWithout pandoc the whole build failed. Look for it first, and leave the man "
        "pages out with a note when it is missing.\n\nMakefile",
    ),
    Pair(
        "commits",
        "A lost websocket is opened again after 2 seconds.",
        "client: reconnect\nWhen the websocket breaks off, wait for two seconds and open it anew instead of showing "
        "the error page.\n\nweb/client/socket.ts",
    ),
    Pair(
        "decisions",
        "Money is kept as integers of the smallest unit.",
        "Amounts of money\nStatus: Accepted. Floating point lost cents in the March audit. Decision: every amount is "
        "an integer in the smallest unit of its currency.",
    ),
    Pair(
        "decisions",
        "We write our own queue on top of PostgreSQL instead of running RabbitMQ.",
        "Background work\nStatus: Accepted. A broker is one more thing to run. Decision: jobs are rows in PostgreSQL, "
        "taken with SKIP LOCKED; RabbitMQ is not introduced.",
    ),
    Pair(
        "decisions",
        "Public endpoints carry their version in the path.",
        "Versions of the API\nStatus: Accepted. Clients cannot all move at once. Decision: the version stands in the "
        "path, /v1/ and so on, never in a header.",
    ),
    Pair(
        "decisions",
        "Feature flags are removed within 90 days.",
        "Life of a feature flag\nStatus: Accepted. Old flags made tests meaningless. Decision: a flag names its owner "
        "and is taken out again at the latest 90 days after it came in.",
    ),
    Pair(
        "decisions",
        "All times are stored in UTC.",
        "Time zones\nStatus: Accepted. Reports were off by an hour twice a year. Decision: times are stored in UTC and "
        "turned into local time only where a person reads them.",
    ),
    Pair(
        "decisions",
        "Icons come from the Heliotrope set as SVG.",
        "Icons\nStatus: Accepted. Fonts of icons cannot be read aloud. Decision: we take SVG files of the Heliotrope "
        "set and inline them.",
    ),
)


class Conflict(NamedTuple):
    """The source says otherwise: the deciding words hold `ours` in the claim and `theirs` in the source."""

    claim: str
    source: str
    ours: str
    theirs: str


CONFLICTS = (
    Conflict(
        "The thumbnail worker holds at most 8 images in memory.",
        "Bound the pool. The thumbnail worker holds at most 4 images in memory; the rest wait on disk.",
        "8",
        "4",
    ),
    Conflict(
        "The upload time-out is 30 seconds.",
        "Uploads were cut off on slow lines. The upload time-out is 60 seconds.",
        "30 seconds",
        "60 seconds",
    ),
    Conflict(
        "Compression is on by default.",
        "A new switch for compression. Compression is off by default.",
        "on",
        "off",
    ),
)

NOTHING_TO_CHECK = (
    "Fixed in commit 3f2a91c7",
    "See https://docs.example.org/limits",
    "See also ADR-012 for details.",
    "Documented at https://docs.example.org/limits.",
    "This was decided in ADR-012.",
    "(#77)",
    "The change is described in ADR-012, see also #77.",
    "ADR-012 is documented at https://docs.example.org/limits",
    "Closes #77",
    "It's done: https://git.example.org/x/y",
)

SAYS_SOMETHING = (
    ("Fixed the login time-out in commit 3f2a91c7", "Fixed the login time-out"),
    ("Per ADR-012, amounts are integers.", "amounts are integers."),
    ("Amounts are integers. See ADR-012.", "Amounts are integers."),
    ("ADR-012 says that amounts are integers", "amounts are integers"),
    ("According to https://docs.example.org/limits, uploads end at 5 MB", "uploads end at 5 MB"),
    ("#77 is closed", "is closed"),
    ("#77 wasn't fixed", "wasn't fixed"),
    ("Never fixed in commit 3f2a91c7", "Never fixed"),
    ("Fixed in 2.4.1 by commit 3f2a91c7", "Fixed in 2.4.1"),
)
