"""The paths of an installation: what its settings, TOML files and installed packages let it look along."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points

from vouchgate.gate.judge import check_url
from vouchgate.harvest.documents import CORPUS, REPOSITORY, DocumentSearch
from vouchgate.harvest.endpoints import EndpointError, EndpointPath, load_endpoints
from vouchgate.harvest.paths import SearchPath, in_order
from vouchgate.harvest.research import MODEL_AT_ONCE
from vouchgate.harvest.search import World
from vouchgate.ingest.claims.citation import Citation, CitationType
from vouchgate.ingest.claims.source import SourceReading
from vouchgate.ingest.net.client import Outbound
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.sources.answers import utc_now
from vouchgate.ingest.sources.model import ModelClient
from vouchgate.settings import Settings, SettingsError, plain
from vouchgate.sources.plugins import named
from vouchgate.sources.reader import Sources
from vouchgate.sources.setup import outbound_of

GROUP = "vouchgate.harvest"
BUILT_IN = (CORPUS, REPOSITORY, "official_api", "web_search")

# Makes a path, of the one client for all that leaves the machine, and the environment.
OpenPath = Callable[[Outbound, Mapping[str, str]], SearchPath]


def world_of(
    settings: Settings, policy: Policy, sources: Sources, local: Sequence[DocumentSearch] = ()
) -> World:
    """What can be looked at as configured, after what is `local`. Raises SettingsError, which names what cannot be used
    and why, also for a path that the policy names and nobody has."""
    paths: list[SearchPath] = [*local]
    plugins = _plugins(policy)
    if not settings.offline:
        outbound = outbound_of(settings, policy, policy.web.per_host, policy.web.spacing_seconds)
        paths += _endpoints(settings, outbound)
        paths += (_opened(entry, outbound) for entry in plugins)

    async def read(address: str) -> SourceReading:
        return await sources.read(Citation(type=CitationType.URL, value=address, key=f"url:{address}"))

    return World(in_order(paths, policy), read, utc_now)


def _endpoints(settings: Settings, outbound: Outbound) -> Iterator[SearchPath]:
    seen: set[str] = set()
    try:
        for file in settings.endpoints:
            for endpoint in load_endpoints(file):
                if endpoint.path in seen:
                    raise EndpointError(f"{file}: there are two endpoints called {endpoint.path!r}")
                seen.add(endpoint.path)
                yield EndpointPath(outbound, endpoint, os.environ)
    except EndpointError as error:
        raise SettingsError(str(error)) from error


def _plugins(policy: Policy) -> list[EntryPoint]:
    """The installed paths that the policy names."""
    installed = sorted(entry_points(group=GROUP), key=lambda each: each.name)
    for entry in installed:
        if entry.name.partition(".")[0] in BUILT_IN:
            raise SettingsError(
                f"the plugin {named(entry)} has the name of a path that comes with the service"
            )
    known = {*BUILT_IN, *(entry.name for entry in installed)}
    for path in policy.corroboration.paths:
        if path not in known and path.partition(".")[0] not in BUILT_IN:
            raise SettingsError(f"the policy names the path {path!r}, which nothing here brings")
    return [entry for entry in installed if entry.name in policy.corroboration.paths]


def _opened(entry: EntryPoint, outbound: Outbound) -> SearchPath:
    try:
        path: SearchPath = entry.load()(outbound, os.environ)
        good = path.name == entry.name and callable(path.look)
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise SettingsError(
            f"the plugin {named(entry)} could not be opened ({what}); mend or remove it"
        ) from error
    if not good:
        raise SettingsError(f"the plugin {named(entry)} makes no path of this name")
    return path


def open_model(settings: Settings, policy: Policy, seconds: float) -> ModelClient:
    """The model at the judge's endpoint. Raises SettingsError when no setting says where that is, or it may not be
    asked."""
    url, model = settings.judge_url, settings.judge_model
    if settings.offline or not url or not model:
        raise SettingsError(
            "a model is to be asked, so VOUCHGATE_JUDGE_URL and VOUCHGATE_JUDGE_MODEL must say where it is, and "
            "it must not be offline"
        )
    check_url(url)
    outbound = outbound_of(settings, policy, MODEL_AT_ONCE, 0.0)
    return ModelClient(outbound, url=url, model=model, token=plain(settings.judge_token), seconds=seconds)
