"""Load embedding models: each model once per process, at its first use."""

from functools import lru_cache
from pathlib import Path

from django.conf import settings

from tailrace.domains.records.search.embeddings.folder import read_folder
from tailrace.domains.records.search.embeddings.hashing import HashingModel
from tailrace.domains.records.search.embeddings.model import EmbeddingModel, ModelKey, ModelUnusable
from tailrace.domains.records.search.embeddings.settings import HASHING

SEVERAL = 3
"""Maximum number of models in a process. It needs two while RECORDS_MODEL is being changed."""


def configured() -> EmbeddingModel:
    """Return the model in RECORDS_MODEL. Raises ModelUnusable."""
    return load(settings.RECORDS_MODEL)


def configured_key() -> ModelKey:
    """Return the key of the model in RECORDS_MODEL without loading it. Raises ModelUnusable."""
    return _key(settings.RECORDS_MODEL)


@lru_cache(maxsize=SEVERAL)
def load(location: str) -> EmbeddingModel:
    """Return the model in a folder, or the model hashing:DIMENSIONS. Raises ModelUnusable."""
    if match := HASHING.fullmatch(location):
        return HashingModel(int(match[1]))
    try:  # only here: numpy, onnxruntime and tokenizers take 40 MB
        from tailrace.domains.records.search.embeddings.transformer import TransformerModel
    except ImportError as error:
        raise ModelUnusable(f"{location} needs {error.name}: install tailrace[models]") from None
    return TransformerModel(Path(location))


@lru_cache(maxsize=SEVERAL)
def _key(location: str) -> ModelKey:
    if HASHING.fullmatch(location):
        return load(location).key
    try:
        return read_folder(Path(location)).key()
    except OSError as error:
        raise ModelUnusable(f"{location} cannot be read: {error}") from None
