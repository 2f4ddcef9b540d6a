"""Kinds of citation that an installation adds: by entry points of installed packages, and by TOML files of trackers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import resources
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from pydantic import SecretStr, ValidationError

from vouchgate.ingest.citations.detection import install
from vouchgate.ingest.citations.kinds import CitationKind, KindError, Reader
from vouchgate.ingest.language.validation import plain_message
from vouchgate.ingest.net.client import Outbound
from vouchgate.ingest.sources.tracker import Tracker, load_trackers
from vouchgate.settings import PREFIX, Settings, SettingsError

KINDS, SOURCES = "vouchgate.citations", "vouchgate.sources.reader"


def install_kinds(settings: Settings) -> tuple[CitationKind, ...]:
    """Every kind that this installation adds, from now on in use. Raises SettingsError, which names what cannot be used
    and why, in a sentence."""
    try:
        kinds = (*_with_sources(list(_plugins())), *_trackers(settings))
        install(kinds)
    except KindError as error:
        raise SettingsError(str(error)) from error
    return kinds


def sources_of(kinds: tuple[CitationKind, ...], settings: Settings, outbound: Outbound) -> dict[str, Reader]:
    """What reads the things that citations of these kinds name."""
    own = {f"{PREFIX}{name.upper()}": _plain(value) for name, value in settings}
    known = os.environ | {name: value for name, value in own.items() if isinstance(value, str)}
    return {
        kind.name: _opened(kind, outbound, {name: known[name] for name in kind.settings if name in known})
        for kind in kinds
        if kind.source is not None
    }


def _plain(value: object) -> object:
    return value.get_secret_value() if isinstance(value, SecretStr) else value


def _opened(kind: CitationKind, outbound: Outbound, values: Mapping[str, str]) -> Reader:
    if kind.source is None:
        raise SettingsError(f"nothing reads citations of the kind {kind.name!r}")
    try:
        return kind.source(outbound, values)
    except Exception as error:
        raise SettingsError(f"the source of the kind {kind.name!r} could not be opened: {error}") from error


def _plugins() -> Iterator[CitationKind]:
    for entry in sorted(entry_points(group=KINDS), key=lambda each: each.name):
        kind = _loaded(entry)
        if not isinstance(kind, CitationKind) or kind.name != entry.name:
            raise KindError(f"the plugin {named(entry)} is no CitationKind of this name")
        yield kind


def _with_sources(kinds: list[CitationKind]) -> Iterator[CitationKind]:
    """The kinds with the sources that other plugins bring for them."""
    brought: dict[str, Any] = {}
    for entry in sorted(entry_points(group=SOURCES), key=lambda each: each.name):
        if entry.name in brought or not any(
            kind.name == entry.name and kind.source is None for kind in kinds
        ):
            raise KindError(
                f"the plugin {named(entry)} is for a kind that is not there, or has a source already"
            )
        brought[entry.name] = _loaded(entry)
    return (replace(kind, source=brought.get(kind.name, kind.source)) for kind in kinds)


def _loaded(entry: EntryPoint) -> Any:
    try:
        return entry.load()
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise KindError(
            f"the plugin {named(entry)} could not be loaded ({what}); mend or remove it"
        ) from error


def named(entry: EntryPoint) -> str:
    """What a sentence calls a plugin: its name, its package and what it is."""
    package = "" if entry.dist is None else f" of {entry.dist.name}"
    return f"{entry.name!r}{package} ({entry.group}, {entry.value})"


def _trackers(settings: Settings) -> Iterator[CitationKind]:
    data = Path(str(resources.files("vouchgate.ingest.data")))
    if settings.jira_url is not None:
        for tracker in load_trackers(data / "trackers" / "jira.toml"):
            changed = {"base": settings.jira_url, "projects": settings.jira_projects}
            fields = tracker.model_dump() | changed | {"example": f"{settings.jira_projects[0]}-12"}
            yield _checked(fields, "JIRA_PROJECTS")
    if settings.linear_teams:
        for tracker in load_trackers(data / "trackers" / "linear.toml"):
            changed = {"base": settings.linear_url, "projects": settings.linear_teams}
            fields = tracker.model_dump() | changed | {"example": f"{settings.linear_teams[0]}-12"}
            yield _checked(fields, "LINEAR_TEAMS")
    for file in settings.trackers:
        try:
            yield from (tracker.kind() for tracker in load_trackers(file))
        except KindError as error:
            raise KindError(f"{PREFIX}TRACKERS: {error}") from error


def _checked(fields: dict[str, Any], setting: str) -> CitationKind:
    try:
        return Tracker.model_validate(fields).kind()
    except ValidationError as error:
        raise KindError(f"{PREFIX}{setting}: {plain_message(error.errors()[0])}") from error
    except ValueError as error:
        raise KindError(f"{PREFIX}{setting}: {error}") from error
