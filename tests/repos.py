"""Git repositories for tests: real ones, made with the git program, always with the same ids."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from vouchgate.ingest.claims.citation import Citation, CitationType

FIRST_SECOND = (
    1_700_000_000  # 2023-11-14T22:13:20Z, the time of the first commit; each later one is a minute on
)
_ENVIRONMENT = {
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    # After each commit git looks, in a process of its own, whether there is something to tidy up.
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "maintenance.auto",
    "GIT_CONFIG_VALUE_0": "false",
}


class TestRepository:
    """A work tree (or a bare repository) at `path`."""

    __test__ = False  # its name begins like a test's, it is none

    def __init__(self, path: Path, *, bare: bool = False) -> None:
        self.path = path
        self._seconds = FIRST_SECOND
        path.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main", *(["--bare"] if bare else []))

    def git(self, *arguments: str, stdin: str | bytes | None = None) -> str:
        """Runs git here and gives its output without the last line end."""
        date = f"{self._seconds} +0000"
        data = stdin.encode() if isinstance(stdin, str) else stdin
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.path,
            env={**os.environ, **_ENVIRONMENT, "GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date},
            input=data,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, (arguments, done.stderr.decode(errors="replace"))
        return done.stdout.decode(errors="replace").removesuffix("\n")

    def write(self, files: Mapping[str, str | bytes]) -> None:
        """Writes files of the work tree; nothing is committed."""
        for name, content in files.items():
            file = self.path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content.encode() if isinstance(content, str) else content)

    def commit(self, message: str, files: Mapping[str, str | bytes] | None = None) -> str:
        """Commits everything in the work tree, and these files; gives the full id."""
        self.write(files or {})
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--cleanup=verbatim", "--message", message)
        self._seconds += 60
        return self._head()

    def revert(self, commit: str) -> str:
        """Reverts a commit as `git revert` does; gives the id of the new one."""
        self.git("revert", "--no-edit", commit)
        self._seconds += 60
        return self._head()

    def object_file(self, object_id: str) -> Path:
        """The file of an object that is not packed."""
        return self._directory() / "objects" / object_id[:2] / object_id[2:]

    def _directory(self) -> Path:
        return self.path / ".git" if (self.path / ".git").is_dir() else self.path

    def _head(self) -> str:
        """The id of the last commit, from the file that git has just written."""
        said = (self._directory() / "HEAD").read_text().strip()
        branch = said.removeprefix("ref: ")
        return said if branch == said else (self._directory() / branch).read_text().strip()


def adr(number: int | str) -> Citation:
    """A citation of an ADR, as a caller gives it beside the text."""
    return Citation(type=CitationType.ADR, value=f"ADR-{number}", key=f"adr:{number}")


def commit(object_id: str) -> Citation:
    """A citation of a commit, as a caller gives it beside the text."""
    return Citation(type=CitationType.COMMIT, value=object_id, key=f"commit:{object_id}")
