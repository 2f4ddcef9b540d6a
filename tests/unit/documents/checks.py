"""Documents with readings of their sources, for the tests of verdicts and reports."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime

from tests.unit.documents.desk import read
from vouchgate.documents.checking import check_document
from vouchgate.documents.report import Report
from vouchgate.ingest.claims.source import Found, Missing, SourceReading, Standing, Unreachable
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.documents.gate import KINDS, Accepted, CheckedDocument, gate
from vouchgate.ingest.documents.verdict import ClaimVerdict, everything_cited
from vouchgate.ingest.policy import Policy

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
LOG = "https://oven.example/log"
KILN = (
    "Kiln log\n\nThe kiln of Vester reaches 1,300 degrees. It was built in 1921 by Oda Brandt. "
    "The kiln burns beech wood. The potters of Vester fire it twice a month.\n"
)
TRUE = f"The kiln of Vester reaches 1,300 degrees ([log]({LOG}))."
FALSE = f"The kiln of Vester was built in 1935 ([log]({LOG}))."
PARTLY = f"The kiln of Vester burns beech wood and coal ([log]({LOG}))."
POLICY = load_policy()

Pages = Mapping[str, str | int]  # by address: the text of a page, or the status that it answers with


def readings(document_text: str, pages: Pages, name: str = "page.md") -> dict[str, SourceReading]:
    """What is read of each page that the document cites; one that is not among them is missing."""
    found: dict[str, SourceReading] = {}
    for citation in everything_cited([read(document_text, name)]):
        page = pages.get(citation.value, 404)
        if isinstance(page, str):
            found[citation.key] = Found(
                citation=citation,
                source_id=citation.value,
                standing=Standing.IN_FORCE,
                detail=f"{citation.value} exists.",
                title=page.partition("\n")[0],
                text=page,
                site="oven.example",
            )
        elif page == 404:
            found[citation.key] = Missing(citation=citation, detail=f"{citation.value} does not exist.")
        else:
            detail = f"{citation.value} failed."
            found[citation.key] = Unreachable(citation=citation, code="server_error", detail=detail)
    return found


def checked(
    text: str,
    pages: Pages | None = None,
    *,
    name: str = "page.md",
    policy: Policy = POLICY,
    baseline: Mapping[str, Accepted] | None = None,
) -> CheckedDocument:
    """The document with the verdict on each claim; where nothing is said of pages, the kiln's log is the only one."""
    pages = {LOG: KILN} if pages is None else pages
    return check_document(read(text, name), readings(text, pages, name), policy, NOW, baseline=baseline or {})


def verdicts(text: str, pages: Pages | None = None, policy: Policy = POLICY) -> list[ClaimVerdict]:
    """What each claim of a text comes to."""
    return [one.verdict for one in checked(text, pages, policy=policy).claims]


def report(
    text: str, pages: Pages | None = None, *, name: str = "page.md", accepted: str | None = None
) -> Report:
    """The answer on one document; `accepted` is a reason to let its first claim pass until the end of the year."""
    made = checked(text, pages, name=name)
    if accepted is not None:
        fingerprint = made.fingerprint_of(made.claims[0])
        entry = Accepted(fingerprint, accepted, date(2026, 12, 31))
        made = checked(text, pages, name=name, baseline={fingerprint: entry})
    return Report((made,), gate([made], POLICY, fail_on=KINDS), NOW, POLICY.digest)
