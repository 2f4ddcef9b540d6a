"""Claims on where a record stands, which is all that one not in force vouches for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.repos import TestRepository, adr
from vouchgate import Gate
from vouchgate.ingest.claims.citation import Citation, CitationType
from vouchgate.ingest.claims.decision import Evidence
from vouchgate.ingest.claims.source import Found, Stance, Standing
from vouchgate.ingest.support.clauses.standing import standing_told
from vouchgate.ingest.support.rereading import reread

PEP = Citation(type=CitationType.PEP, value="PEP 3103", key="pep:3103")
RFC = Citation(type=CitationType.RFC, value="RFC 2616", key="rfc:2616")
COMMIT = Citation(type=CitationType.COMMIT, value="a1b2c3d", key="commit:a1b2c3d")


def page(number: int, title: str, status: str, decision: str) -> str:
    return f"# {number}. {title}\n\nDate: 2024-03-0{number}\n\n## Status\n\n{status}\n\n## Decision\n\n{decision}\n"


PAGES = {
    "docs/adr/0001-use-postgresql.md": page(
        1,
        "Use PostgreSQL",
        "Accepted",
        "We use PostgreSQL 15 for all services. The team rejected Oracle for its price.",
    ),
    "docs/adr/0002-use-mysql.md": page(
        2, "Use MySQL", "Superseded by [1](0001-use-postgresql.md)", "We use MySQL 5.7 for all services."
    ),
    "docs/adr/0003-use-kafka.md": page(3, "Use Kafka", "Proposed", "Events are sent through Kafka."),
    "docs/adr/0004-ship.md": page(4, "Ship monthly", "Rejected: too slow", "We ship monthly."),
    "docs/adr/0006-queue.md": page(
        6, "Use queues", "Superseded by [1](0001-use-postgresql.md) (2024-05-17)", "We use queues."
    ),
    "docs/adr/0007-graphql.md": "# 7. Use GraphQL\n\n**Rejected**, 2023-04-04.\n\n## Decision\n\nWe use GraphQL.\n",
    "docs/adr/0008-phones.md": page(8, "Tickets on phones of guests", "Deferred", "Tickets are on phones."),
    "docs/adr/0005-log.md": "# 5. Log as JSON\n\n## Decision\n\nLogs are lines of JSON.\n",
}
_FILES = {f"ADR-{name[10:13]}": name for name in PAGES}


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    folder = tmp_path_factory.mktemp("standing")
    repository = TestRepository(folder / "repo")
    repository.commit("Decide", PAGES)
    with Gate.open(folder / "memory.db", repo=repository.path, offline=True) as opened:
        yield opened


@pytest.mark.parametrize(
    "claim",
    [
        "ADR-0002 is superseded by ADR-0001.",
        "ADR-2 was superseded by ADR-1!",
        "adr 1 replaces adr 2.",
        "ADR-0002 (Use MySQL) was superseded by ADR-0001.",
        "The use of MySQL (ADR-0002) has been superseded.",
        "docs/adr/0002-use-mysql.md is superseded by docs/adr/0001-use-postgresql.md.",
        "ADR-0001 is accepted.",
        "ADR-0002 is superseded by ADR-0001 (ADR-0002).",
        "ADR-0003 has the status proposed (see ADR-0003).",
        "ADR-0001 was accepted on 2024-03-01.",
        "ADR-0004 was rejected on 4 March 2024 (ADR-0004).",
        "ADR-0003 is still only proposed.",
        "Shipping monthly was rejected (ADR-0004).",
        "The decision to ship monthly was rejected [see ADR-4].",
        "ADR-0002 was superseded by ADR-0001. We use PostgreSQL 15 for all services (ADR-0001).",
        "ADR-0006 was superseded by ADR-0001 on 17 May 2024.",
        "ADR-0006 was superseded in May 2024.",
        "ADR-0002 is no longer in force.",
        "ADR-0002 no longer applies; ADR-0001 took its place.",
        "ADR-0001 took the place of ADR-0002.",
        "ADR-0003 is only proposed so far.",
        "ADR-0004 was turned down in March 2024.",
        "ADR-0007 was rejected on 4 April 2023.",
        "ADR-0008 (tickets on phones) is deferred.",
        "ADR-0008 deferred tickets on phones.",
        "ADR-0001 rejected Oracle for its price.",
    ],
)
def test_where_a_record_stands_is_its_own_word(gate: Gate, claim: str) -> None:
    answer = gate.check(claim)
    assert (answer.outcome, answer.rule) == ("stored", "stated"), answer.reason


@pytest.mark.parametrize(
    "claim",
    [
        "ADR-0001 was rejected.",
        "ADR-0001 is superseded by ADR-0002.",
        "ADR-0002 supersedes ADR-0001.",
        "ADR-0002 is accepted.",
        "ADR-0002 is superseded by ADR-0003.",
        "ADR-0002 was not superseded by ADR-0001.",
        "ADR-0002 was superseded by ADR-0001 in May.",
        "ADR-0002 (Use Oracle) was superseded by ADR-0001.",
        "ADR-0003 was rejected.",
        "ADR-0004 was rejected on 2024-03-05.",
        "ADR-0002 was superseded on 2024-03-02.",
        "ADR-0001 is superseded by ADR-0002 (ADR-0001).",
        "ADR-0002 is superseded by ADR-0001 (ADR-0003).",
        "ADR-0004 is deprecated.",
        "ADR-0006 was superseded by ADR-0001 on 18 May 2024.",
        "ADR-0006 was superseded in March 2024.",  # that is when it was decided
        "ADR-0001 no longer applies.",
        "ADR-0003 is no longer in force.",
        "ADR-0002 no longer applies; ADR-0003 took its place.",
        "ADR-0003 was turned down.",
        "We use GraphQL (ADR-0007).",
        "ADR-0008 rejected tickets on phones.",
        "ADR-0008 (tickets on watches) is deferred.",
        "ADR-0008 (phones) is deferred.",
        "ADR-0005 is accepted.",  # it has no status
        "Shipping weekly was rejected (ADR-0004).",
        "Shipping monthly with drones was rejected (ADR-0004).",
        "XYZ-7 is superseded by ADR-0001.",
        # What vouches for its own end vouches for nothing else.
        "ADR-0002 is superseded by ADR-0001. We use MySQL 5.7 for all services.",
        "ADR-0002 is superseded by ADR-0001. We use MySQL 5.7 for all services (ADR-0002).",
        "ADR-0002 was superseded by ADR-0001, and we use MySQL 5.7 for all services.",
        "ADR-0004 was rejected. We ship monthly.",
    ],
)
def test_what_it_does_not_say_so_waits(gate: Gate, claim: str) -> None:
    answer = gate.check(claim)
    assert answer.outcome == "queued", answer.rule


@pytest.mark.parametrize(
    ("claim", "citation", "standing", "detail", "stance"),
    [
        ("PEP 3103 was rejected.", PEP, Standing.REJECTED, "It is there (rejected).", Stance.STATES),
        ("PEP 3103 was withdrawn.", PEP, Standing.REJECTED, "It is there (rejected).", Stance.SILENT),
        ("RFC 2616 is obsoleted by RFC 7230.", RFC, Standing.SUPERSEDED, "Made obsolete.", Stance.STATES),
        ("rfc2616 was replaced by RFC 9110.", RFC, Standing.SUPERSEDED, "Made obsolete.", Stance.SILENT),
        ("Commit a1b2c3d was reverted.", COMMIT, Standing.REVERTED, "Undone by e5f6a7b.", Stance.STATES),
        ("Commit a1b2c3d was reverted.", COMMIT, Standing.IN_FORCE, "On main.", Stance.SILENT),
        ("ADR-7 is superseded.", adr(7), Standing.HINT, "Where agents write.", Stance.SILENT),
    ],
)
def test_so_it_is_of_all_that_can_end(
    claim: str, citation: Citation, standing: Standing, detail: str, stance: Stance
) -> None:
    source = Found(
        citation=citation, source_id=citation.value, standing=standing, detail=detail, successor="RFC 7230"
    )
    assert [*standing_told(claim, source, ()).values()] == [stance]


def test_the_reason_is_where_it_stands(gate: Gate) -> None:
    reason = gate.check("ADR-0001 was rejected.").reason
    assert (
        "is not so: ADR-0001 is in force: docs/adr/0001-use-postgresql.md in repo says “Accepted”." in reason
    )


@pytest.mark.parametrize(
    "claim",
    [
        "ADR-0002 was superseded by ADR-0001. We use PostgreSQL 15 for all services (ADR-0001).",
        "ADR-0002 is superseded by ADR-0001. We use MySQL 5.7 for all services (ADR-0002).",
    ],
)
def test_it_comes_to_the_same_when_it_is_held_again(gate: Gate, claim: str) -> None:
    kept = gate.check(claim)
    evidence = Evidence.model_validate_json(kept.evidence.model_dump_json())
    sources = [source for source in evidence.sources if source.kind == "found"]
    texts = {source.text_digest: PAGES[_FILES[source.source_id]] for source in sources}
    again = reread(evidence, texts)
    assert again.differences == ()
