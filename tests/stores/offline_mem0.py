"""The real mem0 without a network: a vector store in a directory, embeddings computed here, and a model that says what
it is told. That mem0 sends no telemetry and keeps out of the home directory is seen to in `tests.conftest`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from mem0 import Memory  # type: ignore[import-untyped]  # the package has no types
from pydantic import Field

from tests.models import Bag


class Vectors(Embeddings):
    """Embeddings by counting words. Fails while `broken`."""

    def __init__(self) -> None:
        self.broken = False

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        if self.broken:
            raise ConnectionError("the embedder is away")
        return Bag()(texts)

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


class Model(BaseChatModel):
    """Answers with `says`, and keeps what it was asked. With nothing to say, being asked is a failure."""

    says: str | None = None
    asked: list[list[BaseMessage]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "told"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: Sequence[str] | None = None,
        run_manager: Any = None,
        **more: Any,
    ) -> ChatResult:
        self.asked.append(messages)
        if self.says is None:
            raise AssertionError("the model was asked")
        return ChatResult(generations=[ChatGeneration(message=AIMessage(content=self.says))])


def offline_config(
    directory: Path, vectors: Vectors | None = None, model: Model | None = None
) -> dict[str, Any]:
    """What mem0 is told: all that it keeps is in `directory`."""
    kept = {"path": str(directory / "qdrant"), "embedding_model_dims": 64, "on_disk": True}
    return {
        "vector_store": {"provider": "qdrant", "config": kept},
        "embedder": {"provider": "langchain", "config": {"model": vectors or Vectors()}},
        "llm": {"provider": "langchain", "config": {"model": model or Model()}},
        "history_db_path": str(directory / "history.db"),
    }


class Store:
    """A real `mem0.Memory` in `directory`, and what it runs on."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.vectors, self.model = directory, Vectors(), Model()
        self.memory: Any = Memory.from_config(offline_config(directory, self.vectors, self.model))

    def texts(self, **filters: str) -> list[str]:
        """All memories of a user (or agent, or run), sorted."""
        rows = self.memory.get_all(filters=filters, top_k=100, show_expired=True)["results"]
        return sorted(row["memory"] for row in rows)

    def holds(self, text: str) -> bool:
        """Whether the text stands in any file that mem0 keeps."""
        wanted = text.encode()
        return any(wanted in file.read_bytes() for file in self.directory.rglob("*") if file.is_file())


@contextmanager
def offline_mem0(directory: Path) -> Iterator[Store]:
    """A memory until the end of the block."""
    store = Store(directory)
    try:
        yield store
    finally:
        store.memory.close()
        store.memory.vector_store.client.close()
