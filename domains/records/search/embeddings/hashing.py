"""An embedding without a model: hashes of words and of parts of words.

It finds texts that share words, forms of words or misspelt words. It does not recognise synonyms
("car", "automobile"), the order of words, negation, or translations. For these, configure a model.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
    hash decides which.

    Features share dimensions, so the cosine of vectors is only near the similarity of their texts:
    among thousands of texts without a common feature, some have a cosine above any useful limit.
    So a search compares the features of the texts with the nearest vectors.
    """

    least_similarity = 0.125

    def __init__(self, dimensions: int) -> None:
        self.key = ModelKey(f"hashing:{dimensions}", VERSION, dimensions)
        self.method = (
            f"the model {self.key.name}, which compares words and parts of words, not meanings"
        )

    def encode(self, texts: Sequence[str]) -> list[Vector]:
        return [self._vector(text) for text in texts]

    def similarities(
        self, query: str, cosines: Mapping[int, float], texts: Callable[[], Mapping[int, str]]
    ) -> Mapping[int, float]:
        wanted = _features(query)
        return {id: _cosine(wanted, _features(text)) for id, text in texts().items()}

    def _vector(self, text: str) -> Vector:
        vector = [0.0] * self.key.dimensions
        for number, value in _features(text).items():
            vector[number % self.key.dimensions] += value if number >> 63 else -value
        length = _length(vector)
        return [value / length for value in vector] if length else vector


def _features(text: str) -> dict[int, float]:
    """Return the values of the features of a text, by hash."""
    features: defaultdict[int, float] = defaultdict(float)
    for word, count in Counter(words_of(text)).items():
        weight = 1 + log(count)
        for number, value in _features_of_word(word):
            features[number] += weight * value
    return features


def _cosine(one: Mapping[int, float], other: Mapping[int, float]) -> float:
    common = sum(value * other.get(number, 0.0) for number, value in one.items())
    return common / (_length(one.values()) * _length(other.values())) if common else 0.0


def _length(values: Iterable[float]) -> float:
    return sqrt(sum(value * value for value in values))


def words_of(text: str) -> list[str]:
    """Return the words of the text in lower case and without accents, without one-letter words."""
    letters = text[:MOST_CHARACTERS].casefold()
    if not letters.isascii():
        plain = unicodedata.normalize("NFKD", text[:MOST_CHARACTERS]).casefold()
        letters = "".join(each for each in plain if not unicodedata.combining(each))
    return [word[:MOST_LETTERS] for word in _WORD.findall(letters) if len(word) > 1]


@lru_cache(maxsize=50_000)
def _features_of_word(word: str) -> tuple[tuple[int, float], ...]:
    """Return the hash and the value of each feature of a word.

    The word itself has half the weight, and its parts have the other half, so that long words have
    no more weight than others. Words of less than six letters have less weight.
    """
    parts = list(_parts(word))
    weights = {word: 1.0} | {f"#{part}": 1 / sqrt(len(parts)) for part in parts}
    rarity = min(1.0, len(word) / 6)
    return tuple(
        (
            int.from_bytes(blake2b(feature.encode(), digest_size=8).digest(), "big"),
            rarity * weight,
        )
        for feature, weight in weights.items()
    )


def _parts(word: str) -> Iterator[str]:
    whole = f"<{word}>"
    for begin in range(max(1, len(whole) - PART + 1)):
        yield whole[begin : begin + PART]
