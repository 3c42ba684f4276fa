"""Write points as GPX or GeoJSON. Importing an export again for the same device adds no points."""

import json
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any
from xml.sax.saxutils import escape

from tailrace.domains.timeline.models import Point

Writer = Callable[[str, Iterable[Point]], Iterator[str]]
LINES = 500
"""Lines that are sent as one string."""


def gpx(device: str, points: Iterable[Point]) -> Iterator[str]:
    name = escape("".join(each for each in device if each.isprintable()))
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield '<gpx version="1.1" creator="Tailrace" xmlns="http://www.topografix.com/GPX/1/1">\n'
    yield f"<trk><name>{name}</name><trkseg>\n"
    yield from _together(map(_track_point, points))
    yield "</trkseg></trk>\n</gpx>\n"


def geojson(device: str, points: Iterable[Point]) -> Iterator[str]:
    yield '{"type":"FeatureCollection","features":[\n'
    yield from _together(_separated(_feature(device, point) for point in points))
    yield "]}\n"


FORMATS: dict[str, tuple[str, Writer]] = {
    "gpx": ("application/gpx+xml", gpx),
    "geojson": ("application/geo+json", geojson),
}
"""Content type and writer, by name."""


def degrees(number: int) -> str:
    """Return a number of 1e-7 degrees as decimal degrees."""
    return f"{'-' if number < 0 else ''}{abs(number) // 10**7}.{abs(number) % 10**7:07d}"


def timestamp(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _track_point(point: Point) -> str:
    altitude = "" if point.altitude is None else f"<ele>{point.altitude:g}</ele>"
    return (
        f'<trkpt lat="{degrees(point.lat)}" lon="{degrees(point.lon)}">{altitude}'
        f"<time>{timestamp(point.recorded_at)}</time></trkpt>\n"
    )


def _feature(device: str, point: Point) -> str:
    names = ("altitude", "accuracy", "speed", "course")
    extra = {name: value for name in names if (value := getattr(point, name)) is not None}
    properties: dict[str, Any] = {"time": timestamp(point.recorded_at), "device": device, **extra}
    return (
        '{"type":"Feature","geometry":{"type":"Point","coordinates":'
        f"[{degrees(point.lon)},{degrees(point.lat)}]}},"
        f'"properties":{json.dumps(properties)}}}\n'
    )


def _separated(texts: Iterable[str]) -> Iterator[str]:
    for number, text in enumerate(texts):
        yield f",{text}" if number else text


def _together(texts: Iterable[str]) -> Iterator[str]:
    """Yield the texts joined in groups of LINES."""
    lines: list[str] = []
    for text in texts:
        lines.append(text)
        if len(lines) == LINES:
            yield "".join(lines)
            lines.clear()
    yield "".join(lines)
