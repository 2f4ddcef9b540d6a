"""The world outside as configured: which client, which forge, which registries, which pages."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar
from urllib.parse import urldefrag

from pydantic import SecretStr

from vouchgate.ingest.citations import BUILT_IN
from vouchgate.ingest.citations.kinds import Reader
from vouchgate.ingest.claims.citation import Citation, CitationType
from vouchgate.ingest.claims.source import Found, SourceReading
from vouchgate.ingest.net.addresses import parse_opening
from vouchgate.ingest.net.client import Outbound
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.sources.forges.forge import Forge
from vouchgate.ingest.sources.forges.forgejo import Forgejo
from vouchgate.ingest.sources.forges.github import GitHub
from vouchgate.ingest.sources.forges.gitlab import GitLab
from vouchgate.ingest.sources.git.source import GitSource
from vouchgate.ingest.sources.web.extractor import Extractor
from vouchgate.ingest.sources.web.source import WebSource
from vouchgate.settings import Settings, SettingsError, plain
from vouchgate.sources.corpora import open_corpora
from vouchgate.sources.plugins import install_kinds, sources_of
from vouchgate.sources.reader import ReadingCache, Sources
from vouchgate.sources.records import RecordSource

AnyForge = TypeVar("AnyForge", bound=Forge)


class UrlSource:
    """Reads URLs: the page of an issue through its forge, which says more than the page; any other as a page."""

    def __init__(self, web: WebSource, forges: Sequence[Forge]) -> None:
        self._web = web
        self._forges = forges

    async def read(self, citation: Citation) -> SourceReading:
        """As the source that it is asked of. Never raises."""
        for forge in self._forges:
            if forge.issue_at(citation.value) is not None:
                return await forge.read_url(citation)
        reading = await self._web.read(citation)
        if isinstance(reading, Found) and reading.private:
            # Where a private server sent us on to is its word, and the name of a source is shown to everybody.
            return reading.model_copy(update={"source_id": urldefrag(citation.key.partition(":")[2]).url})
        return reading


@contextmanager
def open_sources(
    settings: Settings,
    policy: Policy,
    git: GitSource,
    kept: ReadingCache | None = None,
    shared: Path | None = None,
    *,
    records: RecordSource | None = None,
) -> Iterator[Sources]:
    """Everything that can be read, closed at the end, `kept` with it. `shared` is the folder in which several
    processes keep to the limits of a host together."""
    with ExitStack() as opened:
        added = install_kinds(settings)
        elsewhere: dict[str, Reader] = {}
        extractor = Extractor()
        opened.callback(extractor.close)
        corpora = open_corpora(settings, extractor)
        opened.callback(corpora.close)
        if not settings.offline:
            outbound = outbound_of(settings, policy, policy.web.per_host, policy.web.spacing_seconds, shared)
            pages = outbound.opened_to([parse_opening(each) for each in settings.citation_networks])
            elsewhere = _open_forges_and_pages(settings, outbound, WebSource(pages, extractor, _now))
            elsewhere |= sources_of((*BUILT_IN, *added), settings, outbound)
        sources = Sources(git, elsewhere, kept, corpora=corpora, records=records)
        opened.callback(sources.close)
        yield sources


def outbound_of(
    settings: Settings, policy: Policy, per_host: int, spacing_seconds: float, shared: Path | None = None
) -> Outbound:
    """The client for the operator's own endpoints, with the networks and ports that may be asked. What agents cite is
    asked by one that is `opened_to` other networks."""
    return Outbound(
        allow_networks=[ipaddress.ip_network(network) for network in settings.allow_networks],
        extra_ports=frozenset(policy.web.extra_ports),
        per_host=per_host,
        spacing_seconds=spacing_seconds,
        shared=shared,
    )


def _open_forges_and_pages(settings: Settings, outbound: Outbound, web: WebSource) -> dict[str, Reader]:
    """Issues and URLs are read by the same forges, so that all that is asked of one is counted together."""

    def forge(kind: type[AnyForge], base: str, token: SecretStr | None, repository: str | None) -> AnyForge:
        try:
            return kind(outbound, base=base, token=plain(token), repository=repository, clock=_now)
        except ValueError as error:
            raise SettingsError(str(error)) from error

    github = forge(GitHub, settings.github_url, settings.github_token, settings.github_repo)
    gitlab = forge(GitLab, settings.gitlab_url, settings.gitlab_token, settings.gitlab_repo)
    forgejo = forge(Forgejo, settings.forgejo_url, settings.forgejo_token, settings.forgejo_repo)
    issues: Forge = github
    if settings.gitlab_repo is not None:
        issues = gitlab
    elif settings.forgejo_repo is not None:
        issues = forgejo
    return {CitationType.URL: UrlSource(web, (github, gitlab, forgejo)), CitationType.ISSUE: issues}


def _now() -> datetime:
    return datetime.now(UTC)
