"""Template filters for points, lengths and pictures."""

from django import template

from tailrace.domains.photos.models import Gathering, Photo
from tailrace.domains.photos.uploads.pictures import storage

register = template.Library()


@register.filter
def coordinates(photo: Photo) -> str:
    """Return the location of a photo as `52.52000° N, 13.40500° E`."""
    return _degrees(photo.lat, photo.lon, 5, "no location yet")


@register.filter
def shown_coordinates(gathering: Gathering) -> str:
    """Return the shown location of a gathering as `52.520° N, 13.405° E`."""
    return _degrees(gathering.shown_lat, gathering.shown_lon, 3, "–")


def _degrees(lat: float | None, lon: float | None, digits: int, missing: str) -> str:
    if lat is None or lon is None:
        return missing
    north, east = ("N" if lat >= 0 else "S"), ("E" if lon >= 0 else "W")
    return f"{abs(lat):.{digits}f}° {north}, {abs(lon):.{digits}f}° {east}"


@register.filter
def metres(number: float) -> str:
    """Return a length as `74 m` or `1.2 km`."""
    return f"{number:.0f} m" if number < 1000 else f"{number / 1000:.1f} km"


@register.filter
def has_picture(photo: Photo) -> bool:
    """Return whether the picture is stored here, so that it can be shown."""
    return storage.is_stored_here(photo.storage_key)
