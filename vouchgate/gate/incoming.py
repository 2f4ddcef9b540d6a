"""From what was sent to a claim: whose it is, and what is cited beside its text."""

from __future__ import annotations

from pydantic_core import to_json

from vouchgate.ingest.citations import given_citation, parse_citation
from vouchgate.ingest.claims.citation import Citation
from vouchgate.ingest.claims.people import Principal
from vouchgate.ingest.policy import Limits
from vouchgate.wire import CitationIn, ClaimIn


class ClaimRefused(ValueError):
    """The claim cannot be looked at as sent. `code` is a stable word, `status` the HTTP status it means."""

    def __init__(self, code: str, message: str, status: int = 422) -> None:
        super().__init__(message)
        self.code = code
        self.status = status


def refuse_over_limits(sent: ClaimIn, limits: Limits) -> None:
    """Raises ClaimRefused for what is larger than the policy allows: nothing is checked in part."""
    if len(sent.content) > limits.content_characters:
        raise ClaimRefused(
            "content_too_long",
            f"content has {len(sent.content)} characters; the limit is {limits.content_characters}",
        )
    if sent.metadata and (size := len(to_json(sent.metadata))) > limits.metadata_bytes:
        raise ClaimRefused(
            "metadata_too_large",
            f"metadata has {size} bytes as JSON; at most {limits.metadata_bytes} are kept",
        )
    if sent.delivery and (size := len(to_json(sent.delivery.data))) > limits.metadata_bytes:
        raise ClaimRefused(
            "delivery_too_large",
            f"delivery.data has {size} bytes as JSON; at most {limits.metadata_bytes} are kept",
        )


def owner_for(principal: Principal, user_id: str | None) -> str:
    """The owner a request is about. Raises ClaimRefused when it is not said or not allowed."""
    if user_id is None:
        if principal.any_owner or len(principal.owners) != 1:
            raise ClaimRefused(
                "user_id_missing", "user_id is needed: this token acts for more than one owner"
            )
        return next(iter(principal.owners))
    if not principal.may_act_for(user_id):
        raise ClaimRefused("owner_not_allowed", "this token may not act for that user_id", status=403)
    return user_id


def given_citations(sent: ClaimIn) -> tuple[Citation, ...]:
    """The citations given beside the text. Raises ClaimRefused for one that is none."""
    citations = []
    for number, citation in enumerate(sent.citations):
        try:
            citations.append(_given(citation))
        except ValueError as error:
            raise ClaimRefused("citation_malformed", f"citations[{number}]: {error}") from error
    return tuple(citations)


def _given(sent: CitationIn | str) -> Citation:
    """Raises ValueError."""
    if isinstance(sent, str):
        return parse_citation(sent)
    given = parse_citation(sent.value) if sent.type is None else given_citation(sent.type, sent.value)
    return given.model_copy(update={"quote": sent.quote}) if sent.quote.strip() else given
