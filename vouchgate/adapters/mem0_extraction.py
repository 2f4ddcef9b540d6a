"""The facts that mem0's own model finds in messages, without one of them being written.

`Memory.add(infer=True)` asks its model for facts and writes them in the same call. Here the call runs on a stand-in for
the memory which has the same model and embedder, but whose stores can be read only. It is stopped at the
first insert, so that nothing after it runs either.
"""

from __future__ import annotations

from typing import Any

from mem0 import Memory  # type: ignore[import-untyped]  # the package has no types

from vouchgate.adapters.mem0_forms import MemoryText

# What extraction of mem0 2.2 reads of a Memory. One that needs more fails with an AttributeError and writes nothing.
_READ = ("config", "embedding_model", "llm", "collection_name", "api_version", "custom_instructions")
_ROLES = ("user", "assistant")


class _ExtractedFacts(BaseException):
    """Carries the facts out of mem0. No Exception, because mem0 answers those by trying to write in another way."""

    def __init__(self, payloads: list[dict[str, Any]]) -> None:
        super().__init__(f"{len(payloads)} facts")
        self.payloads = payloads


class _VectorStoreStub:
    """A vector store to look into. It has no other method than these two."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def search(self, **arguments: Any) -> Any:
        return self._store.search(**arguments)

    def insert(self, vectors: Any, ids: Any, payloads: list[dict[str, Any]]) -> None:
        raise _ExtractedFacts(payloads)


class _HistoryStub:
    """The history of a memory, to look into. Messages are not kept: nobody has checked them."""

    def __init__(self, past: Any) -> None:
        self._past = past

    def get_last_messages(self, scope: str, limit: int = 10) -> Any:
        return self._past.get_last_messages(scope, limit=limit)

    def save_messages(self, messages: Any, scope: str) -> None:
        """Called by mem0 when it found no facts."""


def extract(memory: Memory, messages: Any, ids: dict[str, str], prompt: str | None) -> list[MemoryText]:
    """What `memory.add(messages, infer=True)` would save. Costs one call of its model.

    Raises what mem0 raises when its model cannot be asked.
    """
    reader: Any = object.__new__(Memory)
    for name in _READ:
        setattr(reader, name, getattr(memory, name))
    reader.vector_store, reader.db = _VectorStoreStub(memory.vector_store), _HistoryStub(memory.db)
    try:
        left = reader.add(messages, **ids, infer=True, prompt=prompt)
    except _ExtractedFacts as found:
        return [_parse_fact(payload) for payload in found.payloads]
    if left["results"]:
        raise RuntimeError(f"mem0 reports memories that were never written: {left['results']!r}")
    return []


def _parse_fact(payload: dict[str, Any]) -> MemoryText:
    said_by = payload.get("attributed_to")
    # Unattributed it is the model's own sentence, and nobody's word.
    return MemoryText(payload["data"], said_by if said_by in _ROLES else "assistant")
