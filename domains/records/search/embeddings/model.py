"""The base class of embedding models."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

MOST_CHARACTERS = 4000
"""Maximum length of a text, for all models: the rest is ignored."""

Vector = list[float]


class ModelUnusable(Exception):
    """The model cannot be loaded or run. The message names the file, the reason and a solution."""


@dataclass(frozen=True, slots=True)
class ModelKey:
    """The identity of a model. It is stored with each vector."""

    name: str
    version: str
    """Differs if the model makes different vectors."""
    dimensions: int


class EmbeddingModel(ABC):
    """Turns texts into vectors of length 1. Vectors of different models cannot be compared."""

    key: ModelKey
    method: str
    """What the model is and compares, for users."""
    least_similarity: float
    """The similarity below which a text does not match a query."""

    @abstractmethod
    def encode(self, texts: Sequence[str]) -> list[Vector]:
        """Return a vector for each text; all zeros if the model recognises nothing in the text.

        Raises ModelUnusable.
        """

    def similarities(
        self, query: str, cosines: Mapping[int, float], texts: Callable[[], Mapping[int, str]]
    ) -> Mapping[int, float]:
        """Return how similar texts are to a query, by id, given the cosines of their vectors.

        A model whose cosines are inexact compares the texts themselves, which `texts` reads.
        """
        return cosines
