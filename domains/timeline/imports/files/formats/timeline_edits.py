"""Google Takeout's Timeline Edits.json: the positions that Google's servers keep since 2024."""

import re
from collections.abc import Iterator
from typing import Any

from tailrace.domains.timeline.imports.files.formats.base import Format
from tailrace.domains.timeline.imports.files.parsing.json_points import (
    Collector,
    collect,
    first,
    part,
)
from tailrace.domains.timeline.imports.files.parsing.readable import Readable
from tailrace.domains.timeline.imports.files.parsing.tally import Tally
from tailrace.domains.timeline.imports.files.parsing.values import decimal, unwrapped
from tailrace.domains.timeline.points.points import Point

_LIST = re.compile(rb'"timelineEdits"\s*:')


class TimelineEdits(Format):
    """`timelineEdits[]` with raw signals. Edits without a position, e.g. of visits, are ignored."""

    name = "google_timeline_edits"
    label = "Google Takeout, Timeline Edits"

    def recognises(self, head: bytes) -> bool:
        return head.startswith(b"{") and bool(_LIST.search(head))

    def read(self, file: Readable, tally: Tally) -> Iterator[list[Point]]:
        return collect(file, tally, {"timelineEdits": _read})


def _read(item: Any, collector: Collector) -> None:
    position = part(item, "rawSignal", "signal", "position")
    if position is None:
        return
    point = part(position, "point")
    collector.add(
        first(position, "timestamp"),
        first(point, "latE7", "latitudeE7"),
        first(point, "lngE7", "longitudeE7"),
        unwrapped,
        altitude=first(position, "altitudeMeters"),
        accuracy=_metres(first(position, "accuracyMm")),
        speed=first(position, "speedMetersPerSecond"),
    )


def _metres(millimetres: object) -> float | None:
    if millimetres is None:
        return None
    try:
        return decimal(millimetres) / 1000
    except ValueError:
        return None
