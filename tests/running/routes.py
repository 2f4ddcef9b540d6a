"""What FastAPI makes of the routes of the API and the pages, made once: every service would make it anew."""

from __future__ import annotations

from typing import Any

from fastapi import routing

_MADE: dict[int, tuple[Any, Any]] = {}  # by the id of a route, which is kept, so that the id stays its own


def share_routes() -> None:
    """From now on the applications that are made in this process, or in those forked from it, have in common what each
    route takes and answers. They include the same routers in the same way, and differ in the service behind them, which
    a route is handed with its request."""
    make = routing._EffectiveRouteContext.from_api_route

    def made(*, original_route: Any, include_context: Any) -> Any:
        if id(original_route) not in _MADE:
            context = make(original_route=original_route, include_context=include_context)
            _MADE[id(original_route)] = original_route, context
        return _MADE[id(original_route)][1]

    routing._EffectiveRouteContext.from_api_route = made  # type: ignore[method-assign]
