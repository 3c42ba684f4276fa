"""What apps show of a user on the map of a day. Their `menu` modules declare it: `MAP_LAYERS`, a
sequence of MapLayer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, JsonResponse
from django.urls import reverse
from django.utils.dateparse import parse_datetime

from tailrace.environment.discovery import import_modules

FIRST_YEAR, LAST_YEAR = 1970, 9000
MOST = timedelta(days=31)
"""Maximum length of a period."""


@dataclass(frozen=True, slots=True)
class MapLayer:
    """The pins of an app."""

    view: str
    """The name of a URL, with its namespace. Its view takes `start` and `end` (excluded) of the
    query, and returns a `pins_response` with what is the user's own."""


@dataclass(frozen=True, slots=True)
class Pin:
    lat: float
    lon: float
    title: str
    text: str
    href: str
    picture: str = ""
    """The address of a small picture on this site."""


def layer_addresses(start: datetime, end: datetime) -> list[str]:
    """Return the addresses of the pins of all apps between two times."""
    query = urlencode({"start": start.isoformat(), "end": end.isoformat()})
    return [f"{reverse(layer.view)}?{query}" for layer in _all_layers()]


def period_of(request: HttpRequest) -> tuple[datetime, datetime]:
    """Return `start` and `end` of the query, or raise Http404 if they are not two times with a time
    zone, in their order and at most MOST apart."""
    try:
        times = [parse_datetime(request.GET.get(name, "")) for name in ("start", "end")]
    except ValueError:
        raise Http404 from None
    start, end = times
    if start is None or end is None or start.tzinfo is None or end.tzinfo is None:
        raise Http404
    if not FIRST_YEAR <= start.year <= LAST_YEAR or not start <= end <= start + MOST:
        raise Http404
    return start, end


def pins_response(pins: Sequence[Pin]) -> JsonResponse:
    fields = Pin.__slots__
    return JsonResponse([{name: getattr(pin, name) for name in fields} for pin in pins], safe=False)


def _all_layers() -> Iterator[MapLayer]:
    for module in import_modules("menu"):
        yield from getattr(module, "MAP_LAYERS", ())
