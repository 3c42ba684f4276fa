"""A sentence-transformers model: it splits texts into tokens, runs small batches, and pools."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from tailrace.domains.records.search.embeddings.folder import ModelFolder, read_folder
from tailrace.domains.records.search.embeddings.model import (
    MOST_CHARACTERS,
    EmbeddingModel,
    ModelUnusable,
    Vector,
)
from tailrace.domains.records.search.embeddings.onnx import OnnxEncoder

BATCH = 16
"""Texts per batch: with 512 tokens each, a batch takes about 400 MB."""


class TransformerModel(EmbeddingModel):
    """A sentence-transformers model. Vectors are always normalised, with or without that step."""

    least_similarity = 0.25

    def __init__(self, path: Path) -> None:
        folder = read_folder(path)
        self._folder = folder
        self._tokenizer = _tokenizer(folder)
        self._encoder = OnnxEncoder(folder.weights)
        self.key = folder.key()
        self.method = f"the model {self.key.name}"

    def encode(self, texts: Sequence[str]) -> list[Vector]:
        vectors: dict[int, Vector] = {}
        shortest_first = sorted(range(len(texts)), key=lambda number: len(texts[number]))
        for begin in range(0, len(texts), BATCH):  # texts of similar length need little padding
            numbers = shortest_first[begin : begin + BATCH]
            pooled = self._encode([texts[number][:MOST_CHARACTERS] for number in numbers])
            vectors |= zip(numbers, pooled, strict=True)
        return [vectors[number] for number in range(len(texts))]

    def _encode(self, texts: list[str]) -> list[Vector]:
        encodings = self._tokenizer.encode_batch([self._folder.prompt + text for text in texts])
        tokens = np.array([encoding.ids for encoding in encodings], dtype=np.int64)
        mask = np.array([encoding.attention_mask for encoding in encodings], dtype=np.int64)
        pooled = _pool(self._encoder.run(tokens, mask), mask, self._folder.pooling)
        if pooled.shape[1] != self.key.dimensions or not np.isfinite(pooled).all():
            raise ModelUnusable(
                f"{self._folder.path}: vectors of {pooled.shape[1]} dimensions instead of"
                f" {self.key.dimensions}, or not finite; copy the model again"
            )
        lengths = np.linalg.norm(pooled, axis=1, keepdims=True)
        vectors: list[Vector] = (pooled / np.maximum(lengths, 1e-12)).tolist()
        return vectors


def _pool(values: Any, mask: Any, pooling: str) -> Any:
    if pooling == "cls":
        return values[:, 0]
    shown = mask[:, :, None].astype(np.float32)
    if pooling == "max":
        return np.where(shown > 0, values, -np.inf).max(axis=1)
    return (values * shown).sum(axis=1) / np.maximum(shown.sum(axis=1), 1e-9)


def _tokenizer(folder: ModelFolder) -> Any:
    file = folder.path / "tokenizer.json"
    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # tokenizers raises Exception
        raise ModelUnusable(f"{file} cannot be read: {str(error)[:200]}") from None
    tokenizer.enable_truncation(folder.most_tokens)
    padding = tokenizer.padding or {}
    tokenizer.enable_padding(
        pad_id=padding.get("pad_id", folder.config.get("pad_token_id") or 0),
        pad_token=padding.get("pad_token", "[PAD]"),
    )
    return tokenizer
