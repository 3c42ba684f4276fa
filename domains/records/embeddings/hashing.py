"""The embedding that needs no model: words and parts of words, hashed.

It finds texts that share words, forms of a word and misspelt words. It does not know that words of
different spelling mean the same ("car", "automobile"), neither order nor negation, and no second
language. For that, configure a model.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from math import log, sqrt

from tailrace.domains.records.embeddings.model import (
    MOST_CHARACTERS,
    EmbeddingModel,
    ModelKey,
    Vector,
)

VERSION = "1"
MOST_LETTERS = 40
"""Of a word: the rest is left out."""
PART = 4
"""Letters of the parts into which words are cut."""
_WORD = re.compile(r"\w+")


class HashingModel(EmbeddingModel):
    """Each feature of a text adds to one dimension, or takes from it, by its hash."""

    def __init__(self, dimensions: int) -> None:
        self.key = ModelKey(f"hashing:{dimensions}", VERSION, dimensions)
        self.least_similarity = 3 / sqrt(dimensions)  # by chance: one pair of a thousand

    def encode(self, texts: Sequence[str]) -> list[Vector]:
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> Vector:
        vector = [0.0] * self.key.dimensions
        for word, count in Counter(words_of(text)).items():
            weight = 1 + log(count)
            for place, value in _features(word, self.key.dimensions):
                vector[place] += weight * value
        length = sqrt(sum(value * value for value in vector))
        return [value / length for value in vector] if length else vector


def words_of(text: str) -> list[str]:
    """Return the words without case and accents; those of one letter are left out."""
    letters = text[:MOST_CHARACTERS].casefold()
    if not letters.isascii():
        plain = unicodedata.normalize("NFKD", text[:MOST_CHARACTERS]).casefold()
        letters = "".join(each for each in plain if not unicodedata.combining(each))
    return [word[:MOST_LETTERS] for word in _WORD.findall(letters) if len(word) > 1]


@lru_cache(maxsize=50_000)
def _features(word: str, dimensions: int) -> tuple[tuple[int, float], ...]:
    """Return the dimensions of a word and what it adds: half by itself, half by its parts, so that
    long words count no more than short ones; short words count less than others."""
    parts = list(_parts(word))
    weights = {word: 1.0} | {f"#{part}": 1 / sqrt(len(parts)) for part in parts}
    rarity = min(1.0, len(word) / 6)
    return tuple(
        (number % dimensions, rarity * (weight if number >> 63 else -weight))
        for feature, weight in weights.items()
        for number in [int.from_bytes(blake2b(feature.encode(), digest_size=8).digest(), "big")]
    )


def _parts(word: str) -> Iterator[str]:
    whole = f"<{word}>"
    for begin in range(max(1, len(whole) - PART + 1)):
        yield whole[begin : begin + PART]
