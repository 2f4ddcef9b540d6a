"""Issues and pull requests on Forgejo and Gitea, through the API they have in common."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from pydantic import AwareDatetime

from vouchgate.ingest.net.fetched import Fetched
from vouchgate.ingest.sources.answers import Shape
from vouchgate.ingest.sources.forges.forge import IssueAddress, Thread
from vouchgate.ingest.sources.forges.one_count import OneCountForge


class _Label(Shape):
    name: str


class _Pull(Shape):
    merged: bool = False
    draft: bool = False


class _Repository(Shape):
    full_name: str


class _Issue(Shape):
    number: int
    title: str
    body: str = ""
    state: Literal["open", "closed"]
    is_locked: bool = False
    labels: list[_Label] | None = None
    updated_at: AwareDatetime
    html_url: str
    pull_request: _Pull | None = None
    repository: _Repository


class Forgejo(OneCountForge):
    """`base` is the address of the forge itself: `https://codeberg.org`."""

    name = "Forgejo"
    setting = "VOUCHGATE_FORGEJO"
    api = "/api/v1"
    pulls = "pulls"
    comments = re.compile(r"issuecomment-(?P<id>[1-9][0-9]{0,18})")

    def headers(self) -> Mapping[str, str]:
        """JSON."""
        return {"Accept": "application/json"}

    def secret_headers(self, token: str) -> Mapping[str, str]:
        """An access token."""
        return {"Authorization": f"token {token}"}

    def web(self) -> str:
        """The base."""
        return self.base

    def thread(self, answer: Fetched, place: IssueAddress) -> Thread:
        """The issue as it is now; the repository may have another name than it was asked by."""
        issue = self.shaped(answer, _Issue)
        return Thread(
            repository=issue.repository.full_name,
            number=issue.number,
            kind="issue" if issue.pull_request is None else "pull request",
            title=issue.title,
            status=_status(issue),
            body=issue.body,
            labels=tuple(label.name for label in issue.labels or ()),
            updated=issue.updated_at,
            url=issue.html_url,
        )


def _status(issue: _Issue) -> str:
    pull = issue.pull_request
    if pull is not None and pull.merged:
        status = "was merged"
    elif issue.state == "closed":
        status = "is closed" if pull is None else "was closed without being merged"
    else:
        status = "is open as a draft" if pull is not None and pull.draft else "is open"
    return f"{status} and locked" if issue.is_locked else status
