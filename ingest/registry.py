"""Every check there is: those of the files in `ingest/checks/`, found by looking there."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from vouchgate.ingest import checks
from vouchgate.ingest.check import Check
from vouchgate.ingest.parts import parts_of


def _found() -> dict[str, Check]:
    """In their order. Raises ValueError for a file that has no check, and for two checks of one name."""
    found: dict[str, Check] = {}
    for check in chain.from_iterable(parts_of(checks, "CHECKS")):
        if check.name in found:
            raise ValueError(f"two checks are called {check.name}")
        found[check.name] = check
    return dict(sorted(found.items(), key=lambda each: (each[1].order, each[0])))


CHECKS: Mapping[str, Check] = _found()
# Each with its judge, so that none has to be looked for once a claim is here.
OF_CLAIMS = tuple((check, check.judge) for check in CHECKS.values() if check.judge is not None)
OF_SOURCES = tuple(check.judge_source for check in CHECKS.values() if check.judge_source is not None)
OF_FINDINGS = tuple(check.judge_findings for check in CHECKS.values() if check.judge_findings is not None)
OF_FACTS = tuple((check, check.judge_facts) for check in CHECKS.values() if check.judge_facts is not None)


def title_of(check: str) -> str | None:
    """What the pages call a check; None for one that there is not, or not any more."""
    found = CHECKS.get(check)
    return None if found is None else found.title
