"""The model of `dedup_method = "vector"`: loaded at the start, asked for each claim, and made to catch up.

Nothing here is imported under `jaccard` (`vouchgate.service` asks the policy first).
"""

from __future__ import annotations

import logging
import math
import queue
import threading
from array import array
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from importlib import import_module
from typing import Any

from sqlalchemy import Connection

from vouchgate.ingest.claims.likeness import Embedding, ItemKind, ParaphraseFacts
from vouchgate.ingest.data.policy_file import PolicyError
from vouchgate.ingest.policy import Policy
from vouchgate.storage.dedup import vectors
from vouchgate.storage.dedup.vectors import Unembedded
from vouchgate.storage.errors import StorageError
from vouchgate.storage.store import Store

log = logging.getLogger(__name__)

Model = Callable[[list[str]], Sequence[Sequence[float]]]

_BATCH = 64  # items embedded between two short write transactions, some 0.6 s of MiniLM on one core


class EmbeddingError(PolicyError):
    """The model that the policy names cannot be used; the message says what to do."""


class Embedder:
    """A model with its name. `model` is what is kept beside each vector: module, attribute and version, so that
    another model or version never meets these vectors."""

    def __init__(self, name: str, model: Model) -> None:
        self.model = f"{name}@{getattr(model, 'version', '')}"
        self._call = model
        self._length = len(self._read("A sentence to see what comes out."))

    def embed(self, text: str) -> Embedding:
        """The vector of a text. Raises ValueError for an odd answer, and whatever the model raises."""
        numbers = self._read(text)
        if len(numbers) != self._length:
            raise ValueError(f"the model made {len(numbers)} numbers, {self._length} before")
        return Embedding(model=self.model, vector=numbers.tobytes())

    def _read(self, text: str) -> array[float]:
        answer = self._call([text])
        if len(answer) != 1:
            raise ValueError(f"the model made {len(answer)} vectors of one text")
        numbers = [float(number) for number in answer[0]]
        length = math.hypot(*numbers)
        if not numbers or not math.isfinite(length) or not length:
            raise ValueError("the model made a vector without a direction")
        return array("f", (number / length for number in numbers))


def load_embedder(policy: Policy) -> Embedder:
    """The policy's model, made and tried once. Raises EmbeddingError with a sentence for who starts it."""
    name = policy.vector_model
    module, _, attribute = name.partition(":")
    try:
        found: Any = getattr(import_module(module), attribute)
        return Embedder(name, found() if isinstance(found, type) else found)
    except ImportError as error:
        raise EmbeddingError(
            f"vector_model {name} cannot be loaded: {error}. Run pip install 'vouchgate[vector]', and see "
            '"Paraphrases" in docs/checks.md for the model'
        ) from error
    except Exception as error:
        raise EmbeddingError(f"vector_model {name} cannot be used: {error}") from error


class Paraphraser:
    """Looks claims up by meaning, and gives earlier items the vectors they lack, in a thread of its own.

    Items lack one after a change of model or method, and when the model failed as they came. Until an owner's
    items all have one, that owner's claims wait for review.
    """

    def __init__(self, store: Store, embedder: Embedder, threshold: float) -> None:
        self._store = store
        self._embedder = embedder
        self._threshold = threshold
        self._wake: queue.Queue[bool] = queue.Queue(maxsize=1)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="vouchgate-vectors", daemon=True)
        self._thread.start()

    def embed(self, text: str) -> Embedding:
        """The vector of a text; raises as `Embedder.embed`."""
        return self._embedder.embed(text)

    def find(self, owner_id: str, embedding: Embedding, now: datetime) -> ParaphraseFacts:
        """What `storage.dedup.vectors.find` says. Raises StorageError."""
        with self._store.read() as connection:
            facts = vectors.find(connection, owner_id, embedding, threshold=self._threshold, now=now)
        if facts.kind == "unavailable":
            self.wake()
        return facts

    def wake(self) -> None:
        """Has the items looked through again for those without a vector."""
        with suppress(queue.Full):  # it will be done anyway
            self._wake.put_nowait(True)

    def close(self) -> None:
        """Stops between two items. Those that still lack a vector get it after the next start."""
        self._closing.set()
        self.wake()
        self._thread.join()

    def catch_up(self) -> int:
        """Gives every item in force its vector; how many got one. What the model fails on is logged, and
        passed over until the next time."""
        count = 0
        for kind in ItemKind:
            after = ("", "")
            while not self._closing.is_set():
                with self._store.read() as connection:
                    page = vectors.missing(connection, kind, self._embedder.model, after, _BATCH)
                if not page:
                    break
                after = (page[-1].owner_id, page[-1].id)
                made = [(item, made) for item in page if (made := self._try(item)) is not None]
                if made:
                    self._keep(made)
                count += len(made)
        return count

    def _keep(self, made: Sequence[tuple[Unembedded, Embedding]]) -> None:
        def work(connection: Connection) -> None:
            for item, embedding in made:
                vectors.store_vector(connection, item, embedding)

        owners = sorted({item.owner_id for item, _ in made})
        # Also of owners who are read-only: it is no change of theirs.
        self._store.writer.run(owners, work, always=True).result()

    def _try(self, item: Unembedded) -> Embedding | None:
        if self._closing.is_set():
            return None
        try:
            return self._embedder.embed(item.content)
        except Exception:
            log.exception("no vector could be made for %s", item.id)
            return None

    def _serve(self) -> None:
        while not self._closing.is_set():
            try:
                count = self.catch_up()
                if count:
                    log.info("%d earlier claims got a vector", count)
            except StorageError:
                log.exception("vectors of earlier claims could not be written")
            self._wake.get()
