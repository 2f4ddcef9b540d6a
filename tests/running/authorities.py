"""The authorities that sign certificates, read once: every client of HTTP would read them anew, also for plain HTTP."""

from __future__ import annotations

import os
import ssl
from functools import cache
from typing import Any

import httpx
from httpx._transports import default

_NAMED = ("SSL_CERT_FILE", "SSL_CERT_DIR")


def share_authorities() -> None:
    """From now on the clients in this process, or in those forked from it, that trust whom the environment names have
    those in common."""
    default.create_ssl_context = _context  # type: ignore[attr-defined]


def _context(verify: Any = True, cert: Any = None, trust_env: bool = True) -> ssl.SSLContext:
    if verify is not True or cert is not None:
        return httpx.create_ssl_context(verify=verify, cert=cert, trust_env=trust_env)
    return _trusting(trust_env, tuple(os.environ.get(name) for name in _NAMED))


@cache
def _trusting(trust_env: bool, named: tuple[str | None, ...]) -> ssl.SSLContext:
    return httpx.create_ssl_context(trust_env=trust_env)
