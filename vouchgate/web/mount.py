"""Where the pages hang on the service, and what they share with it. The pages themselves are loaded when somebody
first asks for one: templates, Markdown and some fifty forms, which a gate that only agents talk to never needs."""

from __future__ import annotations

import asyncio
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import State
from starlette.types import ASGIApp, Receive, Scope, Send

HOME = "/review"


class PagesApp:
    """Sends what is asked under /review to the pages, and all else on to the application it is put around. The two
    share their state; `shared` is the folder of `create_app`."""

    def __init__(self, app: ASGIApp, state: State, shared: Path | None) -> None:
        self._app = app
        self._state = state
        self._shared = shared
        self._pages: ASGIApp | None = None
        self._loading = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        ours = scope["type"] == "http" and f"{scope['path']}/".startswith(f"{HOME}/")
        await ((self._pages or await self._loaded()) if ours else self._app)(scope, receive, send)

    async def _loaded(self) -> ASGIApp:
        """The pages: loaded once, beside the event loop, so that claims go on meanwhile."""
        async with self._loading:
            if self._pages is None:
                self._pages = await run_in_threadpool(_pages, self._state, self._shared)
            return self._pages


def _pages(state: State, shared: Path | None) -> ASGIApp:
    from vouchgate.web.app import create_pages  # noqa: PLC0415  (see above)

    return create_pages(state, shared)
