"""GitHub and Forgejo count issues and pull requests together, and their pages and APIs have one form."""

from __future__ import annotations

import re
from typing import ClassVar

from vouchgate.ingest.sources.answers import Shape
from vouchgate.ingest.sources.forges.forge import Forge, IssueAddress, in_path, issue_number


class _Comment(Shape):
    body: str
    issue_url: str | None = None
    pull_request_url: str | None = None


class OneCountForge(Forge):
    """One of them; what it is not asked here is its own."""

    api: ClassVar[str] = ""  # where below the base the API is
    pulls: ClassVar[str]  # what a pull request's page has before its number
    # A comment in the fragment of a page: its `id`, and a group `line` when it is on a line of a pull request.
    comments: ClassVar[re.Pattern[str]]

    def address_of(self, path: tuple[str, ...], fragment: str) -> IssueAddress | None:
        """`owner/repo/issues/12`, the same of a pull request, and the pages below them."""
        number = issue_number(path[3]) if len(path) > 3 and path[2] in ("issues", self.pulls) else None
        if number is None:
            return None
        comment = fragment if self.comments.fullmatch(fragment) else ""
        return IssueAddress(f"{path[0]}/{path[1]}", number, comment=comment)

    def issue_url(self, place: IssueAddress) -> str:
        """Issues and pull requests are both there."""
        return f"{self.repository_url(place.repository)}/issues/{place.number}"

    def repository_url(self, repository: str) -> str:
        """The repository itself."""
        return f"{self.base}{self.api}/repos/{'/'.join(map(in_path, repository.split('/')))}"

    async def comment(self, place: IssueAddress) -> str | None:
        """A comment of the thread, or one on a line of a pull request."""
        match = self.comments.fullmatch(place.comment)
        if match is None:
            return None
        of = "pulls" if match.groupdict().get("line") else "issues"
        answer = await self.ask(f"{self.repository_url(place.repository)}/{of}/comments/{match['id']}")
        if answer.status in (404, 410):
            return None
        said = self.shaped(answer, _Comment)
        belongs_to = said.issue_url or said.pull_request_url or ""
        return said.body if belongs_to.endswith(f"/{place.number}") else None
