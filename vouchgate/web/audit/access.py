"""Who audits: signed in as a reviewer is, and before pages on which nothing can be done."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool

from vouchgate.review.audit.story import PATH
from vouchgate.server.state import service_of
from vouchgate.storage.log.reads import note_read
from vouchgate.web.pages import PageProblem
from vouchgate.web.session import Anybody, Visitor

_OF_REVIEWERS = re.compile(r"/review/(?:items|memories)/([A-Za-z0-9_-]+)")


async def auditing(request: Request, visitor: Anybody) -> Visitor:
    """A dependency: the auditor who is signed in. What they ask for is in the log before it is shown."""
    if not visitor.audits:
        raise PageProblem(403, "This page is for auditors. What you rule on is in your own pages.")
    store, path, now = service_of(request).store, request.url.path, datetime.now(UTC)
    await run_in_threadpool(lambda: note_read(store, visitor.principal, path, now=now))
    return visitor


Auditing = Annotated[Visitor, Depends(auditing)]


def owners_of(visitor: Visitor, wanted: str = "") -> frozenset[str] | None:
    """The owners that an auditor may read, or the one of them that is wanted; None: every owner."""
    principal = visitor.principal
    if not wanted:
        return None if principal.any_owner else principal.owners
    if not principal.may_act_for(wanted):
        raise PageProblem(404, "There is no such owner for you.")
    return frozenset({wanted})


def own_page(request: Request) -> str:
    """Where an auditor finds what a reviewer would see at this address."""
    named, source = _OF_REVIEWERS.fullmatch(request.url.path), request.query_params.get("source")
    if named is not None:
        return f"{PATH}/{named[1]}"
    return f"{PATH}?{urlencode({'q': source})}" if source else PATH
