"""What a model of embeddings is."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

MOST_CHARACTERS = 4000
"""Of a text: the rest is left out, whatever the model would take."""

Vector = list[float]


class ModelUnusable(Exception):
    """The model cannot be loaded or run; the message names the file, the reason and the way out."""


@dataclass(frozen=True, slots=True)
class ModelKey:
    """Which model it is. Stored with each vector."""

    name: str
    version: str
    """Changes with whatever changes the vectors."""
    dimensions: int


class EmbeddingModel(ABC):
    """Turns texts into vectors of length 1. Vectors of different models cannot be compared."""

    key: ModelKey
    least_similarity: float
    """Cosine below which a query and a text have nothing to do with each other."""

    @abstractmethod
    def encode(self, texts: Sequence[str]) -> list[Vector]:
        """Return a vector for each text; zeros for one that says nothing to the model.

        Raises ModelUnusable.
        """
