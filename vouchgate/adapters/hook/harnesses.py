"""The harnesses whose hooks are known: the hook in their settings, and the form in which they are answered. Pure."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

SECONDS = 60  # after which the harness takes the hook for failed; it answers itself before that


class Answer(NamedTuple):
    """Why a tool call is denied, in words for each of the two; empty when it goes on as if there were no hook."""

    agent: str = ""
    human: str = ""


class Harness(NamedTuple):
    """One program that runs agents. `project` and `user` are its files of settings, the second under the home
    directory; `event` is what it calls the moment before a tool call, `handler` what it is told beside the command."""

    project: str
    user: str
    event: str
    handler: dict[str, Any]
    others: tuple[str, ...] = ()  # by which hooks can be turned off too

    @property
    def settings(self) -> tuple[str, ...]:
        """Every file that says whether the hook runs, below a project or a home."""
        return (self.project, self.user, *self.others)

    def form(self, answer: Answer) -> dict[str, Any]:
        """The JSON object that it reads the answer from."""
        if not answer.agent:
            return {}
        denied: dict[str, Any] = {"decision": "deny", "reason": answer.agent}
        if self.event == "PreToolUse":
            decision = {"permissionDecision": "deny", "permissionDecisionReason": answer.agent}
            denied = {"hookSpecificOutput": {"hookEventName": self.event, **decision}}
        return {**denied, "systemMessage": answer.human}


# With `onFailure` (since version 2.1.295) a hook that cannot start, or is late, does not let the call through.
_CLAUDE = {"type": "command", "timeout": SECONDS, "onFailure": "block"}
_CODEX = {"type": "command", "timeout": SECONDS}
_GEMINI = {"type": "command", "timeout": SECONDS * 1000, "name": "vouchgate"}
HARNESSES = {
    "claude": Harness(".claude/settings.local.json", ".claude/settings.json", "PreToolUse", _CLAUDE),
    "codex": Harness(".codex/hooks.json", ".codex/hooks.json", "PreToolUse", _CODEX, (".codex/config.toml",)),
    "gemini": Harness(".gemini/settings.json", ".gemini/settings.json", "BeforeTool", _GEMINI),
}
_OURS = re.compile(r"\bvouchgate\.cli hook run\b")


class Unsafe(ValueError):
    """The settings cannot be changed without harm; the message is a sentence."""


def changed(text: str, harness: Harness, command: str | None) -> str | None:
    """The settings with the hook in them once, to run this command, or without it; None when nothing is left. Raises
    Unsafe."""
    try:
        settings = json.loads(text) if text.strip() else {}
        groups = settings.setdefault("hooks", {}).setdefault(harness.event, [])
        for group in groups[:]:
            kept = [each for each in group["hooks"] if not _OURS.search(str(each.get("command")))]
            if len(kept) < len(group["hooks"]):
                group["hooks"] = kept
                groups[:] = [each for each in groups if each is not group or kept]
    except (ValueError, LookupError, AttributeError, TypeError, RecursionError):
        raise Unsafe("it is no JSON, has comments in it, or hooks of another form than is known") from None
    if command is not None:
        groups.append({"hooks": [{**harness.handler, "command": command}]})
    if not groups:
        del settings["hooks"][harness.event]
    if not settings["hooks"]:
        del settings["hooks"]
    if not settings:
        return None
    first = re.search(r"\{\s*\n([ \t]+)\S", text)
    return json.dumps(settings, indent=first[1] if first else 2, ensure_ascii=False) + "\n"
