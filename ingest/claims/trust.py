"""What an owner said of publishers and agents, and how often it held."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from vouchgate.ingest.claims.frozen import Frozen


class Trust(StrEnum):
    """What an owner says of a publisher, for their own memories."""

    TRUSTED = "trusted"  # its pages count as those of a listed one do; they are never official
    BANNED = "banned"  # it vouches for nothing


class PublisherTrust(Frozen):
    """An owner's word on one publisher (`ingest.scoring.sites.site_of`), which counts before `until`."""

    owner_id: str
    publisher: str
    trust: Trust
    until: datetime
    created_at: datetime
    decided_by: str  # principal id of the reviewer


class OwnPublishers(Frozen):
    """The publishers that an owner trusts and those that they ban; of one claim, those that bear on what it cites."""

    trusted: tuple[str, ...] = ()
    banned: tuple[str, ...] = ()


class RulingVerdict(StrEnum):
    """What a standing ruling does with a claim that it is about."""

    STORE = "store"  # where nothing speaks against the claim but that nothing shown vouches for all of it
    REJECT = "reject"


class AppliedRuling(Frozen):
    """The standing ruling of its owner that bears on a claim (`ingest.claims.standing_rulings`), whether or not it
    decided."""

    id: str
    name: str
    verdict: RulingVerdict


class TrackRecord(Frozen):
    """How often people said that a claim was right, and how often that it was wrong, among the latest they judged."""

    right: int = 0
    wrong: int = 0


class Track(Frozen):
    """What is known of those behind a claim: who sent it, the kind of the first thing it cites, and the publisher of
    that. Somebody nobody judged has a record of zeros."""

    agent: TrackRecord = TrackRecord()
    kind: TrackRecord = TrackRecord()
    publisher: TrackRecord = TrackRecord()
