"""One word of a statement is another than in the source, is added to it, or is left out."""

from __future__ import annotations

import pytest

from vouchgate.ingest.claims.source import Stance
from vouchgate.ingest.support.source_text import SourceText
from vouchgate.ingest.support.stance import stances

FAR = "Nobody counts stones. Clouds pass the hill. Trees stand in a row."


def why(claim: str, source: str) -> str:
    """What keeps the source from stating a claim of one statement; empty where it states it."""
    (held,) = stances(claim, SourceText(source))
    return "" if held.stance is Stance.STATES else held.why or held.stance.value


@pytest.mark.parametrize(
    ("claim", "source", "because"),
    [
        ("The gateway listens on port 8080.", "The exporter listens on port 8080.", "replaced"),
        ("The billing service listens on port 8080.", "The export service listens on port 8080.", "replaced"),
        ("Our mail team owns the index.", "The search team owns the index.", "replaced"),
        ("Releases are made by the platform team.", "Backups are made by the platform team.", "replaced"),
        ("Reports are sent weekly to auditors.", "Reports are sent weekly to customers.", "replaced"),
        ("Temperatures are stored in kelvin.", "Temperatures are stored in fahrenheit.", "replaced"),
        (
            "The mailer sends a public report to the board.",
            "The mailer sends a report to the board.",
            "added",
        ),
        ("Reports go out through the cheap mailer.", "Reports go out through the mailer.", "added"),
        ("The relay keeps mail from guests for 30 days.", "The relay keeps mail for 30 days.", "added"),
        ("Keys lie in an encrypted volume of the host.", "Keys lie in a volume of the host.", "added"),
        ("Certificates are renewed every month by hand.", "Certificates are renewed every month.", "added"),
        # What the source has elsewhere is added, too.
        ("The relay keeps mail on disk.", "The relay keeps mail. Rows lie on a disk.", "stray"),
        ("The relay keeps mail on disk.", f"The relay keeps mail. {FAR} Rows lie on a disk.", "added"),
        ("On Debian, the relay keeps mail.", f"Hosts run Debian. {FAR} The relay keeps mail.", "added"),
        (
            "In production, the relay keeps mail.",
            f"The relay keeps mail. {FAR} It is in production.",
            "added",
        ),
        ("The relay and the proxy keep mail.", f"The relay keeps mail. {FAR} The proxy is old.", "added"),
        ("The relay securely keeps mail.", f"The relay keeps mail. {FAR} Doors close securely.", "manner"),
        ("Rows are copied to Redis every night.", "Rows are copied from Redis every night.", "relation"),
        ("Backups are kept against 30 days.", "Backups are kept for 30 days.", "relation"),
        ("Reports are signed for the release bot.", "Reports are signed by the release bot.", "relation"),
        ("The record answers in JSON instead of YAML.", "The record answers in JSON as in YAML.", "relation"),
        ("Stock and sessions are kept in one database.", "Stock is kept in one database.", "added"),
        (
            "Backups are taken every night and encrypted.",
            "Backups are taken every night and kept.",
            "replaced",
        ),
        (
            "Traffic between programs is encrypted.",
            "Traffic between programs is encrypted, except in the hall.",
            "left out",
        ),
        (
            "Repeated results need no call.",
            "Repeated results need no call unless they are worse.",
            "left out",
        ),
        (
            "The portal shows results to patients.",
            "The portal shows results to patients from next spring.",
            "left out",
        ),
        ("Deploys on Friday are allowed.", "Deploys on Friday are allowed only with approval.", "left out"),
        ("Deploys on Friday are allowed.", "Only with approval deploys on Friday are allowed.", "left out"),
        ("The relay keeps mail.", "The relay keeps, except on Mondays, mail.", "left out"),
        ("The relay keeps mail of guests.", "The relay keeps mail only in May of guests.", "left out"),
        ("The relay keeps mail.", "However, until 2019 the relay keeps mail.", "left out"),
        ("The relay keeps mail.", "Previously, the relay keeps mail.", "left out"),
        (
            "The worker reads its jobs from Kestrel.",
            "Until 2019 the worker read its jobs from Kestrel.",
            "left out",
        ),
        (
            "The gateway keeps its sessions in Redis.",
            "Next year the gateway keeps its sessions in Redis.",
            "left out",
        ),
    ],
)
def test_one_word_makes_it_another_statement(claim: str, source: str, because: str) -> None:
    assert why(claim, source) == because


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        # What leads to a statement is no subject.
        ("Additionally, the worker restarts at noon.", "The worker restarts at noon."),
        ("The cache keeps entries for 60 seconds.", "The cache of the gateway keeps entries for 60 seconds."),
        ("The service keeps entries for 60 seconds.", "The cache service keeps entries for 60 seconds."),
        ("Entries are kept for 60 seconds.", "Entries are kept for 60 seconds in the cache of the gateway."),
        # A name in quotation marks is no thing that is described, and a verb may stand at the end.
        (
            "Arguments are written in the form 'Neutral, because'.",
            "Arguments are written in the 'Neutral, because'.",
        ),
        ("Models are placed next to their owner, as decided.", "Models are placed next to their owner."),
        (
            "Deploys on Friday are only allowed with approval.",
            "Deploys on Friday are allowed only with approval.",
        ),
        ("Before noon the worker restarts.", "Before noon the worker restarts."),
        ("Traffic is encrypted excepting the hall.", "Traffic is encrypted, except in the hall."),
        ("The next release has a dark mode.", "A dark mode comes with the next release."),
        ("Entries expire after 24 hours.", "Entries expire in 24 hours."),
        ("It is licensed under the MIT licence.", "It is licensed with the MIT licence."),
        ("Rows are kept in Redis instead of disk.", "Rows are kept in Redis rather than on disk."),
        ("In 2019 the worker was moved to Kestrel.", "The worker was moved to Kestrel in 2019."),
    ],
)
def test_the_same_in_other_words_is_stated(claim: str, source: str) -> None:
    assert why(claim, source) == ""
