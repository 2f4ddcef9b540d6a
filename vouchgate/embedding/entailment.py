"""An entailment model on disk: an ONNX cross-encoder and its tokenizer, as a small TOML file describes them.

Nothing is downloaded, and no file but these three is read. Each pair of texts is run by itself, in one thread and
without an arena, so that memory and time are bounded by the longest pair that is read.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field
from tokenizers import Tokenizer

from vouchgate.gate.judge import Asked, Updates
from vouchgate.ingest.claims.source import Found, Held, Inference, Relation
from vouchgate.ingest.net.turns import Turns, asking
from vouchgate.ingest.support.holding import text_held
from vouchgate.ingest.support.scope import said_by
from vouchgate.ingest.support.texts import unpack

log = logging.getLogger(__name__)

_CHARACTERS = 16  # a token, on average: longer texts are not even made into tokens
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
# What any such model can tell, unless its labels stand in another order than the file says.
_PREMISE = "The service is open on Sundays."
_KNOWN = {_PREMISE: "entailment", "The service is not open on Sundays.": "contradiction"}


class ModelFile(BaseModel):
    """What the TOML file says: two files beside it, and what the model's outputs stand for, in their order."""

    model_config = ConfigDict(extra="forbid")
    name: str = Field(min_length=1, max_length=200)
    version: str = Field(min_length=1, max_length=100)
    model: str
    tokenizer: str
    labels: tuple[Relation, Relation, Relation]
    max_length: int = Field(ge=64, le=1024)  # tokens of both texts; memory grows with its square
    sha256: dict[Literal["model", "tokenizer"], str] = {}  # hex, to hold them to


class CrossEncoder:
    """Says what one text does to another. Making one loads and tries it, and raises OSError, ValueError, or what
    onnxruntime or tokenizers raise. Close it when done."""

    def __init__(self, path: Path) -> None:
        files = {"config": path.read_bytes()}
        said = ModelFile.model_validate(tomllib.loads(files["config"].decode()))
        if len(set(said.labels)) < len(said.labels):
            raise ValueError("its labels must be entailment, neutral and contradiction, each once")
        files |= {name: (path.parent / getattr(said, name)).read_bytes() for name in ("model", "tokenizer")}
        self.name = f"{said.name}@{said.version}"
        self.digests = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
        for name, digest in said.sha256.items():
            if digest.lower() != self.digests[name]:
                raise ValueError(f"the sha256 of its {name} is {self.digests[name]}, not {digest}")
        self._labels, self._longest = said.labels, said.max_length
        self._tokenizer = Tokenizer.from_buffer(files["tokenizer"])
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        onnxruntime.disable_telemetry_events()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4  # errors are raised
        options.enable_cpu_mem_arena = options.enable_mem_pattern = False
        # Weights in other files are looked for where there are none: the digest is of all that is read.
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", os.devnull)
        self._session = onnxruntime.InferenceSession(files["model"], options, ["CPUExecutionProvider"])
        self._inputs = [each.name for each in self._session.get_inputs()]
        self._try()
        self._threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="entailment")
        self._turns = Turns(1, 2)

    def close(self) -> None:
        """Waits for questions under way."""
        self._threads.shutdown(wait=True, cancel_futures=True)

    async def ask(self, claim: str, asked: Asked, seconds: float) -> Updates:
        """What it makes of each source, within so many seconds in all. Never raises."""
        work = partial(self._read, claim, asked, time.perf_counter() + seconds)
        try:
            return await asyncio.wait_for(self._turns.run(asking(), self._threads, work), seconds)
        except TimeoutError:
            none = self._inference("timeout", "The entailment model gave no answer in time.")
        except Exception:  # whatever it raises, it could not be found out: UNKNOWN, and a log line
            log.exception("the entailment model %s could not be asked", self.name)
            none = self._inference("error", "The entailment model gave no answer that counts.")
        return dict.fromkeys(asked, none)

    def infer(self, premise: str, hypothesis: str) -> tuple[Relation, float] | None:
        """What the first text does to the second, and how probably, 0 to 1; None for texts that are too long. Raises
        ValueError for an odd answer, and what onnxruntime raises."""
        short = len(premise) + len(hypothesis) <= _CHARACTERS * self._longest
        pair = self._tokenizer.encode(premise, hypothesis) if short else None
        if pair is None or len(pair.ids) > self._longest:
            return None
        logits = self._session.run(None, self._given(pair.ids, pair.attention_mask, pair.type_ids))[0]
        if logits.shape != (1, len(self._labels)) or not np.isfinite(logits).all():
            raise ValueError(f"it made {logits.tolist()!s:.80} of two texts, and not three numbers")
        odds = np.exp(logits[0].astype(np.float64) - logits.max())
        best = int(odds.argmax())
        return self._labels[best], round(float(odds[best] / odds.sum()), 6)

    def _read(self, claim: str, asked: Asked, until: float) -> Updates:
        said = said_by(claim).text
        return {key: self._of_source(said, *each, until) for key, each in asked.items()}

    def _of_source(self, claim: str, found: Found, asked: list[Held], until: float) -> dict[str, object]:
        packed = next((each for each in found.packed if each.digest == found.text_digest), None)
        text, held = text_held(found, unpack(packed)) if packed else "", list(found.held or ())
        for one in asked:
            if time.perf_counter() >= until:  # nobody waits any more
                raise TimeoutError
            passage = text[slice(*(one.place or (0, 0)))]
            statement = " ".join(claim[one.start : one.end].split())
            said = self.infer(f"{found.title}\n{passage}", statement) if passage else None
            if said is None:
                return self._inference("unread", f"The entailment model cannot read enough of {found.name}.")
            held[held.index(one)] = one.model_copy(update={"relation": said[0], "probability": said[1]})
        return {"held": tuple(held), **self._inference()}

    def _inference(self, code: str = "", detail: str = "") -> dict[str, object]:
        return {"inference": Inference(model=self.name, digests=self.digests, code=code, detail=detail)}

    def _given(self, *values: list[int]) -> dict[str, NDArray[np.int64]]:
        named = zip(_INPUTS, values, strict=True)
        return {name: np.array([value], np.int64) for name, value in named if name in self._inputs}

    def _try(self) -> None:
        if unknown := set(self._inputs).difference(_INPUTS):
            raise ValueError(f"it asks for {', '.join(sorted(unknown))}, which no two texts have")
        if self._tokenizer.num_special_tokens_to_add(is_pair=True) < 2:
            raise ValueError("its tokenizer does not tell two texts apart")
        try:
            self._session.run(None, self._given([self._tokenizer.get_vocab_size() - 1], [1], [0]))
        except Exception as error:
            raise ValueError(f"it has not all words of its tokenizer: {error}") from error
        for hypothesis, known in _KNOWN.items():
            if (said := self.infer(_PREMISE, hypothesis)) is None or said[0] != known:
                raise ValueError(f"labels in another order: after “{_PREMISE}” “{hypothesis}” is {said}")
