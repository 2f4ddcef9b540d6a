"""Addresses of repositories that lie elsewhere, told from paths. Pure."""

from __future__ import annotations

import re

# `https://host/repo`, `ssh://git@host/repo`, `git@host:repo`; `file:///repo` only where that is allowed.
_ADDRESS = re.compile(r"(?P<scheme>https|ssh|file)://[^\s'\"]+|\w[\w.-]*@\w[\w.-]*:[^\s:-][^\s]*")


def is_address(text: str) -> bool:
    """Whether it is the address of a repository elsewhere, and not a path."""
    return _ADDRESS.fullmatch(text) is not None


def checked_address(text: str, *, files: bool) -> str:
    """The address itself. Raises ValueError for one of another protocol than https and ssh, and `file` with `files`."""
    match = _ADDRESS.fullmatch(text)
    if match is None or (match["scheme"] == "file" and not files):
        raise ValueError("A repository that is not a path is https://…, ssh://… or user@host:path.")
    return text


def name_of_address(address: str) -> str:
    """What people call the repository there: the last part of its path."""
    last = re.split(r"[/:]", address.rstrip("/").removesuffix(".git"))[-1]
    return re.sub(r"[^\w.-]", "-", last)[:100].strip(".") or "repository"
