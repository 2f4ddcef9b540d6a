"""Which paths of a repository a list of patterns names, as a `.gitignore` writes them. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

# Where agents are told what to do, and write down what they found: what stands there may be their own word.
MEMORY_FILES = (
    "CLAUDE.md",
    "CLAUDE.local.md",
    "AGENTS.md",
    "AGENT.md",
    "GEMINI.md",
    "MEMORY.md",
    "memory-bank/",
    ".claude/",
    ".cursor/",
    ".cursorrules",
    ".windsurf/",
    ".windsurfrules",
    ".clinerules/",
    ".github/copilot-instructions.md",
    ".github/instructions/",
)
_PIECE = re.compile(r"\*\*/|\*\*|\*|\?|[^*?]+")
_MEANING = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


class PathPatterns:
    """Patterns of paths: `*` and `?` within a name, `**` over several; one without a slash but at its end names things
    at any depth, and with `./` before it here; what names a directory names all that is in it. Raises ValueError for
    one that can name nothing inside the repository.
    """

    def __init__(self, patterns: Sequence[str], *, any_case: bool = False) -> None:
        flags = re.DOTALL | (re.IGNORECASE if any_case else 0)
        self._compiled = tuple(re.compile(_regex(pattern), flags) for pattern in dict.fromkeys(patterns))

    def match(self, path: str) -> bool:
        """Whether one of them names this path."""
        return any(pattern.fullmatch(path) for pattern in self._compiled)


def _regex(pattern: str) -> str:
    given = pattern.strip().rstrip("/")
    inner = given.removeprefix("./")
    parts = inner.split("/")
    if inner.startswith("!") or "\\" in inner or parts[0] == "~" or {"", ".", ".."} & set(parts):
        raise ValueError(f"{pattern!r} is no pattern of paths inside a repository, such as docs/**/*.md.")
    anywhere = "" if "/" in given else "(?:.*/)?"
    body = "".join(_MEANING.get(piece, re.escape(piece)) for piece in _PIECE.findall(inner))
    return f"{anywhere}{body}(?:/.*)?"
