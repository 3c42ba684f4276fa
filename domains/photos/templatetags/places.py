"""places: points and pictures as people read them, for templates."""

from typing import Any

from django import template

from domains.photos import shelf

register = template.Library()


@register.filter
def place(thing: Any) -> str:
    """Return the point of a photo or a gathering as `52.52000° N, 13.40500° E`."""
    north, east = ("N" if thing.lat >= 0 else "S"), ("E" if thing.lon >= 0 else "W")
    return f"{abs(thing.lat):.5f}° {north}, {abs(thing.lon):.5f}° {east}"


@register.filter
def unlocalized(number: float) -> str:
    """Return a number as scripts read it."""
    return repr(float(number))


@register.filter
def metres(number: float) -> str:
    """Return a length as `74 m` or `1.2 km`."""
    return f"{number:.0f} m" if number < 1000 else f"{number / 1000:.1f} km"


@register.filter
def kept_here(photo: Any) -> bool:
    """Say whether there is a picture to show."""
    return bool(photo.storage_key.startswith(shelf.OURS))
