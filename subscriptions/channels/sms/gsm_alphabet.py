"""Convert text to the 7-bit GSM alphabet of text messages (3GPP TS 23.038)."""

import unicodedata

BASIC = frozenset(
    "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡"
    "ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
)
EXTENDED = frozenset("^{}\\[~]|€")
"""Characters that count as two."""
REPLACEMENTS = {
    "“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "‘": "'", "’": "'", "‚": "'", "`": "'",
    "–": "-", "—": "-", "‐": "-", "‑": "-", "−": "-", "…": "...", "•": "*", "·": ".", "×": "x",
    "→": "->", "←": "<-", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ı": "i", "œ": "oe", "Œ": "OE",
    "ẞ": "SS", "\u00a0": " ", "\u202f": " ", "\t": " ",
}  # fmt: skip
MESSAGE_LENGTH = 160
MIN_TITLE_LENGTH = 60
"""If less is left for the title, the link is omitted."""


def plain(text: str) -> str:
    """Return the text in the GSM alphabet, on one line; `?` for unknown characters."""
    return " ".join("".join(map(_convert, text)).split())


def length(text: str) -> int:
    """Return the length in a message of a text in the GSM alphabet."""
    return len(text) + sum(char in EXTENDED for char in text)


def one_message(title: str, link: str = "") -> str:
    """Return the title, and the link if it fits, as one message. A long title is shortened."""
    title, link = plain(title), link if plain(link) == link else ""
    room = MESSAGE_LENGTH - length(link) - 1
    if not link or room < min(length(title), MIN_TITLE_LENGTH):
        return _cut(title, MESSAGE_LENGTH)
    return f"{_cut(title, room)} {link}"


def _cut(text: str, room: int) -> str:
    if length(text) <= room:
        return text
    while length(text) > room - 3:
        text = text[:-1]
    return text.rstrip() + "..."


def _convert(char: str) -> str:
    if char in BASIC or char in EXTENDED:
        return char if char not in "\r\n" else " "
    if char in REPLACEMENTS:
        return REPLACEMENTS[char]
    if char.isspace():
        return " "
    base = "".join(part for part in unicodedata.normalize("NFKD", char) if part in BASIC)
    if base:
        return base
    return "" if unicodedata.category(char) in ("Mn", "Cf", "Cc") else "?"
