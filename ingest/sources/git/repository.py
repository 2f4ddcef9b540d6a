"""One git repository, opened for one reading: bounded commands that run nothing the repository names.

A repository is data from somewhere else. Its configuration may name programs (pagers, signature checkers,
file-system monitors) and remotes to fetch missing objects from, so only plumbing commands are used, the
environment switches those features off, and no transport is allowed.

What git says of objects that are named by their full ids is the same for ever, so it is asked once (`ObjectAnswers`):
starting a process takes longer than most of what it says. What a ref points at is asked anew for every reading.

The owner check of git (`safe.directory`) does not apply, because the git directory is always named
explicitly: that the operator put the path into the settings is the consent which that check asks for.
"""

from __future__ import annotations

import logging
import os
import tempfile
import time
from collections import OrderedDict
from collections.abc import Collection
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import BinaryIO

from vouchgate.ingest.sources.plain_text import plain

_log = logging.getLogger(__name__)

KEPT_BYTES = (
    2_097_152  # of answers on objects, for each repository: some hundred records or pages of documentation
)
_ENTRY_BYTES = 400  # of one that is kept, besides its own

_GLOBAL_OPTIONS = (
    "--no-pager",
    "--literal-pathspecs",
    "-c",
    "core.fsmonitor=",
    "-c",
    f"core.hooksPath={os.devnull}",
    "-c",
    "core.quotePath=false",
    "-c",
    "log.showSignature=false",
    "-c",
    "protocol.allow=never",
)

_ENVIRONMENT = {
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",  # for a git older than GIT_NO_LAZY_FETCH: no protocol has this name
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_CONFIG_GLOBAL": os.devnull,
    # What a git hook that starts us leaves in the environment must not point us at another repository.
    "GIT_CONFIG_COUNT": "0",
    "GIT_CONFIG_PARAMETERS": "",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES": "",
    "GIT_NAMESPACE": "",
}


NO_GIT = "The program git cannot be run: install it, or put its folder into PATH."


