"""A stored decision's statements held once more against the texts of its sources, as far as these are kept. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from vouchgate.ingest.citations import detect_citations
from vouchgate.ingest.claims.decision import Evidence
from vouchgate.ingest.claims.source import Found, Held
from vouchgate.ingest.support.holding import hold_again
from vouchgate.ingest.support.quotation import quotations_of


@dataclass(frozen=True, slots=True)
class Reread:
    """What came of it: each difference as a sentence, and the sources whose texts are not kept any more."""

    differences: tuple[str, ...]
    gone: tuple[str, ...]


def digests_of(evidence: Evidence) -> frozenset[str]:
    """What the texts are called that the decision rests on."""
    return frozenset(
        digest for found in _held(evidence) for digest in (found.text_digest, found.later_digest) if digest
    )


def reread(evidence: Evidence, texts: Mapping[str, str]) -> Reread:
    """Holds every statement against `texts`, which are by digest, and compares the stances with those of then."""
    differences: list[str] = []
    gone: list[str] = []
    claim = evidence.claim
    quotations = quotations_of((*detect_citations(claim.content), *claim.citations))
    for found in _held(evidence):
        whole, later = texts.get(found.text_digest), texts.get(found.later_digest, "")
        if whole is None or (found.later_digest and not later):
            gone.append(found.name)
            continue
        try:
            again = hold_again(claim.stated, found, whole, later, quotations)
        except Exception as error:  # noqa: BLE001  (whatever the rules make of it, it is not what was written)
            differences.append(f"{found.name} cannot be held against the claim again: {error}")
            continue
        if (was := _stances(found.held or ())) != (now := _stances(again)):
            differences.append(f"{found.name}: was {was}, is now {now}")
    return Reread(tuple(differences), tuple(gone))


def _held(evidence: Evidence) -> Iterator[Found]:
    return (each for each in evidence.sources if isinstance(each, Found) and each.text_digest)


def _stances(held: tuple[Held, ...]) -> str:
    return ", ".join(f"{one.start}-{one.end} {one.stance.value}" for one in held) or "nothing said"
