"""Entailment models small enough to reckon with by hand: real ONNX files with real tokenizers, made here.

Each word of the second text adds to the outputs, and the sum of all goes out: a text entails whatever has no word that
says otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, normalizers, pre_tokenizers
from tokenizers.models import WordLevel
from tokenizers.processors import TemplateProcessing

LABELS = ("contradiction", "entailment", "neutral")
SPECIAL = ("[UNK]", "[CLS]", "[SEP]")
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
ODD = "odd"  # a word that makes the outputs NaN


def write_model(folder: Path, words: Mapping[str, str] | None = None, **changed: Any) -> Path:
    """Writes the three files, and returns the path of the TOML file. `words` are those that are not entailed, with the
    label of each; `changed` replaces what `write_toml`, `write_onnx` and `write_tokenizer` have by default."""
    folder.mkdir(parents=True, exist_ok=True)
    known = {"not": "contradiction", ODD: "neutral"} | dict(words or {})
    vocabulary = [*SPECIAL, *known, *(f"word{n}" for n in range(20))]
    write_tokenizer(folder, vocabulary, changed.pop("pairs", True))
    of_model = {name: changed.pop(name) for name in ("inputs", "width", "layers") if name in changed}
    write_onnx(folder, vocabulary[: changed.pop("rows", None)], known, **of_model)
    return write_toml(folder, **changed)


def write_toml(folder: Path, **changed: Any) -> Path:
    said = {
        "name": "words",
        "version": "1",
        "model": "model.onnx",
        "tokenizer": "tokenizer.json",
        "labels": LABELS,
        "max_length": 64,
    } | changed
    path = folder / "entailment.toml"
    path.write_text(
        "".join(f"{name} = {_toml(value)}\n" for name, value in said.items() if value is not None)
    )
    return path


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name} = {_toml(each)}" for name, each in value.items()) + "}"
    return json.dumps(value)


def write_tokenizer(folder: Path, vocabulary: Sequence[str], pairs: bool) -> None:
    numbers = {word: number for number, word in enumerate(vocabulary)}
    tokenizer = Tokenizer(WordLevel(numbers, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    if pairs:
        tokenizer.post_processor = TemplateProcessing(
            single="[CLS] $A [SEP]",
            pair="[CLS] $A [SEP] $B:1 [SEP]:1",
            special_tokens=[("[CLS]", 1), ("[SEP]", 2)],
        )
    tokenizer.save(str(folder / "tokenizer.json"))


def write_onnx(
    folder: Path,
    vocabulary: Sequence[str],
    words: Mapping[str, str],
    *,
    inputs: Sequence[str] = INPUTS,
    width: int = len(LABELS),
    layers: int = 0,
) -> None:
    """`inputs` beyond those of a text are there and do nothing; a model without types of tokens adds up both texts.
    `layers` only take time, each as long as one of a small transformer."""
    table = np.zeros((len(vocabulary), width), np.float32)
    for word, label in words.items():
        table[vocabulary.index(word), LABELS.index(label) % width] = np.nan if word == ODD else 8
    bias = np.zeros((1, width), np.float32)
    bias[0, LABELS.index("entailment")] = 4
    weights = [
        numpy_helper.from_array(table, "table"),
        numpy_helper.from_array(bias, "bias"),
        numpy_helper.from_array(np.array([2], np.int64), "last"),
        numpy_helper.from_array(np.array([1], np.int64), "words"),
    ]
    counted = "token_type_ids" if "token_type_ids" in inputs else "attention_mask"
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["each"]),
        helper.make_node("Cast", [counted], ["floats"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["floats", "last"], ["counts"]),
        helper.make_node("Greater", ["counts", "zero"], ["is_counted"]),
        helper.make_node("Where", ["is_counted", "each", "zero"], ["counted"]),
        helper.make_node("ReduceSum", ["counted", "words"], ["summed"], keepdims=0),
        helper.make_node("Add", ["summed", "bias"], ["logits"]),
    ]
    weights.append(numpy_helper.from_array(np.zeros(1, np.float32), "zero"))
    at, random = "each", np.random.default_rng(1)
    for number in range(layers):
        sizes = [(width, 768), (768, 3072), (3072, 768), (768, 3072), (3072, width)]
        for step, size in enumerate(sizes):
            name = f"layer{number}_{step}"
            weights.append(numpy_helper.from_array(random.random(size, np.float32) / 1e9, name))
            nodes.insert(-4, helper.make_node("MatMul", [at, name], [at := f"{name}_out"]))
    if layers:
        nodes.insert(-4, helper.make_node("Add", ["each", at], ["deep"]))
        nodes[-3].input[1] = "deep"
    shape = ["batch", "words"]
    graph = helper.make_graph(
        nodes,
        "words",
        [helper.make_tensor_value_info(name, TensorProto.INT64, shape) for name in inputs],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", width])],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, str(folder / "model.onnx"))
