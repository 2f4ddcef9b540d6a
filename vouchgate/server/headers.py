"""The headers of every answer of the API, the pages, the MCP server and a witness: what browsers may not do with it."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

NOTHING = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"  # of what is no page
)
# Nothing from elsewhere, nothing inline, no frame around us, and forms go nowhere else.
PAGES = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_FEATURES = (
    *(
        "accelerometer",
        "autoplay",
        "camera",
        "display-capture",
        "encrypted-media",
        "fullscreen",
        "geolocation",
    ),
    *("gyroscope", "magnetometer", "microphone", "midi", "payment", "picture-in-picture"),
    *("publickey-credentials-get", "screen-wake-lock", "usb", "xr-spatial-tracking"),
)
HEADERS = {
    # Other sites are told nothing. Not `no-referrer`: with that, browsers send `Origin: null` with our own forms.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": ", ".join(f"{feature}=()" for feature in _FEATURES),
    "Cache-Control": "no-store",  # unless the answer has its own, as static files do
}


class SecureHeaders:
    """Puts HEADERS on every answer that does not say otherwise. `policies` are the Content-Security-Policies of what is
    at a path and below it; of all else it is NOTHING."""

    def __init__(self, app: ASGIApp, policies: Mapping[str, str] | None = None) -> None:
        self._app = app
        named = [*(policies or {}).items(), ("", NOTHING)]
        self._by_path = [(f"{top}/", HEADERS | {"Content-Security-Policy": policy}) for top, policy in named]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = f"{scope['path']}/"
        ours = next((headers for top, headers in self._by_path if path.startswith(top)), self._by_path[-1][1])

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in ours.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_with_headers)
