"""Issues and merge requests on GitLab, through its REST API. `#12` is an issue, `!12` a merge request."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from pydantic import AwareDatetime

from vouchgate.ingest.net.fetched import Fetched
from vouchgate.ingest.sources.answers import NoAnswer, Shape
from vouchgate.ingest.sources.forges.forge import Forge, IssueAddress, Thread, in_path, issue_number

_NOTE = re.compile(r"note_(?P<id>[1-9][0-9]{0,18})")
# Work items are what newer versions of GitLab call issues in addresses.
_PAGES = {"issues": False, "work_items": False, "merge_requests": True}
_STATUS = {"opened": "is open", "locked": "is locked", "merged": "was merged"}


class _References(Shape):
    full: str


class _Thread(Shape):
    """An issue or a merge request; what only one of them has is optional."""

    iid: int
    title: str
    description: str | None = None
    state: Literal["opened", "closed", "locked", "merged"]
    labels: tuple[str, ...] = ()
    updated_at: AwareDatetime
    web_url: str
    references: _References
    draft: bool = False
    moved_to_id: int | None = None
    discussion_locked: bool | None = None


class _Note(Shape):
    body: str


class GitLab(Forge):
    """`base` is the address of GitLab itself: `https://gitlab.com`."""

    name = "GitLab"
    setting = "VOUCHGATE_GITLAB"
    deepest = 21  # a project in at most twenty groups, GitLab's own limit

    def headers(self) -> Mapping[str, str]:
        """JSON."""
        return {"Accept": "application/json"}

    def secret_headers(self, token: str) -> Mapping[str, str]:
        """A personal, project or group access token."""
        return {"PRIVATE-TOKEN": token}

    def web(self) -> str:
        """The base."""
        return self.base

    def address_of(self, path: tuple[str, ...], fragment: str) -> IssueAddress | None:
        """`group/project/-/issues/12`; the `-` is missing in old addresses."""
        for at in range(2, len(path) - 1):
            if path[at] in _PAGES:
                number = issue_number(path[at + 1])
                project = path[: at - 1] if path[at - 1] == "-" else path[:at]
                comment = fragment if _NOTE.fullmatch(fragment) else ""
                return (
                    None
                    if number is None
                    else IssueAddress("/".join(project), number, _PAGES[path[at]], comment)
                )
        return None

    def issue_url(self, place: IssueAddress) -> str:
        """Issues and merge requests are counted apart."""
        kind = "merge_requests" if place.merge_request else "issues"
        return f"{self.repository_url(place.repository)}/{kind}/{place.number}"

    def repository_url(self, repository: str) -> str:
        """The project, named by its whole path as one segment."""
        return f"{self.base}/api/v4/projects/{in_path(repository)}"

    def thread(self, answer: Fetched, place: IssueAddress) -> Thread:
        """The issue as it is now. GitLab leaves a closed one behind where one was moved away."""
        thread = self.shaped(answer, _Thread)
        project, mark, _ = thread.references.full.rpartition("!" if place.merge_request else "#")
        if not mark:
            raise NoAnswer("odd_answer", f"GitLab does not say where {place.key} is.", status=answer.status)
        return Thread(
            repository=project,
            number=thread.iid,
            kind="merge request" if place.merge_request else "issue",
            title=thread.title,
            status=_status(thread, place),
            body=thread.description or "",
            labels=tuple(thread.labels),
            updated=thread.updated_at,
            url=thread.web_url,
        )

    async def comment(self, place: IssueAddress) -> str | None:
        """A note of the thread."""
        match = _NOTE.fullmatch(place.comment)
        if match is None:
            return None
        answer = await self.ask(f"{self.issue_url(place)}/notes/{match['id']}")
        return None if answer.status in (404, 410) else self.shaped(answer, _Note).body


def _status(thread: _Thread, place: IssueAddress) -> str:
    if thread.state == "closed":
        status = "was closed without being merged" if place.merge_request else "is closed"
    else:
        status = _STATUS[thread.state]
    if thread.moved_to_id is not None:
        status += ", because it was moved to another project"
    elif thread.draft and thread.state == "opened":
        status += " as a draft"
    return f"{status} and locked" if thread.discussion_locked else status
