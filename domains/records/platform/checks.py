"""System checks of records: the embedding model."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from tailrace.domains.records.search.embeddings.folder import read_folder
from tailrace.domains.records.search.embeddings.model import ModelUnusable
from tailrace.domains.records.search.embeddings.settings import HASHING

PACKAGES = ("numpy", "onnxruntime", "tokenizers")
"""Needed by models in a folder."""


@register("records")
def model_is_usable(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Check the embedding model, without loading its weights."""
    location = settings.RECORDS_MODEL
    if HASHING.fullmatch(location):
        return []
    try:
        read_folder(Path(location))
    except (ModelUnusable, OSError) as error:
        hint = (
            "docs/reference/platform/records.md describes a model's folder; to use no model, set"
            " hashing:256"
        )
        return [Error(f"RECORDS_MODEL: {error}", hint=hint, id="tailrace_records.E001")]
    if packages := [name for name in PACKAGES if find_spec(name) is None]:
        hint = "install tailrace[models]"
        message = f"RECORDS_MODEL: {location} needs {' and '.join(packages)}"
        return [Error(message, hint=hint, id="tailrace_records.E002")]
    return []
