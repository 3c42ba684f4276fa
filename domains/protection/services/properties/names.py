"""Names of people and companies: as the records spell them, and normalised for comparisons."""

import unicodedata

MOST_NAMES = 100
"""Maximum number of names on one side of a document. Further names are not kept."""
MOST_CHARACTERS = 200


def normalised(name: str) -> str:
    """Return the normalised name: `SMITH, JOHN` and `John Smith` are the same.

    Letter case, accents, punctuation and the order of the words are ignored.
    """
    plain = "".join(
        letter
        for letter in unicodedata.normalize("NFKD", name).casefold()
        if not unicodedata.combining(letter) and letter not in "'’`."
    )
    words = "".join(letter if letter.isalnum() else " " for letter in plain).split()
    return " ".join(sorted(words))


def as_written(names: list[str]) -> tuple[str, ...]:
    """Return the distinct names as they are spelled, in the order of their normalised forms."""
    by_key: dict[str, str] = {}
    for name in names:
        text = " ".join(name.split())[:MOST_CHARACTERS]
        if key := normalised(text):
            by_key[key] = min(by_key.get(key, text), text)
    return tuple(by_key[key] for key in sorted(by_key)[:MOST_NAMES])


def keys_of(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the normalised names, sorted. They are equal for the same people."""
    return tuple(sorted(normalised(name) for name in names))
