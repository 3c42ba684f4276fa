"""gsm: what a text message can say: the 7-bit alphabet of GSM (3GPP TS 23.038)."""

import unicodedata

BASIC = frozenset(
    "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡"
    "ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
)
EXTENDED = frozenset("^{}\\[~]|€")
"""Each takes the place of two."""
INSTEAD = {
    "“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "‘": "'", "’": "'", "‚": "'", "`": "'",
    "–": "-", "—": "-", "‐": "-", "‑": "-", "−": "-", "…": "...", "•": "*", "·": ".", "×": "x",
    "→": "->", "←": "<-", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ı": "i", "œ": "oe", "Œ": "OE",
    "ẞ": "SS", "\u00a0": " ", "\u202f": " ", "\t": " ",
}  # fmt: skip
LONGEST = 160
"""Characters of one message."""
LEAST_TITLE = 60
"""A link takes no more of a message than leaves its title so many."""


def plain(text: str) -> str:
    """Return the text in the alphabet, on one line; ? stands where no letter of it comes near."""
    return " ".join("".join(map(_letter, text)).split())


def length(text: str) -> int:
    """Return how many characters the text takes in a message; it is in the alphabet."""
    return len(text) + sum(letter in EXTENDED for letter in text)


def one_message(title: str, link: str = "") -> str:
    """Return the title and, if it fits, the link, as one message; a long title is cut."""
    said, there = plain(title), link if plain(link) == link else ""
    room = LONGEST - length(there) - 1
    if not there or room < min(length(said), LEAST_TITLE):
        return _cut(said, LONGEST)
    return f"{_cut(said, room)} {there}"


def _cut(text: str, room: int) -> str:
    if length(text) <= room:
        return text
    while length(text) > room - 3:
        text = text[:-1]
    return text.rstrip() + "..."


def _letter(letter: str) -> str:
    if letter in BASIC or letter in EXTENDED:
        return letter if letter not in "\r\n" else " "
    if letter in INSTEAD:
        return INSTEAD[letter]
    if letter.isspace():
        return " "
    base = "".join(part for part in unicodedata.normalize("NFKD", letter) if part in BASIC)
    if base:
        return base
    return "" if unicodedata.category(letter) in ("Mn", "Cf", "Cc") else "?"
