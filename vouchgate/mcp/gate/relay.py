"""What `fastmcp`'s proxy does not pass on: completions, subscriptions to resources, and notifications of change.

Clients and servers speak one of two protocols: the older, in which a client subscribes to a resource, and the newer
(2026-07-28), in which it listens on a stream that it opens. Either may stand on either side.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

import mcp_types as types
from fastmcp import Client, FastMCP
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

T = TypeVar("T", bound=types.Result)


class Front(Protocol):
    """The client's side of the gate, as far as notifications go."""

    async def send_notification(self, notification: Any) -> None:
        """Sends one that answers no request."""
        ...


class Relay:
    """Passes on between one client (`front`) and the server behind (`client`)."""

    def __init__(self) -> None:
        self.front: Front | None = None
        self.client: Client[Any] | None = None
        self._bus = InMemorySubscriptionBus()
        self._listen = ListenHandler(self._bus)

    def register(self, server: FastMCP[Any]) -> None:
        """Adds what is passed on to the gate's own server."""
        handlers = server._mcp_server
        handlers.add_request_handler("completion/complete", types.CompleteRequestParams, self._complete)
        handlers.add_request_handler("resources/subscribe", types.SubscribeRequestParams, self._subscribe)
        handlers.add_request_handler(
            "resources/unsubscribe", types.UnsubscribeRequestParams, self._unsubscribe
        )
        handlers.add_request_handler(
            "subscriptions/listen", types.SubscriptionsListenRequestParams, self._listens
        )

    async def __call__(self, message: types.ServerNotification | Exception) -> None:
        """What the server behind says without being asked."""
        match message:
            case types.ResourceUpdatedNotification(params=params):
                await self._tell(message, ResourceUpdated(uri=str(params.uri)))
            case types.ToolListChangedNotification():
                await self._tell(message, ToolsListChanged())
            case types.ResourceListChangedNotification():
                await self._tell(message, ResourcesListChanged())
            case types.PromptListChangedNotification():
                await self._tell(message, PromptsListChanged())
            case _:  # log lines and progress go their own way, through the proxy
                return

    async def _tell(self, message: types.ServerNotification, event: ServerEvent) -> None:
        await self._bus.publish(event)
        if self.front is not None:
            await self.front.send_notification(
                message
            )  # dropped for a client of the newer protocol, which listens

    async def _complete(self, _: Any, params: types.CompleteRequestParams) -> types.CompleteResult:
        return await self._ask(types.CompleteRequest(params=params), types.CompleteResult)

    async def _subscribe(self, _: Any, params: types.SubscribeRequestParams) -> types.EmptyResult:
        return await self._ask(types.SubscribeRequest(params=params), types.EmptyResult)

    async def _unsubscribe(self, _: Any, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        return await self._ask(types.UnsubscribeRequest(params=params), types.EmptyResult)

    async def _listens(self, context: Any, params: types.SubscriptionsListenRequestParams) -> Any:
        for uri in params.notifications.resource_subscriptions or ():
            request = types.SubscribeRequest(params=types.SubscribeRequestParams(uri=uri))
            await self._ask(request, types.EmptyResult)
        return await self._listen(context, params)

    async def _ask(self, request: Any, answer: type[T]) -> T:
        """One request to the server behind. Its error is the client's."""
        client = self.client
        if client is None:
            raise MCPError(types.INTERNAL_ERROR, "The server behind the gate has not been started")
        async with client:
            if (
                client.protocol_version in MODERN_PROTOCOL_VERSIONS
                and request.method == "resources/subscribe"
            ):
                raise MCPError(
                    types.METHOD_NOT_FOUND, "The server behind the gate has no subscriptions of this kind"
                )
            answered: T = await client.session.send_request(request, answer)
            return answered
