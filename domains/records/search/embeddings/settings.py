"""The settings of embeddings."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tailrace.environment.settings import AppSettings
from tailrace.environment.types import Rule

MOST_DIMENSIONS = 2000
"""The maximum for an index of pgvector."""
HASHING = re.compile(r"hashing:(\d{1,4})")


@dataclass(frozen=True)
class Model(Rule):
    """The folder of a model, or hashing:DIMENSIONS."""

    kind = "folder, or hashing:DIMENSIONS"

    def read(self, text: str) -> str:
        if match := HASHING.fullmatch(text):
            if not 16 <= int(match[1]) <= MOST_DIMENSIONS:
                raise ValueError(f"{text!r}: dimensions must be between 16 and {MOST_DIMENSIONS}")
        elif not Path(text).is_absolute():
            raise ValueError(f"{text!r} is neither the absolute path of a folder nor hashing:256")
        return text


class EmbeddingsSettings(AppSettings):
    """Search by meaning."""

    prefixes = ("RECORDS_MODEL",)

    RECORDS_MODEL: Annotated[str, Model()] = "hashing:256"
    """embedding model for search by meaning, see docs/reference/platform/records.md; after a
    change, keep the folder of the former model until all records are indexed by the new one"""