class SourceError(Exception):
    """Why a reading could not be made. `code` is one of the words of `Unreachable.code`."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


class ObjectAnswers:
    """What git has said of objects by their full ids, those asked for last, of at most `most` bytes together. Safe to
    use from several threads."""

    def __init__(self, most: int = KEPT_BYTES) -> None:
        self._lock = Lock()
        self._kept: OrderedDict[tuple[str, ...], bytes] = OrderedDict()
        self._left = most

    def get(self, arguments: tuple[str, ...]) -> bytes | None:
        """What it said to these arguments."""
        with self._lock:
            if arguments in self._kept:
                self._kept.move_to_end(arguments)
            return self._kept.get(arguments)

    def keep(self, arguments: tuple[str, ...], answer: bytes) -> None:
        """Lets go what was not asked for longest, where this takes the place; one that is larger than all of the place
        is not kept."""
        with self._lock:
            if arguments in self._kept:
                return
            self._kept[arguments] = answer
            self._left -= _size(arguments, answer)
            while self._left < 0:
                self._left += _size(*self._kept.popitem(last=False))


def _size(arguments: tuple[str, ...], answer: bytes) -> int:
    return len(answer) + sum(map(len, arguments)) + _ENTRY_BYTES


class Repository:
    """An opened repository. `deadline` is a `time.monotonic()` value that all its commands share; `answers` are those
    that were given in it before.

    Opening raises SourceError `no_repository` when the path is no git repository (any more). A parent
    directory is never searched: a deleted clone inside another repository must not be answered by that one.
    """

    def __init__(self, path: Path, deadline: float, answers: ObjectAnswers | None = None) -> None:
        self.name = plain(path.name)
        self._deadline = deadline
        self._answers = ObjectAnswers() if answers is None else answers
        try:
            import git  # noqa: PLC0415  (here and below: it takes long to load, and a gate may have no repository)
            from git.exc import InvalidGitRepositoryError, NoSuchPathError  # noqa: PLC0415
        except ImportError as error:  # it asks for the program when it is loaded
            raise SourceError("error", NO_GIT) from error

        try:
            self._repo = git.Repo(path, expand_vars=False, search_parent_directories=False)
        except (NoSuchPathError, InvalidGitRepositoryError) as error:
            raise SourceError("no_repository", f"{self.name} is not a git repository, or is gone.") from error
        self.common_dir = Path(self._repo.common_dir)
        self.work_tree = None if self._repo.bare else Path(self._repo.working_dir)
        self._environment = {
            **_ENVIRONMENT,
            "GIT_DIR": os.fspath(self._repo.git_dir),
            "GIT_COMMON_DIR": os.fspath(self.common_dir),
            "GIT_OBJECT_DIRECTORY": os.fspath(self.common_dir / "objects"),
        }

    def __enter__(self) -> Repository:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._repo.close()

    def remaining(self) -> float:
        """Seconds left. Raises SourceError `timeout` when there are none."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise SourceError("timeout", f"Reading {self.name} took too long.")
        return left

    def run(self, *arguments: str, ok: Collection[int] = (0,), stdin: bytes | None = None) -> bytes:
        """Standard output of one git command. Raises SourceError `timeout` or `error`."""
        if stdin is None:
            return self.call(*arguments, ok=ok)[1]
        with tempfile.TemporaryFile() as file:
            file.write(stdin)
            file.seek(0)
            return self.call(*arguments, ok=ok, stdin=file)[1]

    def ask(self, *arguments: str, ok: Collection[int] = (0,), lacks: bytes | None = None) -> bytes:
        """As `run`, for a command that says the same for ever, as all it looks at has its full id among the arguments;
        nothing where its status is another of `ok`. That is not kept, nor is what has the words `lacks`, by which the
        command says that something is not here: it may come."""
        if (known := self._answers.get(arguments)) is not None:
            self.remaining()
            return known
        status, answer, _ = self.call(*arguments, ok=ok)
        if status != 0:
            return b""
        if lacks is None or lacks not in answer:
            self._answers.keep(arguments, answer)
        return answer

    def call(
        self, *arguments: str, ok: Collection[int] = (0,), stdin: BinaryIO | None = None
    ) -> tuple[int, bytes, str]:
        """Exit status, standard output and standard error; a status not in `ok` raises SourceError."""
        import git  # noqa: PLC0415
        from git.exc import GitCommandNotFound  # noqa: PLC0415

        executable = git.Git.GIT_PYTHON_GIT_EXECUTABLE or "git"
        try:
            status, output, complaint = self._repo.git.execute(
                [executable, *_GLOBAL_OPTIONS, *arguments],
                istream=stdin,
                with_extended_output=True,
                with_exceptions=False,
                stdout_as_string=False,
                strip_newline_in_stdout=False,
                kill_after_timeout=self.remaining(),
                env=self._environment,
            )
        except GitCommandNotFound as error:
            raise SourceError("error", NO_GIT) from error
        if status not in ok:
            self.remaining()  # a command that was killed because time ran out is a time-out, not a fault
            if not (self.common_dir / "HEAD").is_file():
                raise SourceError("no_repository", f"{self.name} is not a git repository, or is gone.")
            # What git says may hold paths of this machine: for the operator's log, not for the answer.
            _log.warning("git %s failed in %s: %s", arguments[0], self.name, _first_line(complaint))
            raise SourceError("error", f"git could not read what was asked of {self.name}.")
        return status, output if isinstance(output, bytes) else str(output or "").encode(), str(complaint)

    def is_partial(self) -> bool:
        """Whether objects may be missing here because a remote promised to have them."""
        pattern = r"^(extensions\.partialclone|remote\..*\.(promisor|partialclonefilter))$"
        return bool(self.run("config", "--local", "--name-only", "--get-regexp", pattern, ok=(0, 1)))


def _first_line(complaint: str) -> str:
    lines = [line.strip() for line in complaint.splitlines() if line.strip()]
    return (lines[0] if lines else "no reason given")[:200]
