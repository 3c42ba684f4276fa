"""Run a BERT model with numpy, from weights in the safetensors format."""

import json
import mmap
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np

from tailrace.domains.records.search.embeddings.model import ModelUnusable

Array = Any
MOST_HEADER = 10_000_000
_TYPES = {"F32": "<f4", "F16": "<f2"}


class Bert:
    """The encoder of Devlin et al. (2018), which turns tokens into vectors."""

    def __init__(self, file: Path, config: dict[str, Any]) -> None:
        expected = {
            "model_type": "bert",
            "hidden_act": "gelu",
            "position_embedding_type": "absolute",
        }
        for key, value in expected.items():
            if config.get(key, value) != value:
                raise ModelUnusable(
                    f"{file.parent / 'config.json'}: {key} is {config[key]!r}, but with"
                    f" safetensors only {value!r} is supported: export the model to onnx/model.onnx"
                )
        tensors = _tensors(file)
        self._weights = {name.removeprefix("bert."): value for name, value in tensors.items()}
        self._heads = int(config.get("num_attention_heads", 0))
        self._layers = int(config.get("num_hidden_layers", 0))
        self._epsilon = float(config.get("layer_norm_eps", 1e-12))
        self._file = file

    def run(self, tokens: Array, mask: Array) -> Array:
        """Return an array (texts, tokens, dimensions) for tokens and mask (texts, tokens).

        Raises ModelUnusable.
        """
        try:
            return self._run(tokens, mask)
        except (KeyError, ValueError, IndexError, AttributeError, ZeroDivisionError) as error:
            raise ModelUnusable(
                f"{self._file} does not fit its config.json: {str(error)[:200]}"
            ) from None

    def _run(self, tokens: Array, mask: Array) -> Array:
        weights = self._weights
        values = (
            weights["embeddings.word_embeddings.weight"][tokens]
            + weights["embeddings.position_embeddings.weight"][None, : tokens.shape[1]]
            + weights["embeddings.token_type_embeddings.weight"][0]
        )
        values = self._norm(values, "embeddings.LayerNorm")
        hidden = np.where(mask, 0, np.finfo(np.float32).min)[:, None, None, :].astype(np.float32)
        for number in range(self._layers):
            values = self._layer(values, hidden, f"encoder.layer.{number}")
        return values

    def _layer(self, values: Array, hidden: Array, name: str) -> Array:
        query, key, value = (
            self._split(self._linear(values, f"{name}.attention.self.{part}"))
            for part in ("query", "key", "value")
        )
        scores = query @ key.swapaxes(-1, -2) / np.float32(sqrt(query.shape[-1])) + hidden
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        mixed = (shares @ value).swapaxes(1, 2).reshape(values.shape)
        output = self._linear(mixed, f"{name}.attention.output.dense")
        values = self._norm(values + output, f"{name}.attention.output.LayerNorm")
        inner = _gelu(self._linear(values, f"{name}.intermediate.dense"))
        output = self._linear(inner, f"{name}.output.dense")
        return self._norm(values + output, f"{name}.output.LayerNorm")

    def _split(self, values: Array) -> Array:
        texts, tokens, size = values.shape
        return values.reshape(texts, tokens, self._heads, size // self._heads).swapaxes(1, 2)

    def _linear(self, values: Array, name: str) -> Array:
        flat = values.reshape(-1, values.shape[-1])  # one matrix product instead of one per text
        output = flat @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]
        return output.reshape(*values.shape[:-1], -1)

    def _norm(self, values: Array, name: str) -> Array:
        centred = values - values.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + np.float32(self._epsilon))
        return centred / spread * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]


def _gelu(values: Array) -> Array:
    """Return x·Φ(x), with Φ by Abramowitz and Stegun 7.1.26 (error below 1.5e-7)."""
    scaled = np.abs(values) * np.float32(1 / sqrt(2))
    t = 1 / (1 + np.float32(0.3275911) * scaled)
    series = np.float32(1.061405429)
    for factor in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        series = series * t + np.float32(factor)
    error = 1 - series * t * np.exp(-scaled * scaled)
    return values * np.float32(0.5) * (1 + np.copysign(error, values))


def _tensors(file: Path) -> dict[str, Any]:
    """Return the tensors in a file by name, as float32 arrays. Raises ModelUnusable.

    Aligned float32 tensors are memory-mapped, so processes share them.
    """
    try:
        with file.open("rb") as content:
            data = mmap.mmap(content.fileno(), 0, access=mmap.ACCESS_READ)
        size = int.from_bytes(data[:8], "little")
        if size > MOST_HEADER:
            raise ValueError(f"its header would have {size:,} bytes")
        header = json.loads(data[8 : 8 + size])
        header.pop("__metadata__", None)
        body = memoryview(data)[8 + size :]
        return {name: _tensor(name, entry, body) for name, entry in header.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelUnusable(
            f"{file} cannot be read as safetensors: {str(error)[:200]}; copy it again"
        ) from None


def _tensor(name: str, entry: dict[str, Any], body: memoryview) -> Any:
    begin, end = entry["data_offsets"]
    if not 0 <= begin <= end <= len(body):
        raise ValueError(f"{name} ends at byte {end:,} of {len(body):,}: the file is cut off")
    if entry["dtype"] == "I64":  # positions of tokens, which are computed instead
        return None
    if entry["dtype"] not in _TYPES:
        raise ValueError(f"{name} has the type {entry['dtype']}; only F32 and F16 are supported")
    values = np.frombuffer(body[begin:end], dtype=_TYPES[entry["dtype"]])
    values = np.require(values, np.float32, "A")  # unaligned arrays are 50 times slower
    return values.reshape(entry["shape"])
