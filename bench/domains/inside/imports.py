"""Time parsing and staging inside one process, of ours and of others: side, file, format."""

import json
import resource
import sys
import time
from datetime import UTC, datetime
from itertools import chain, islice
from typing import Any
from xml.parsers import expat

import django

IMPORT = 1
CHUNK = 65_536
ROWS = 100_000


def ours(path: str) -> int:
    """Read and stage as an import does."""
    from django.db import connection

    from tailrace.domains.timeline.imports import staging
    from tailrace.domains.timeline.imports.files.parsing.tally import Tally
    from tailrace.domains.timeline.imports.files.reading import read_points

    tally = Tally(latest=int((time.time() + 86_400) * 1e6))
    with open(path, "rb") as file:
        return staging.stage(
            IMPORT, read_points(file, tally), connection, on_commit=lambda staged: None
        )


def bare(path: str) -> int:
    """Parse with the bare parser: the fields that we read are converted to the units that are
    stored, and nothing is checked or kept."""
    if ".gpx" in path:
        return _bare_expat(path)
    return _bare_json_lines(path) if path.endswith(".owntracks") else _bare_ijson(path)


def copy_alone(count: int) -> int:
    """COPY so many packed rows."""
    from django.db import connection

    from tailrace.domains.timeline.imports import staging

    points: list[Any] = [(1_700_000_000_000_000, 1, 2, 3.0, 4.0, None, None)] * 1000
    packed = staging.pack(IMPORT, points)
    with connection.cursor() as cursor:
        began = time.perf_counter()
        statement = f"COPY {staging.partition(IMPORT)} FROM STDIN (FORMAT BINARY)"
        with cursor.cursor.copy(statement) as copy:
            copy.write(b"PGCOPY\n\xff\r\n\0" + bytes(8))
            for _ in range(count // 1000):
                copy.write(packed)
            copy.write(b"\xff\xff")
        seconds = time.perf_counter() - began
    return round(count / seconds)


def gpxpy_bulk(path: str) -> int:
    """gpxpy, then rows by executemany, as bulk_create sends them."""
    import gpxpy
    from django.db import connection

    from tailrace.domains.timeline.imports import staging

    with open(path) as file:
        track = gpxpy.parse(file)
    rows = (
        (
            IMPORT,
            point.time,
            round(point.longitude * 1e7),
            round(point.latitude * 1e7),
            point.elevation,
        )
        for point in chain.from_iterable(s.points for t in track.tracks for s in t.segments)
    )
    count = 0
    with connection.cursor() as cursor:
        while batch := list(islice(rows, 5000)):
            values = ", ".join(["(%s, %s, %s, %s, %s)"] * len(batch))
            cursor.execute(
                f"INSERT INTO {staging.partition(IMPORT)}"
                f" (import_id, recorded_at, lon, lat, altitude) VALUES {values}",
                list(chain.from_iterable(batch)),
            )
            count += len(batch)
    return count


def _bare_expat(path: str) -> int:
    parser = expat.ParserCreate()
    parser.buffer_text = True
    points: list[Any] = []
    attributes: dict[str, str] = {}
    fields: dict[str, Any] = {}
    text = ""
    count = 0

    def start(name: str, attributes_here: dict[str, str]) -> None:
        nonlocal attributes, fields, text
        text = ""
        if name == "trkpt":
            attributes, fields = attributes_here, {}

    def characters(piece: str) -> None:
        nonlocal text
        text += piece

    def end(name: str) -> None:
        if name == "time":
            fields[name] = datetime.fromisoformat(text)
        elif name == "ele":
            fields[name] = float(text)
        elif name == "trkpt":
            lon, lat = attributes["lon"], attributes["lat"]
            points.append((round(float(lon) * 1e7), round(float(lat) * 1e7), fields))

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = characters
    with open(path, "rb") as file:
        while piece := file.read(CHUNK):
            parser.Parse(piece, False)
            count += len(points)
            points.clear()
    return count


def _bare_ijson(path: str) -> int:
    import ijson.backends.yajl2_c as ijson

    with open(path, "rb") as file:
        head = file.read(100)
        file.seek(0)
        lists = ("locations", "features", "rawSignals")
        prefix = next(f"{name}.item" for name in lists if name.encode() in head)
        points = map(_bare_point, ijson.items(file, prefix, use_float=True))
        return sum(1 for _ in points)


def _bare_point(item: dict[str, Any]) -> Any:
    """Convert what a point needs."""
    if "latitudeE7" in item:
        time = datetime.fromisoformat(item["timestamp"])
        return time, item["longitudeE7"], item["latitudeE7"], item["altitude"], item["accuracy"]
    if "position" in item:
        item = item["position"]
        lat, lon = item["LatLng"].split(", ")
        time = datetime.fromisoformat(item["timestamp"])
        lon_e7, lat_e7 = round(float(lon[:-1]) * 1e7), round(float(lat[:-1]) * 1e7)
        return time, lon_e7, lat_e7, item["altitudeMeters"], item["accuracyMeters"]
    if "tst" in item:
        time = datetime.fromtimestamp(item["tst"], UTC)
        return time, round(item["lon"] * 1e7), round(item["lat"] * 1e7), item["alt"], item["acc"]
    properties, (lon, lat, ele) = item["properties"], item["geometry"]["coordinates"]
    time = datetime.fromisoformat(properties["timestamp"])
    return time, round(lon * 1e7), round(lat * 1e7), ele, properties["accuracy"]


def _bare_json_lines(path: str) -> int:
    with open(path) as file:
        points = map(_bare_point, map(json.loads, (line.split("\t")[2] for line in file)))
        return sum(1 for _ in points)


def main() -> None:
    """Print what one side took as JSON: rate, count and peak memory."""
    django.setup()
    from tailrace.domains.timeline.imports import staging

    side, path, points = sys.argv[1], sys.argv[2], int(sys.argv[3])
    staging.create_partition(IMPORT)
    if side == "copy":
        print(json.dumps({"rate": copy_alone(points)}))
        return
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sides = {"ours": ours, "bare": bare, "gpxpy": gpxpy_bulk}
    began = time.perf_counter()
    sides[side](path)
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        json.dumps({"rate": points / seconds, "peak": peak / 1024, "added": (peak - before) / 1024})
    )


if __name__ == "__main__":
    main()
