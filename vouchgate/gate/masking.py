"""Takes credentials and personal data out of what was sent, before anything else (ADR-0017, ADR-0067)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pydantic import JsonValue

from vouchgate.ingest.checks.personal import PersonalDataDetector
from vouchgate.ingest.checks.secrets import SecretDetector, mask
from vouchgate.ingest.claims.citation import Citation
from vouchgate.ingest.claims.claim import SecretMatch
from vouchgate.ingest.claims.source import SourceReading, Unreachable
from vouchgate.ingest.claims.texts import CONTENT
from vouchgate.wire import CitationIn, ClaimIn, DeliveryIn

_APART = re.compile(r"[\"\[\],/\s]+")
# Where what is to be written is found again: with a mask it would be another's.
_FINDS = re.compile(r"delivery\.(sink|place|data\.(.*\.)?(\w*_)?id)")
_MOST_NAME = 64  # characters of a name that stands for a credential

Detector = SecretDetector | PersonalDataDetector


def mask_claim(detector: Detector, sent: ClaimIn) -> tuple[ClaimIn, tuple[SecretMatch, ...]]:
    """The claim with masks of the same length in place of what the detector finds, and where that was: in its text, in
    the texts and names in its metadata, in where it is to be delivered, and in the citations beside it, of which those
    that hold any are left out. The very same claim where there is none."""
    found: list[SecretMatch] = []
    content = _text(detector, sent.content, CONTENT, found)
    metadata = _object(detector, sent.metadata, "metadata", found) if sent.metadata else sent.metadata
    citations = [
        each
        for n, each in enumerate(sent.citations)
        if not _in_citation(detector, each, f"citations[{n}]", found)
    ]
    changes: dict[str, object] = {"content": content, "metadata": metadata, "citations": citations}
    if sent.delivery is not None:
        if not any(match.where == CONTENT for match in found):
            named = _mask_by_name(detector, sent.delivery, content)
            found += named
            changes["content"] = mask(content, named)
        sink = _text(detector, sent.delivery.sink, "delivery.sink", found)
        place = _text(detector, sent.delivery.place, "delivery.place", found)
        data = _object(detector, sent.delivery.data, "delivery.data", found)
        changes["delivery"] = sent.delivery.model_copy(update={"sink": sink, "place": place, "data": data})
    return (sent.model_copy(update=changes), tuple(found)) if found else (sent, ())


def _mask_by_name(detector: Detector, sent: DeliveryIn, content: str) -> tuple[SecretMatch, ...]:
    """A text that is a credential under the name by which it is to be written: a store that keeps `{"password": …}`
    shows the gate the text alone, and says in the place or in the data where it belongs."""
    for name in dict.fromkeys([*_names_in(sent.place), *_leaves(sent.data)]):
        matches = detector.find_value(name, content, CONTENT) if len(name) <= _MOST_NAME else ()
        if matches:
            return matches
    return ()


def _names_in(place: str) -> list[str]:
    """The labels of a place, most of which are JSON, or paths."""
    return [label for label in _APART.split(place) if label]


def _leaves(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _leaves(each)


def misdirected(personal: Sequence[SecretMatch]) -> SecretMatch | None:
    """The first of the masks after which a delivery would be written to another place, or under another id, where those
    of two people may be one; None where there is none. A credential there blocks the claim."""
    return next((match for match in personal if _FINDS.fullmatch(match.where)), None)


def unasked_readings(cited: Sequence[Citation]) -> list[SourceReading]:
    """The readings of a claim with a credential: nobody outside learns of it."""
    detail = "A claim that holds a credential is not looked up anywhere."
    return [Unreachable(citation=citation, code="not_asked", detail=detail) for citation in cited]


def _text(detector: Detector, text: str, where: str, found: list[SecretMatch], name: str = "") -> str:
    matches = detector.find_value(name, text, where) if name else detector.find(text, where)
    found += matches
    return mask(text, matches) if matches else text


def _in_citation(detector: Detector, sent: CitationIn | str, where: str, found: list[SecretMatch]) -> bool:
    texts = (sent,) if isinstance(sent, str) else (sent.value, sent.quote)
    matches = [match for text in texts for match in detector.find(text, where)]
    found += matches
    return bool(matches)


def _value(
    detector: Detector, value: JsonValue, where: str, found: list[SecretMatch], name: str
) -> JsonValue:
    if isinstance(value, str):
        return _text(detector, value, where, found, name)
    if isinstance(value, dict):
        return _object(detector, value, where, found)
    if isinstance(value, list):
        return [_value(detector, each, f"{where}[{n}]", found, name) for n, each in enumerate(value)]
    if type(value) is int and isinstance(detector, PersonalDataDetector):
        kept = _text(detector, str(value), where, found, name)
        return value if kept == str(value) else kept
    return value


def _object(
    detector: Detector, value: dict[str, JsonValue], where: str, found: list[SecretMatch]
) -> dict[str, JsonValue]:
    """An object with its names and values masked. Two names that only a credential told apart stay two."""
    masked_object: dict[str, JsonValue] = {}
    for name, each in value.items():
        kept = _text(detector, name, f"{where} (a name)", found)
        while kept != name and kept in masked_object:
            kept += "*"
        masked_object[kept] = _value(detector, each, f"{where}.{kept}", found, kept)
    return masked_object
