"""Official interfaces and web searches, for claims that cite nothing: off unless the policy says `harvest = "network"`.

A page that was read and states the claim becomes a citation of it, marked as the gate's own, and is read and held
against like any other; only an official one stores the claim, and what independent ones say waits for the owner.
"""

from __future__ import annotations

import logging

from vouchgate.harvest.budget import Purse
from vouchgate.harvest.documents import MOST_FOUND, MOST_QUOTED, Harvested
from vouchgate.harvest.search import World, search
from vouchgate.ingest.citations import given_citation
from vouchgate.ingest.claims.citation import Citation, CitationType
from vouchgate.ingest.claims.decision import Looked, Suggested
from vouchgate.ingest.claims.source import Stance
from vouchgate.ingest.corroboration.history import SearchHistory, SearchTask
from vouchgate.ingest.policy import Policy

log = logging.getLogger(__name__)

_TELLING = (Stance.STATES, Stance.REFUTES, Stance.SPEAKS)  # the weightiest first


class NetworkSearch:
    """Looks along the paths of a world, in which is neither corpus nor repository."""

    def __init__(self, world: World, policy: Policy) -> None:
        self._world = world
        self._policy = policy

    async def find(self, claim: str, seconds: float) -> Harvested:
        """As `DocumentSearch.find`, of pages and records by their addresses. Never raises."""
        budget = self._policy.corroboration.budget.claim
        purse = Purse(budget.model_copy(update={"seconds": min(seconds, budget.seconds)}), "claim")
        try:
            searched = await search(SearchTask(claim=claim), self._world, purse, self._policy)
        except Exception:
            log.exception("the network could not be searched for a claim")
            failed = Looked(path="network", query="", found=0, failure="The search itself failed.")
            return Harvested((), (), (failed,))
        return _harvested(searched.history)


def _harvested(history: SearchHistory) -> Harvested:
    telling = [hit for stance in _TELLING for hit in history.hits if hit.stance is stance and hit.url]
    stating = (_citation_of(hit.url) for hit in telling if hit.stance is Stance.STATES)
    looked = [
        *(Looked(path=one.path, query=one.query, found=one.found) for one in history.attempts),
        *(Looked(path=one.path, query=one.query, found=0, failure=one.why) for one in history.failures),
    ]
    return Harvested(
        tuple(citation for citation in stating if citation)[:MOST_FOUND],
        tuple(
            Suggested(citation=hit.url, stance=hit.stance, quotation=hit.quotation[:MOST_QUOTED])
            for hit in telling[:MOST_FOUND]
        ),
        tuple(looked),
    )


def _citation_of(url: str) -> Citation | None:
    try:
        citation = given_citation(CitationType.URL, url)
    except ValueError:
        return None
    return citation.model_copy(update={"harvested": True})
