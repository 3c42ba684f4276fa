"""Validation of a photo's fields."""

import math
from datetime import UTC, datetime, timedelta
from typing import Any

from tailrace.db import clock

MAX_KEY_LENGTH = 500
MAX_CAPTION_LENGTH = 2000
EARLIEST = datetime(1990, 1, 1, tzinfo=UTC)
"""Digital photos did not exist before; a camera whose clock is not set writes 1970 or 1980."""
MAX_AHEAD = timedelta(days=1)
"""How far in the future a photo may be: the time zone of a camera may be unknown."""


class InvalidPhoto(ValueError):
    """The photo cannot be stored; the message names the field."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


def validate(
    *,
    lat: Any,
    lon: Any,
    taken_at: Any,
    storage_key: str,
    caption: str = "",
    unplaced: bool = False,
) -> None:
    """Raise InvalidPhoto for the first invalid field. With `unplaced`, `lat` and `lon` may both be
    None."""
    is_unplaced = unplaced and lat is None and lon is None
    for name, value, limit in () if is_unplaced else (("lat", lat, 90), ("lon", lon, 180)):
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not math.isfinite(value) or abs(value) > limit:
            raise InvalidPhoto(name, f"{value!r} is not a number of degrees, -{limit} to {limit}")
    if not isinstance(taken_at, datetime) or taken_at.tzinfo is None:
        raise InvalidPhoto("taken_at", f"{taken_at!r} is not a time with a time zone")
    if taken_at < EARLIEST:
        raise InvalidPhoto("taken_at", f"{taken_at.isoformat()} is before {EARLIEST:%Y}")
    if taken_at > clock.now() + MAX_AHEAD:
        raise InvalidPhoto("taken_at", f"{taken_at.isoformat()} is in the future")
    for name, text, limit in (
        ("storage_key", storage_key, MAX_KEY_LENGTH),
        ("caption", caption, MAX_CAPTION_LENGTH),
    ):
        if len(text) > limit:
            raise InvalidPhoto(name, f"has {len(text)} characters; the limit is {limit}")
        if "\0" in text:
            raise InvalidPhoto(name, "contains a NUL character, which cannot be stored")
    if not storage_key:
        raise InvalidPhoto("storage_key", "is empty; it must state where the picture is stored")
