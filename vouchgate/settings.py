"""Settings: flags, then VOUCHGATE_* variables, then vouchgate.toml. An unknown one is an error."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self
from urllib.parse import urlsplit

from pydantic import (
    Field,
    SecretStr,
    ValidationError,
    create_model,
    field_validator,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from vouchgate.ingest.citations import BUILT_IN
from vouchgate.ingest.citations.kinds.corpus import NAME
from vouchgate.ingest.language.spelling import did_you_mean
from vouchgate.ingest.language.validation import plain_message
from vouchgate.ingest.net.addresses import parse_opening
from vouchgate.ingest.sources.git.addresses import is_address
from vouchgate.ingest.sources.patterns import MEMORY_FILES, PathPatterns

PREFIX = "VOUCHGATE_"

DATABASE = "vouchgate.db"  # in the working directory, unless a setting names another
# What it was called before the product had its name. In two halves, so that no renaming of the product finds it.
EARLIER_DATABASE = "ground" + "gate.db"

_USUAL_PORTS = {"http": 80, "https": 443}
_ORIGIN = re.compile(
    r"(?P<scheme>https?)://(?P<host>[a-z0-9_.-]+|\[[0-9a-f:.]+\])(:(?P<port>[0-9]{1,5}))?/?", re.ASCII
)

Paths = Annotated[tuple[Path, ...], NoDecode]
Repositories = Annotated[tuple[Path | str, ...], NoDecode]  # a str is an address
# Where a colon separates paths, those of an address do not.
_REPOSITORY = re.compile(
    r"(?:https|ssh|file)://(?:\[[^\]]*\]|[^/:]|:(?=[^/@:]*@))*(?::\d+(?=/))?[^:]*|[\w.-]+@[\w.-]+:[^:]+|[^:]+"
)
Words = Annotated[tuple[str, ...], NoDecode]
Corpora = Annotated[dict[str, Path], NoDecode]


_CORPUS = re.compile(NAME)


class SettingsError(ValueError):
    """A setting that cannot be used; the message names it."""


class EarlierDatabase(SettingsError):
    """A start that would make an empty database beside the one that was meant."""


# What the built-in kinds of citation name as theirs: the addresses at which they are looked up.
_ADDRESSES: dict[str, Any] = {
    name.removeprefix(PREFIX).lower(): (str | None, Field(default=None, pattern=r"^https?://"))
    for kind in BUILT_IN
    for name in kind.settings
}
if TYPE_CHECKING:
    from pydantic_settings import BaseSettings as _SettingsOfKinds
else:
    _SettingsOfKinds = create_model("_SettingsOfKinds", __base__=BaseSettings, **_ADDRESSES)


class Settings(_SettingsOfKinds):
    """Where the service keeps and looks things up. What decides about claims is in the policy instead.

    Lists are written as TOML lists in the file, and separated by the path separator (`REPO`) or by commas
    (the others) in the environment. `url` is where another process finds the service, for commands that talk to one.
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, toml_file="vouchgate.toml", extra="forbid", frozen=True, env_ignore_empty=True
    )

    database_url: str = f"sqlite:///{DATABASE}"
    read_url: str | None = None
    repo: Repositories = ()
    mirrors: Path = Path("vouchgate-mirrors")
    mirror_files: bool = False
    adr_dirs: Words = ()
    ref: Words = ()
    memory_files: Words = MEMORY_FILES
    official_paths: Words = ()
    corpora: Corpora = Field(default_factory=dict)
    official_corpora: Words = ()
    policy: Path | None = None
    owner_rules: Path | None = None
    erasures: Path | None = None
    host: str = "127.0.0.1"
    port: int = Field(default=8080, ge=0, le=65535)
    workers: int = Field(default=1, ge=1, le=64)
    public_url: str | None = None
    url: str | None = Field(default=None, pattern=r"^https?://")
    token: SecretStr | None = None
    oidc_issuer: str | None = None
    oidc_client_id: str | None = Field(default=None, min_length=1, max_length=500)
    oidc_client_secret: SecretStr | None = None
    oidc_label: str = Field(default="single sign-on", min_length=1, max_length=60)
    smtp_url: SecretStr | None = None
    smtp_password: SecretStr | None = None
    mail_from: str | None = None
    github_repo: str | None = Field(default=None, pattern=r"^[\w.-]+/[\w.-]+$")
    github_url: str = Field(default="https://api.github.com", pattern=r"^https?://")
    github_token: SecretStr | None = None
    gitlab_repo: str | None = Field(default=None, pattern=r"^[\w./-]+/[\w.-]+$")
    gitlab_url: str = Field(default="https://gitlab.com", pattern=r"^https?://")
    gitlab_token: SecretStr | None = None
    forgejo_repo: str | None = Field(default=None, pattern=r"^[\w.-]+/[\w.-]+$")
    forgejo_url: str = Field(default="https://codeberg.org", pattern=r"^https?://")
    forgejo_token: SecretStr | None = None
    jira_url: str | None = Field(default=None, pattern=r"^https?://")
    jira_projects: Words = ()
    jira_token: SecretStr | None = None
    linear_url: str = Field(default="https://api.linear.app", pattern=r"^https?://")
    linear_teams: Words = ()
    linear_token: SecretStr | None = None
    trackers: Paths = ()
    endpoints: Paths = ()
    judge_url: str | None = Field(default=None, pattern=r"^https?://")
    judge_model: str | None = None
    judge_second_model: str | None = None
    judge_token: SecretStr | None = None
    entailment_model: Path = Path("entailment.toml")
    word_proofs: bool = False
    log_key: SecretStr | None = None  # the file that holds it, or the key itself
    log_origin: str | None = Field(default=None, pattern=r"^[^\s+]{1,255}$")
    log_mirror: Path | None = None
    witnesses: Words = ()
    witnesses_needed: int | None = Field(default=None, ge=1)
    allow_networks: Words = ()
    citation_networks: Words = ()
    dask_ca: Path | None = None
    dask_cert: Path | None = None
    dask_key: Path | None = None
    offline: bool = False

    @field_validator("repo", mode="before")
    @classmethod
    def _split_repositories(cls, value: object) -> object:
        if isinstance(value, str):
            value = _REPOSITORY.findall(value) if os.pathsep == ":" else value.split(os.pathsep)
        if not isinstance(value, list | tuple):
            return value
        return tuple(
            Path(each) if isinstance(each, str) and not is_address(each) else each for each in value if each
        )

    @field_validator("trackers", "endpoints", mode="before")
    @classmethod
    def _split_paths(cls, value: object) -> object:
        return tuple(filter(None, value.split(os.pathsep))) if isinstance(value, str) else value

    @field_validator(
        "adr_dirs",
        "ref",
        "memory_files",
        "official_paths",
        "official_corpora",
        "allow_networks",
        "citation_networks",
        "jira_projects",
        "linear_teams",
        "witnesses",
        mode="before",
    )
    @classmethod
    def _split_words(cls, value: object) -> object:
        return tuple(filter(None, map(str.strip, value.split(",")))) if isinstance(value, str) else value

    @field_validator("memory_files", "official_paths")
    @classmethod
    def _patterns(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        PathPatterns(value)
        return value

    @field_validator("corpora", mode="before")
    @classmethod
    def _split_corpora(cls, value: object) -> object:
        """Of `NAME=FOLDER`, separated like paths, or as many of those; or a table."""
        if isinstance(value, str):
            value = [each for each in value.split(os.pathsep) if each]
        if isinstance(value, list | tuple):
            pairs = [(name, folder) for name, _, folder in (str(each).partition("=") for each in value)]
            value = dict(pairs)
            if len(value) < len(pairs):
                raise ValueError("two corpora have one name")
        if isinstance(value, dict):
            for name, folder in value.items():
                if not _CORPUS.fullmatch(str(name)) or not folder:
                    raise ValueError(f"{name} is not like handbook=/srv/handbook, its name in small letters")
        return value

    @model_validator(mode="after")
    def _official_corpora(self) -> Self:
        unknown = [name for name in self.official_corpora if name not in self.corpora]
        if unknown:
            raise ValueError(f"{PREFIX}OFFICIAL_CORPORA: no corpus is called {', '.join(unknown)}")
        return self

    @field_validator("public_url")
    @classmethod
    def _origin(cls, value: str | None) -> str | None:
        """Scheme, host and port, as a browser names an origin."""
        if value is None:
            return None
        match = _ORIGIN.fullmatch(value.lower())
        if match is None or int(match["port"] or 1) > 65535:
            raise ValueError("must be like https://gate.example.org: no path, no query, no user name")
        scheme, host, port = match["scheme"], match["host"], match["port"]
        return f"{scheme}://{host}" + (f":{port}" if port and int(port) != _USUAL_PORTS[scheme] else "")

    @model_validator(mode="after")
    def _mail(self) -> Self:
        """All of what mail needs, or nothing of it."""
        needed = {"SMTP_URL": self.smtp_url, "MAIL_FROM": self.mail_from, "PUBLIC_URL": self.public_url}
        missing = [PREFIX + name for name, value in needed.items() if value is None]
        if self.smtp_url is None:
            if self.smtp_password is not None or self.mail_from is not None:
                raise ValueError(f"without {PREFIX}SMTP_URL no mail is sent")
            return self
        if missing:
            raise ValueError(f"{PREFIX}SMTP_URL needs {' and '.join(missing)} as well")
        from vouchgate.storage.outgoing.mail import valid_address  # noqa: PLC0415  (few commands send mail)
        from vouchgate.workers.smtp import parse_server  # noqa: PLC0415

        if not valid_address(self.mail_from or ""):
            raise ValueError(f"{PREFIX}MAIL_FROM must be like gate@example.org, without a name")
        try:
            parse_server(self.smtp_url.get_secret_value(), plain(self.smtp_password))
        except ValueError as error:
            raise ValueError(f"{PREFIX}SMTP_URL: {error}") from None
        return self

    @field_validator("allow_networks")
    @classmethod
    def _networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for network in value:
            ipaddress.ip_network(network)
        return value

    @field_validator("citation_networks")
    @classmethod
    def _openings(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for opening in value:
            parse_opening(opening)
        return value

    @field_validator("oidc_issuer")
    @classmethod
    def _issuer(cls, value: str | None) -> str | None:
        if value is not None and (not is_safe_origin(value) or set("?#@") & set(value)):
            raise ValueError("must be like https://login.example.org; http is for this machine only")
        return value

    @model_validator(mode="after")
    def _oidc(self) -> Self:
        if (self.oidc_issuer is None) != (self.oidc_client_id is None):
            raise ValueError(f"{PREFIX}OIDC_ISSUER and {PREFIX}OIDC_CLIENT_ID go together")
        if self.oidc_issuer is None and self.oidc_client_secret is not None:
            raise ValueError(f"{PREFIX}OIDC_CLIENT_SECRET is for an {PREFIX}OIDC_ISSUER, and none is given")
        if self.oidc_issuer is not None and self.public_url is None:
            raise ValueError(f"{PREFIX}OIDC_ISSUER needs {PREFIX}PUBLIC_URL, to which people come back")
        if self.oidc_issuer is not None and self.offline:
            raise ValueError(f"{PREFIX}OIDC_ISSUER cannot be asked with {PREFIX}OFFLINE")
        return self

    @model_validator(mode="after")
    def _witnesses(self) -> Self:
        if not self.witnesses:
            if self.witnesses_needed is not None:
                raise ValueError(f"{PREFIX}WITNESSES_NEEDED is for {PREFIX}WITNESSES, and none are given")
            return self
        from vouchgate.workers.witnesses import parse_witness  # noqa: PLC0415  (few commands ask witnesses)

        try:
            keys = {parse_witness(each).key.public for each in self.witnesses}
        except ValueError as error:
            raise ValueError(f"{PREFIX}WITNESSES: {error}") from None
        if len(keys) < (self.witnesses_needed or len(self.witnesses)):
            raise ValueError(
                f"{PREFIX}WITNESSES: these are {len(keys)} different witnesses, and more are needed"
            )
        if self.offline:
            raise ValueError(f"{PREFIX}WITNESSES cannot be asked with {PREFIX}OFFLINE")
        return self

    @model_validator(mode="after")
    def _one_forge(self) -> Self:
        named = [
            name for name in ("github_repo", "gitlab_repo", "forgejo_repo") if getattr(self, name) is not None
        ]
        if len(named) > 1:
            given = " and ".join(PREFIX + name.upper() for name in named)
            raise ValueError(f"{given} are both given, but #12 can mean only one of them")
        return self

    @model_validator(mode="after")
    def _jira_projects(self) -> Self:
        if (self.jira_url is None) != (not self.jira_projects):
            raise ValueError(f"{PREFIX}JIRA_URL and {PREFIX}JIRA_PROJECTS go together: UTF-8 is no ticket")
        return self

    @property
    def pages_url(self) -> str:
        """Where people open the pages: PUBLIC_URL, else where this service listens, as seen from its machine."""
        if self.public_url is not None:
            return self.public_url
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104  (not listened at)
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)


def is_safe_origin(url: str) -> bool:
    """Whether secrets may be sent to this URL: over https, or to this machine."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    local = host in ("localhost", "::1") or re.fullmatch(r"127\.\d+\.\d+\.\d+", host) is not None
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and local))


def database_to_open(settings: Settings, earlier: str = EARLIER_DATABASE) -> str:
    """The database's URL. Raises EarlierDatabase when no setting names one, and the working directory has one by the
    `earlier` name and none by today's."""
    named = settings.database_url != Settings.model_fields["database_url"].default
    if not named and Path(earlier).exists() and not Path(DATABASE).exists():
        raise EarlierDatabase(
            f"the database here has its earlier name, {earlier}: rename it to {DATABASE}, with {earlier}-wal and "
            f"{earlier}-shm if they are there, or set {PREFIX}DATABASE_URL=sqlite:///{earlier}"
        )
    return settings.database_url


def erasures_file(settings: Settings) -> Path | None:
    """Where erasures are listed: as set, else beside a SQLite database; None for another one."""
    if settings.erasures is not None:
        return settings.erasures
    from vouchgate.storage.disk.check import database_file  # noqa: PLC0415  (settings are read by commands without a database, too)

    database = database_file(settings.database_url)
    return None if database is None else Path(f"{database}.erasures.jsonl")


def plain(secret: SecretStr | None) -> str | None:
    """What a secret setting holds, for the one who sends it."""
    return None if secret is None else secret.get_secret_value()


def load_settings(environment: Mapping[str, str], **flags: Any) -> Settings:
    """Reads the settings; flags that are None or empty are left to the environment and the file.

    Raises SettingsError naming every setting that is unknown or cannot be used, and where it was given.
    """
    known = sorted(name.upper() for name in Settings.model_fields)
    given = sorted(name.removeprefix(PREFIX) for name in environment if name.startswith(PREFIX))
    unknown = [f"{PREFIX}{name}{did_you_mean(name, known)}" for name in given if name not in known]
    if unknown:
        names = ", ".join(PREFIX + name for name in known)
        raise SettingsError(f"unknown setting {', '.join(unknown)}; known are {names}")
    try:
        return Settings(**{name: value for name, value in flags.items() if value not in (None, (), [])})
    except ValidationError as error:
        problems = [
            (f"{PREFIX}{name.upper()}: " if name else "") + plain_message(item, Settings)
            for item in error.errors()
            for name in [".".join(map(str, item["loc"]))]
        ]
        raise SettingsError("; ".join(problems)) from error
    except (OSError, ValueError, RecursionError) as error:  # vouchgate.toml cannot be read or is not TOML
        raise SettingsError(f"vouchgate.toml: {error}") from error
