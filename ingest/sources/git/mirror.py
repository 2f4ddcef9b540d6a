"""A bare mirror of a repository that is known by its address, kept in a folder of the service's own and fetched into.

What is read is always the mirror. It is fetched when it is asked for, at most once a minute for all processes together,
never for longer than the reading has time; a fetch that fails or is late leaves the last state, and says so.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import logging
import os
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from vouchgate.ingest.sources.git.addresses import checked_address, name_of_address
from vouchgate.ingest.sources.git.repository import NO_GIT, SourceError
from vouchgate.ingest.sources.plain_text import plain

_log = logging.getLogger(__name__)

FRESH_SECONDS = 60.0  # for so long a fetch is not made again
FETCH_SECONDS = 600.0  # of one fetch, and of the first one a start waits for
_WAIT_SECONDS = 2.0  # for a fetch from its start, where there is a state that can be read instead
_SECRET = re.compile(r"//[^/@\s]*@")
_ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "",
    "SSH_ASKPASS": "",
    "GIT_SSH_COMMAND": "ssh -o BatchMode=yes -o ConnectTimeout=20",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_COUNT": "0",
    "GIT_CONFIG_PARAMETERS": "",
    "GIT_NAMESPACE": "",
}


class Mirror:
    """The repository at `address`, mirrored in a folder below `folder`. `files` allows addresses like `file:///…`,
    and `offline` no fetch at all.

    Raises ValueError for an address of another protocol than https and ssh. Safe in several threads and processes.
    """

    def __init__(
        self,
        address: str,
        folder: Path,
        *,
        files: bool = False,
        offline: bool = False,
        fresh_seconds: float = FRESH_SECONDS,
        fetch_seconds: float = FETCH_SECONDS,
    ) -> None:
        self.address = checked_address(address, files=files)
        self.name = name_of_address(address)
        self.path = folder / hashlib.sha256(address.encode()).hexdigest()[:16] / self.name
        self._protocols = "https:ssh:file" if files else "https:ssh"
        self._offline = offline
        self._fresh, self._seconds = fresh_seconds, fetch_seconds
        self._lock = threading.Lock()
        self._fetching: threading.Thread | None = None
        self._tried = -float("inf")  # `time.monotonic()`
        self.problem = ""  # why the last fetch failed, as a sentence

    def prepare(self) -> None:
        """Fetches at a start, which waits for the first fetch. Raises SourceError when nothing was ever fetched."""
        self.refresh(time.monotonic() + self._seconds)

    def refresh(self, deadline: float) -> None:
        """Fetches unless that was done lately, and waits a little for it, not beyond `deadline` (`time.monotonic()`).
        Raises SourceError when there is nothing to read yet."""
        with self._lock:
            if self._fetching is None and not self._offline and not self._is_fresh():
                self._tried = time.monotonic()
                self._fetching = threading.Thread(target=self._fetch, name=f"fetch {self.name}", daemon=True)
                self._fetching.start()
            thread, begun = self._fetching, self._tried
        if thread is not None:
            until = min(deadline, begun + _WAIT_SECONDS) if self._stamp.exists() else deadline
            thread.join(max(0.0, until - time.monotonic()))
        if not self._stamp.exists():
            why = "could not be fetched" if self.problem else "is not fetched yet"
            raise SourceError("connection", f"{self.name} {why}.")

    def is_behind(self) -> bool:
        """Whether the last state that was fetched is older than it should be: what is not there may be there by now."""
        return not self._age() <= self._fresh

    @property
    def _stamp(self) -> Path:
        return self.path.with_name("fetched")

    def _age(self) -> float:
        try:  # a stamp of the future was made by a clock that was ahead: how old it is nobody knows
            return abs(time.time() - self._stamp.stat().st_mtime)
        except OSError:
            return float("inf")

    def _is_fresh(self) -> bool:
        return self._age() < self._fresh or time.monotonic() - self._tried < self._fresh

    def _fetch(self) -> None:
        try:
            with self._alone() as alone:
                if alone:
                    self._update()
                    self._stamp.touch()
                    self.problem = ""
        except Exception as error:  # noqa: BLE001  (whatever goes wrong leaves the last state, and is said)
            _log.warning("fetching %s failed: %s", self.name, _SECRET.sub("//…@", str(error))[:500])
            self.problem = f"{self.name} could not be fetched; what was fetched before is read."
        finally:
            with self._lock:
                self._fetching = None

    @contextlib.contextmanager
    def _alone(self) -> Iterator[bool]:
        """Whether no other process fetches it now."""
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self.path.with_name("lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            yield True

    def _update(self) -> None:
        if not (self.path / "HEAD").exists():
            self._git("init", "--quiet", "--bare", "--template=", str(self.path))
        listed = self._git("ls-remote", "--symref", "--", self.address, "HEAD")
        everything = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
        self._git(
            "fetch",
            "--quiet",
            "--prune",
            "--force",
            "--no-write-fetch-head",
            "--",
            self.address,
            *everything,
        )
        default = re.match(r"ref: (refs/heads/\S{1,500})\tHEAD", listed)
        if default is not None:
            self._git("symbolic-ref", "HEAD", default[1])

    def _git(self, *arguments: str) -> str:
        """What one git command says. Raises RuntimeError when it fails, takes too long, or there is no git."""
        try:
            import git  # noqa: PLC0415  (as in `repository`)
        except ImportError as error:
            raise RuntimeError(NO_GIT) from error

        executable = git.Git.GIT_PYTHON_GIT_EXECUTABLE or "git"
        git_dir = {} if arguments[0] == "init" else {"GIT_DIR": os.fspath(self.path)}
        status, output, complaint = git.Git(self.path.parent).execute(
            [executable, "-c", f"core.hooksPath={os.devnull}", "-c", "gc.auto=0", *arguments],
            with_extended_output=True,
            with_exceptions=False,
            kill_after_timeout=self._seconds,
            env={**_ENVIRONMENT, "GIT_ALLOW_PROTOCOL": self._protocols, **git_dir},
        )
        if status != 0:
            raise RuntimeError(plain(str(complaint)))
        return str(output)
