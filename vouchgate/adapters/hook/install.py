"""The hook in a harness's file of settings: put there, or taken out, and all else left as it is. Pure."""

from __future__ import annotations

import json
import re

from vouchgate.adapters.hook.harnesses import Harness

_OURS = re.compile(r"\bvouchgate\.cli hook run\b")


class Unsafe(ValueError):
    """The settings cannot be changed without harm; the message is a sentence."""


def changed(text: str, harness: Harness, command: str | None) -> str | None:
    """The settings with the hook in them once, to run this command, or without it; None when nothing is left. Raises
    Unsafe."""
    try:
        settings = json.loads(text) if text.strip() else {}
        groups = settings.setdefault("hooks", {}).setdefault(harness.event, [])
        for group in list(groups):
            kept = [each for each in group["hooks"] if not _OURS.search(str(each.get("command")))]
            if len(kept) < len(group["hooks"]):
                group["hooks"] = kept
                groups[:] = [each for each in groups if each is not group or kept]
    except (json.JSONDecodeError, RecursionError):
        raise Unsafe("it is no JSON, or has comments in it") from None
    except (AttributeError, KeyError, TypeError):
        raise Unsafe("its hooks have another form than is known") from None
    if not isinstance(groups, list):
        raise Unsafe("its hooks are no list")
    if command is not None:
        groups.append({"hooks": [{**harness.handler, "command": command}]})
    if not groups:
        del settings["hooks"][harness.event]
    if not settings["hooks"]:
        del settings["hooks"]
    first = re.search(r"\{\s*\n([ \t]+)\S", text)
    return (
        json.dumps(settings, indent=first[1] if first else 2, ensure_ascii=False) + "\n" if settings else None
    )
