"""An embedding without a model: hashes of words and of parts of words.

It finds texts that share words, forms of words or misspelt words. It does not recognise synonyms
("car", "automobile"), the order of words, negation, or translations. For these, configure a model.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from math import log, sqrt

from tailrace.domains.records.search.embeddings.model import (
    MOST_CHARACTERS,
    EmbeddingModel,
    ModelKey,
    Vector,
)

VERSION = "1"
MOST_LETTERS = 40
"""Maximum length of a word: the rest is ignored."""
PART = 4
"""Length of the parts of words."""
_WORD = re.compile(r"\w+")


class HashingModel(EmbeddingModel):
    """Each feature (a word or a part of one) is added to, or subtracted from, one dimension. Its
    hash decides which."""

    def __init__(self, dimensions: int) -> None:
        self.key = ModelKey(f"hashing:{dimensions}", VERSION, dimensions)
        self.least_similarity = 3 / sqrt(dimensions)  # one in 1,000 random pairs exceeds this

    def encode(self, texts: Sequence[str]) -> list[Vector]:
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> Vector:
        vector = [0.0] * self.key.dimensions
        for word, count in Counter(words_of(text)).items():
            weight = 1 + log(count)
            for dimension, value in _features(word, self.key.dimensions):
                vector[dimension] += weight * value
        length = sqrt(sum(value * value for value in vector))
        return [value / length for value in vector] if length else vector


def words_of(text: str) -> list[str]:
    """Return the words of the text in lower case and without accents, without one-letter words."""
    letters = text[:MOST_CHARACTERS].casefold()
    if not letters.isascii():
        plain = unicodedata.normalize("NFKD", text[:MOST_CHARACTERS]).casefold()
        letters = "".join(each for each in plain if not unicodedata.combining(each))
    return [word[:MOST_LETTERS] for word in _WORD.findall(letters) if len(word) > 1]


@lru_cache(maxsize=50_000)
def _features(word: str, dimensions: int) -> tuple[tuple[int, float], ...]:
    """Return pairs of a dimension and the value that the word adds to it.

    The word itself has half the weight, and its parts have the other half, so that long words have
    no more weight than others. Words of less than six letters have less weight.
    """
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
