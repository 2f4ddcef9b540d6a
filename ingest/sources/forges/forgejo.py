"""Issues and pull requests on Forgejo and Gitea, through the API they have in common."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from pydantic import AwareDatetime

from vouchgate.ingest.net.fetched import Fetched
from vouchgate.ingest.sources.answers import Shape
from vouchgate.ingest.sources.forges.forge import Forge, IssueAddress, Thread, in_path, issue_number

_COMMENT = re.compile(r"issuecomment-(?P<id>[1-9][0-9]{0,18})")


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


class _Comment(Shape):
    body: str
    issue_url: str = ""
    pull_request_url: str = ""


class Forgejo(Forge):
    """`base` is the address of the forge itself: `https://codeberg.org`."""

    name = "Forgejo"
    setting = "VOUCHGATE_FORGEJO"

    def headers(self) -> Mapping[str, str]:
        """JSON."""
        return {"Accept": "application/json"}

    def secret_headers(self, token: str) -> Mapping[str, str]:
        """An access token."""
        return {"Authorization": f"token {token}"}

    def web(self) -> str:
        """The base."""
        return self.base

    def address_of(self, path: tuple[str, ...], fragment: str) -> IssueAddress | None:
        """`owner/repo/issues/12`, `owner/repo/pulls/12`, and the pages below them."""
        number = issue_number(path[3]) if len(path) > 3 and path[2] in ("issues", "pulls") else None
        if number is None:
            return None
        comment = fragment if _COMMENT.fullmatch(fragment) else ""
        return IssueAddress(f"{path[0]}/{path[1]}", number, comment=comment)

    def issue_url(self, place: IssueAddress) -> str:
        """Issues and pull requests are both there."""
        return f"{self.repository_url(place.repository)}/issues/{place.number}"

    def repository_url(self, repository: str) -> str:
        """The repository itself."""
        return f"{self.base}/api/v1/repos/{'/'.join(map(in_path, repository.split('/')))}"

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

    async def comment(self, place: IssueAddress) -> str | None:
        """A comment of the thread."""
        match = _COMMENT.fullmatch(place.comment)
        if match is None:
            return None
        answer = await self.ask(f"{self.repository_url(place.repository)}/issues/comments/{match['id']}")
        if answer.status in (404, 410):
            return None
        said = self.shaped(answer, _Comment)
        belongs_to = said.issue_url or said.pull_request_url
        return said.body if belongs_to.endswith(f"/{place.number}") else None


def _status(issue: _Issue) -> str:
    pull = issue.pull_request
    if pull is not None and pull.merged:
        status = "was merged"
    elif issue.state == "closed":
        status = "is closed" if pull is None else "was closed without being merged"
    else:
        status = "is open as a draft" if pull is not None and pull.draft else "is open"
    return f"{status} and locked" if issue.is_locked else status
