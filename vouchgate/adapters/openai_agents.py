"""Sessions of the OpenAI Agents SDK in which nothing stands as known that nobody vouches for; docs/harnesses.md.

A session is what the next run reads. What users said and tools returned stays as it was; what the model said is looked
at with `check`, which keeps nothing, so that talk fills no queue.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from typing import Any, Literal, cast

from vouchgate import extras

try:
    from agents.items import TResponseInputItem
    from agents.memory import OpenAIConversationsSession, Session, SessionABC, SessionSettings
except ImportError as missing:
    raise ImportError(extras.sentence("GatedSession", "openai-agents"), name=missing.name) from missing

from vouchgate.adapters.rendering import Unrenderable
from vouchgate.client import AsyncClient, Client, VouchgateError
from vouchgate.ingest.checks.secrets import secret_detector
from vouchgate.ingest.claims.decision import ValidationResult
from vouchgate.ingest.claims.memory import Memory
from vouchgate.ingest.language.unseen import hidden_in
from vouchgate.ingest.policy import MAX_CONTENT_CHARACTERS
from vouchgate.ingest.rules import Rule

__all__ = ["GatedSession", "Unrenderable"]

log = logging.getLogger(__name__)

MARK = "[Not vouched for] "
_CREDENTIAL, _HIDDEN, _ORDER, _UNVOUCHED = LINES = tuple(
    f"[Vouchgate left out a text here: {why}.]"
    for why in (
        "it held a credential",
        "it held what nobody can see",
        "it gave an order to a model",
        "nothing vouches for it",
    )
)
_SAID = ("user", "system", "developer")  # the roles in which the application speaks
# Of the model's own items these are kept; what else there is, such as the probability of each word, repeats the text.
_MESSAGE = ("id", "type", "role", "status", "phase")
_REASONING = ("id", "type", "status", "encrypted_content")
# What was called, beside what ends in `_call` and `_output`. Not `item_reference`: it brings in what nobody looked at.
_CALLS = ("additional_tools", "mcp_approval_request", "mcp_approval_response", "mcp_list_tools", "program")


class GatedSession(SessionABC):
    """Any session of the SDK, with what the model says looked at by the gate.

    - `session`: where items are kept. Whoever writes to it directly goes round the gate; what is in it already is
      looked at when it is read.
    - `client`: a `Client`, an `AsyncClient` or an embedded gate. It needs a token of an agent, and keeps nothing.
    - `unvouched`: what becomes of a text that nothing vouches for. `"mark"` keeps it with a mark in front, `"drop"` has
      a line in its place.
    - `user_id`: whose memories it is held against; may be left out when the token acts for one owner.

    A text with a credential, hidden text or an order to a model has a line in its place that says so. One that the gate
    could not be asked about counts as not vouched for. `add_items` raises Unrenderable, before anything is kept, for an
    item of the model's that nobody can read, such as a compaction; where one is there already, reading leaves it out.
    """

    def __init__(
        self,
        session: Session,
        client: Client | AsyncClient,
        *,
        unvouched: Literal["mark", "drop"] = "mark",
        user_id: str | None = None,
    ) -> None:
        if unvouched not in ("mark", "drop"):
            raise ValueError(f'`unvouched` is "mark" or "drop", not {unvouched!r}')
        if isinstance(session, OpenAIConversationsSession):
            raise ValueError(
                "a conversation that OpenAI keeps is not read from here: give a session that keeps its items"
            )
        self.session_id = session.session_id
        self._session = session
        self._client = client
        self._drop = unvouched == "drop"
        self._user_id = user_id
        self._secrets = secret_detector()
        self._looked_at: set[bytes] = set()  # digests of texts as they may be read

    @property
    def session_settings(self) -> SessionSettings | None:
        """Those of the session behind the gate."""
        return self._session.session_settings

    @session_settings.setter
    def session_settings(self, settings: SessionSettings | None) -> None:
        self._session.session_settings = settings

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The latest `limit` items, all unless said, in order. What this object has not looked at, it looks at now."""
        found = [await self._readable(item) for item in await self._session.get_items(limit)]
        return [item for item in found if item is not None]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Keeps these, as they may be read later."""
        await self._session.add_items([await self._judged(item) for item in items])

    async def pop_item(self) -> TResponseInputItem | None:
        """Removes the latest item that can be read, and what stands behind it."""
        while (item := await self._session.pop_item()) is not None:
            if (found := await self._readable(item)) is not None:
                return found
        return None

    async def clear_session(self) -> None:
        """Removes all items."""
        await self._session.clear_session()

    async def _readable(self, item: TResponseInputItem) -> TResponseInputItem | None:
        try:
            return await self._judged(item)
        except Unrenderable as error:
            log.warning("an item of session %s is left out: %s", self.session_id, error)
            return None

    async def _judged(self, item: TResponseInputItem) -> TResponseInputItem:
        """The item as it may be read. Raises Unrenderable."""
        said = cast(dict[str, Any], item)  # Any: the values of JSON
        kind, role = said.get("type") or "message", said.get("role")
        if kind == "message" and role == "assistant":
            content = said.get("content") or ""
            whole = isinstance(content, str)
            content = await self._text(content) if whole else [await self._part(part) for part in content]
            return cast(TResponseInputItem, {**_only(_MESSAGE, said), "content": content})
        if kind == "reasoning":  # of which the model that reads it needs what only its maker can read
            return cast(TResponseInputItem, {**_only(_REASONING, said), "summary": []})
        if (
            (kind == "message" and role in _SAID)
            or kind in _CALLS
            or str(kind).endswith(("_call", "_output"))
        ):
            return item
        raise Unrenderable(
            f"An item of the type {str(kind)[:40]!r} cannot be looked at: nobody can read what it says."
        )

    async def _part(self, part: object) -> dict[str, Any]:
        match part:
            case {"type": "output_text", "text": str(text)}:
                return {"type": "output_text", "text": await self._text(text), "annotations": []}
            case {"type": "refusal", "refusal": str(text)}:
                return {"type": "refusal", "refusal": await self._text(text)}
        raise Unrenderable("A part of a message that is neither text nor a refusal cannot be looked at.")

    async def _text(self, text: str) -> str:
        """What may be read in place of this."""
        if not text.strip() or text in LINES or _digest(text) in self._looked_at:
            return text
        kept, final = await self._ask(text.removeprefix(MARK))
        if final:
            self._looked_at.add(_digest(kept))
        return kept

    async def _ask(self, text: str) -> tuple[str, bool]:
        """What may be read in place of this, and whether the gate would say the same when asked again."""
        if self._secrets.find(text):
            return _CREDENTIAL, True
        if any(hidden_in(text)):
            return _HIDDEN, True
        unvouched = _UNVOUCHED if self._drop else MARK + text
        if len(text) > MAX_CONTENT_CHARACTERS:
            return unvouched, True
        try:
            verdict = await self._check(text)
            codes = {finding.code for finding in verdict.findings}
            for code, line in (
                ("credential", _CREDENTIAL),
                ("hidden_text", _HIDDEN),
                ("instruction", _ORDER),
            ):
                if code in codes:
                    return line, True
            # Of what is stored already, this very text may be said again; what is only like it may not.
            earlier = verdict.conflicting_memory_id if verdict.rule is Rule.DUPLICATE else None
            stored = earlier is not None and (await self._memory(earlier)).content.split() == text.split()
        except VouchgateError as error:
            log.warning("a text of session %s counts as not vouched for: %s", self.session_id, error)
            return unvouched, False
        return (text if stored or verdict.as_sent else unvouched), True

    async def _check(self, text: str) -> ValidationResult:
        if isinstance(self._client, AsyncClient):
            return await self._client.check(text, user_id=self._user_id)
        return await asyncio.to_thread(self._client.check, text, user_id=self._user_id)

    async def _memory(self, memory_id: str) -> Memory:
        if isinstance(self._client, AsyncClient):
            return await self._client.memory(memory_id)
        return await asyncio.to_thread(self._client.memory, memory_id)


def _only(names: tuple[str, ...], said: dict[str, Any]) -> dict[str, Any]:
    return {name: said[name] for name in names if name in said}


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
