"""Read requests of the phone apps OwnTracks, GPSLogger and Overland.

Each function takes the parsed JSON of a request, and adds its points to a collector.
"""

from typing import Any

from tailrace.domains.timeline.imports.files.formats import geojson, owntracks
from tailrace.domains.timeline.imports.files.parsing.json_points import Collector, first, part
from tailrace.domains.timeline.points.points import UNPARSABLE

MAX_POINTS = 1000
"""Maximum points per request."""


def own_tracks(body: Any, collector: Collector) -> None:
    """Read a location message of OwnTracks. Other messages of OwnTracks have no point."""
    if part(body, "_type") == "location":
        owntracks.read_location(body, None, collector)


def gps_logger(body: Any, collector: Collector) -> None:
    """Read a point that GPSLogger sends to its custom URL."""
    collector.add(
        first(body, "time", "timestamp"),
        first(body, "lat", "latitude"),
        first(body, "lon", "longitude"),
        altitude=first(body, "alt", "altitude"),
        accuracy=first(body, "acc", "accuracy"),
        speed=first(body, "spd", "speed"),
        course=first(body, "dir", "bearing"),
    )


def overland(body: Any, collector: Collector) -> None:
    """Read a batch of Overland: `locations` is a list of GeoJSON points.

    Raises ValueError for more than MAX_POINTS locations.
    """
    locations = part(body, "locations")
    if not isinstance(locations, list):
        return collector.reject(UNPARSABLE, body)
    if len(locations) > MAX_POINTS:
        raise ValueError(f"the batch has {len(locations)} locations; the limit is {MAX_POINTS}")
    for location in locations:
        coordinates = part(location, "geometry", "coordinates")
        geojson.read_point(coordinates, part(location, "properties"), collector)
