"""Issues and pull requests on GitHub and GitHub Enterprise Server, through the REST API.

Of a transferred or renamed one the API redirects to where it is now; a deleted one is a 410; discussions
share the numbers of issues but are not in the REST API.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal
from urllib.parse import urlsplit

from pydantic import AwareDatetime

from vouchgate.ingest.claims.citation import Citation
from vouchgate.ingest.claims.source import Missing, SourceReading
from vouchgate.ingest.net.fetched import Fetched
from vouchgate.ingest.sources.answers import NoAnswer, Shape, fetch_answer
from vouchgate.ingest.sources.forges.forge import IssueAddress, Thread, in_path
from vouchgate.ingest.sources.forges.one_count import OneCountForge

_VERSION = "2022-11-28"  # of the API, also known to every supported GitHub Enterprise Server
_CLOSED = {
    "completed": "is closed as completed",
    "not_planned": "is closed as not planned",
    "duplicate": "is closed as a duplicate",
}


class _Label(Shape):
    name: str


class _Pull(Shape):
    merged_at: AwareDatetime | None = None


class _Issue(Shape):
    number: int
    title: str
    state: Literal["open", "closed"]
    state_reason: str | None = None
    body: str | None = None
    locked: bool = False
    draft: bool = False
    labels: tuple[_Label | str, ...] = ()
    updated_at: AwareDatetime | None = None
    html_url: str = ""
    repository_url: str = ""  # says where it is now; not every server that speaks this API does
    pull_request: _Pull | None = None


class _Repository(Shape):
    full_name: str
    private: bool = True
    has_discussions: bool = False


class GitHub(OneCountForge):
    """`base` is the address of the API: `https://api.github.com`, `https://github.example.com/api/v3`."""

    name = "GitHub"
    setting = "VOUCHGATE_GITHUB"
    pulls = "pull"
    comments = re.compile(r"(?:issuecomment-|(?P<line>discussion_r))(?P<id>[1-9][0-9]{0,18})")

    def headers(self) -> Mapping[str, str]:
        """The media type and the version of the API, as GitHub asks for them."""
        return {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": _VERSION}

    def secret_headers(self, token: str) -> Mapping[str, str]:
        """A token of any kind."""
        return {"Authorization": f"Bearer {token}"}

    def web(self) -> str:
        """`github.com` for `api.github.com`, the same host for an Enterprise Server."""
        address = self.base.removesuffix("/api/v3")
        return address if urlsplit(address).path else address.replace("://api.", "://", 1)

    def thread(self, answer: Fetched, place: IssueAddress) -> Thread:
        """The issue as it is now, which after a transfer is in another repository."""
        issue = self.shaped(answer, _Issue)
        repository = "/".join(issue.repository_url.split("/")[-2:]) or place.repository
        return Thread(
            repository=repository,
            number=issue.number,
            kind="issue" if issue.pull_request is None else "pull request",
            title=issue.title,
            status=_status(issue),
            body=issue.body or "",
            labels=tuple(label if isinstance(label, str) else label.name for label in issue.labels),
            updated=issue.updated_at,
            url=issue.html_url or f"{self.web()}/{repository}/issues/{issue.number}",
        )

    async def lacks_owner(self, repository: str) -> bool:
        """Accounts and organisations can be seen by everyone, except the managed users of an enterprise, whose
        names have an underscore and no others' have."""
        owner = repository.partition("/")[0]
        return "_" not in owner and (await self.ask(f"{self.base}/users/{in_path(owner)}")).status == 404

    async def absent(self, citation: Citation, place: IssueAddress, repository: Fetched) -> SourceReading:
        """Missing, unless the number may be that of a discussion."""
        known = self.shaped(repository, _Repository)
        where = f"{place.repository}#{place.number}"
        if known.has_discussions:
            await self._rule_out_discussion(place, where, public=not known.private)
        detail = f"GitHub shows {place.repository}, which has no issue or pull request {place.number}."
        return Missing(citation=citation, detail=detail, status=404)

    async def _rule_out_discussion(self, place: IssueAddress, where: str, *, public: bool) -> None:
        if not public:
            raise NoAnswer(
                "not_supported", f"{where} is no issue; whether it is a discussion cannot be asked."
            )
        page = await fetch_answer(
            self._outbound,
            f"{self.web()}/{place.repository}/discussions/{place.number}",
            self.name,
            headers={},
        )
        if page.status == 404:
            return
        self.require_success(page)
        detail = (
            f"{where} is a discussion, which GitHub's API does not show: cite its page {page.url} instead."
        )
        raise NoAnswer("not_supported", detail)


def _status(issue: _Issue) -> str:
    if issue.pull_request is not None and issue.pull_request.merged_at is not None:
        status = "was merged"
    elif issue.pull_request is not None and issue.state == "closed":
        status = "was closed without being merged"
    elif issue.state == "closed":
        status = _CLOSED.get(issue.state_reason or "", "is closed")
    else:
        status = "is open as a draft" if issue.draft else "is open"
    return f"{status} and locked" if issue.locked else status
