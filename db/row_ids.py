"""Ids of rows as people and programs write them."""


def row_id(text: str) -> int | None:
    """Return the id that this text is; None if no row can have it."""
    is_number = text.isascii() and text.isdigit() and len(text) <= 19
    return int(text) if is_number and int(text) < 2**63 else None
