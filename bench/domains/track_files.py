"""Write location histories of made-up points, in the formats that are imported."""

import json
import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

Step = tuple[datetime, float, float, float]


def walk(count: int) -> Iterator[Step]:
    """Time, latitude, longitude and altitude of that many points, always the same."""
    random_ = random.Random(7)
    at, lat, lon, ele = datetime(2020, 1, 1), 52.52, 13.405, 40.0
    for _ in range(count):
        lat += random_.uniform(-2e-4, 2e-4)
        lon += random_.uniform(-3e-4, 3e-4)
        ele += random_.uniform(-1, 1)
        at += timedelta(seconds=random_.choice((1, 5, 10, 15)))
        yield at, lat, lon, ele


def gpx(path: Path, count: int) -> None:
    """As a GPS receiver writes it."""
    with path.open("w") as file:
        file.write('<?xml version="1.0"?>\n<gpx version="1.1" creator="bench"><trk><trkseg>\n')
        for number, (at, lat, lon, ele) in enumerate(walk(count)):
            if number and number % 10_000 == 0:
                file.write("</trkseg><trkseg>\n")
            file.write(
                f'<trkpt lat="{lat:.7f}" lon="{lon:.7f}"><ele>{ele:.1f}</ele>'
                f"<time>{at:%Y-%m-%dT%H:%M:%SZ}</time><hdop>1.2</hdop></trkpt>\n"
            )
        file.write("</trkseg></trk></gpx>\n")


def gpx_with_extensions(path: Path, count: int) -> None:
    """As a sports watch writes it: heart rate and speed."""
    with path.open("w") as file:
        file.write('<?xml version="1.0"?>\n<gpx version="1.1" creator="bench"><trk><trkseg>\n')
        for at, lat, lon, ele in walk(count):
            file.write(
                f'<trkpt lat="{lat:.7f}" lon="{lon:.7f}"><ele>{ele:.1f}</ele>'
                f"<time>{at:%Y-%m-%dT%H:%M:%SZ}</time><extensions><x:TrackPointExtension>"
                "<x:hr>120</x:hr></x:TrackPointExtension></extensions></trkpt>\n"
            )
        file.write("</trkseg></trk></gpx>\n")


def records(path: Path, count: int) -> None:
    """Google's Records.json."""
    _write_json(path, '{\n  "locations": [', "]\n}\n", map(_record, walk(count)), indent=2)


def android(path: Path, count: int) -> None:
    """Timeline.json of raw signals."""
    _write_json(path, '{"rawSignals": [', "]}", map(_signal, walk(count)))


def geojson(path: Path, count: int) -> None:
    """A collection of points."""
    head = '{"type": "FeatureCollection", "features": ['
    _write_json(path, head, "]}", map(_feature, walk(count)))


def owntracks(path: Path, count: int) -> None:
    """A .rec file."""
    with path.open("w") as file:
        for at, lat, lon, ele in walk(count):
            message = {"_type": "location", "lat": round(lat, 7), "lon": round(lon, 7)}
            more = {"alt": round(ele), "acc": 10, "tst": int(at.timestamp()), "batt": 80}
            file.write(
                f"{at:%Y-%m-%dT%H:%M:%SZ}\t*                 \t{json.dumps(message | more)}\n"
            )


WRITERS = {
    "gpx": gpx,
    "gpx_with_extensions": gpx_with_extensions,
    "records": records,
    "timeline": android,
    "geojson": geojson,
    "owntracks": owntracks,
}


def _write_json(
    path: Path, head: str, end: str, items: Iterator[Any], indent: int | None = None
) -> None:
    with path.open("w") as file:
        file.write(head)
        for number, item in enumerate(items):
            file.write(
                ("," if number else "") + json.dumps(item, indent=indent, ensure_ascii=False)
            )
        file.write(end)


def _record(step: Step) -> dict[str, Any]:
    at, lat, lon, ele = step
    return {
        "latitudeE7": int(lat * 1e7),
        "longitudeE7": int(lon * 1e7),
        "accuracy": 20,
        "altitude": int(ele),
        "verticalAccuracy": 2,
        "source": "WIFI",
        "deviceTag": -1234567890,
        "timestamp": f"{at:%Y-%m-%dT%H:%M:%S}.{at.second:03d}Z",
    }


def _signal(step: Step) -> dict[str, Any]:
    at, lat, lon, ele = step
    position = {"LatLng": f"{lat:.7f}°, {lon:.7f}°", "accuracyMeters": 13}
    more = {"altitudeMeters": round(ele, 1), "timestamp": f"{at:%Y-%m-%dT%H:%M:%S}.000+01:00"}
    return {"position": position | more}


def _feature(step: Step) -> dict[str, Any]:
    at, lat, lon, ele = step
    point = {"type": "Point", "coordinates": [round(lon, 7), round(lat, 7), round(ele, 1)]}
    properties = {"timestamp": f"{at:%Y-%m-%dT%H:%M:%SZ}", "accuracy": 12}
    return {"type": "Feature", "geometry": point, "properties": properties}
