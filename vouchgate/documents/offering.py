"""Verified claims of a document as claims that the gate can be asked to keep. Nothing is taken on trust: the gate looks
up what they cite, like for any other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import JsonValue

from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.source import Stance
from vouchgate.ingest.corroboration.hits import MOST_QUOTED
from vouchgate.ingest.documents.verdict import ClaimVerdict
from vouchgate.ingest.support.quotation import LEAST_WORDS
from vouchgate.wire import OfferIn


def offered_claims(
    report: Mapping[str, Any], asked: OfferIn, owner_id: str
) -> dict[str, dict[str, JsonValue]]:
    """The body of a submit for each verified claim of a report (`Report.as_json`) that is asked for, by fingerprint and
    in the order of the document."""
    wanted = None if asked.fingerprints is None else set(asked.fingerprints)
    return {
        claim["fingerprint"]: {
            "content": f"{claim['lead']} {claim['text']}".strip(),
            "memory_type": asked.memory_type.value,
            "source": Source.AI_SYNTHESIS.value,
            "user_id": owner_id,
            "citations": list(_citations(claim)),
        }
        for document in report["documents"]
        for claim in document["claims"]
        if claim["verdict"] == ClaimVerdict.VERIFIED and (wanted is None or claim["fingerprint"] in wanted)
    }


def _citations(claim: Mapping[str, Any]) -> Iterator[JsonValue]:
    for source in claim["sources"]:
        quotation = source["quotation"]
        # From one place, whole, and long enough to show anything.
        quotes = (
            " … " not in quotation and LEAST_WORDS <= len(quotation.split()) and len(quotation) < MOST_QUOTED
        )
        if source["stance"] == Stance.STATES and quotes:
            yield {"value": source["cited"], "quote": quotation}
        else:
            yield {"value": source["cited"]}
