"""Template filters for points, lengths and pictures."""

from django import template

from domains.photos.models import Gathering, Photo
from domains.photos.uploads import storage

register = template.Library()


@register.filter
def coordinates(point: Photo | Gathering) -> str:
    """Return the point of a photo or a gathering as `52.52000° N, 13.40500° E`."""
    north, east = ("N" if point.lat >= 0 else "S"), ("E" if point.lon >= 0 else "W")
    return f"{abs(point.lat):.5f}° {north}, {abs(point.lon):.5f}° {east}"


@register.filter
def metres(number: float) -> str:
    """Return a length as `74 m` or `1.2 km`."""
    return f"{number:.0f} m" if number < 1000 else f"{number / 1000:.1f} km"


@register.filter
def has_picture(photo: Photo) -> bool:
    """Return whether there is a picture to show."""
    return storage.is_stored_here(photo.storage_key)
