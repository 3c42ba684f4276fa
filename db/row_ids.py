"""Parse ids of rows from text."""


def row_id(text: str) -> int | None:
    """Return the id in this text, or None if it is not a valid id (a bigint of 0 or more)."""
    is_number = text.isascii() and text.isdigit() and len(text) <= 19
    return int(text) if is_number and int(text) < 2**63 else None
