"""What hangs on the application that answers a request."""

from __future__ import annotations

from fastapi import Request

from vouchgate.service import Service


def service_of(request: Request) -> Service:
    """The running service."""
    service: Service = request.app.state.service
    return service
