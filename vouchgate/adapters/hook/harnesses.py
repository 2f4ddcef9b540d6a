"""The harnesses whose hooks are known: their settings, and the form in which they are answered."""

from __future__ import annotations

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
    "codex": Harness(".codex/hooks.json", ".codex/hooks.json", "PreToolUse", _CODEX),
    "gemini": Harness(".gemini/settings.json", ".gemini/settings.json", "BeforeTool", _GEMINI),
}
