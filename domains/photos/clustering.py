"""clustering: photos become gatherings, in one transaction per batch.

    lock the cells around ──► load what lies there ──► decide (rules) ──► write

Every change of who belongs where happens under advisory locks on the cells within twice the
distance of the photo that caused it. All that it reads or changes lies in those cells: a founded
gathering's photos, and a gathering's centroid before and after a photo joined. Two workers whose
photos can have anything to do with each other therefore take turns.
"""

import math
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction

from domains.photos import grid, sphere
from domains.photos.event_types import GatheringStarted
from domains.photos.rules import Crowd, Scene, Spot
from events import clock
from events.arrays import array, numbers
from events.hot import hot_cursor
from events.publish import NewEvent, publish


class Overtaken(Exception):
    """What was loaded under locks changed all the same: the batch is tried again."""


def cluster(ids: Iterable[int]) -> set[int]:
    """Put the photos of these ids into gatherings as far as they belong to any.

    Safe to repeat: a photo that has its gathering is left alone. One whose lookback is over and
    that is still alone becomes unclusterable. Returns the ids of the photos that exist.
    """
    with transaction.atomic():
        asked = _look(ids)
        open_ones = {id: where for id, where in asked.items() if where is not None}
        if open_ones:
            windows = _windows(open_ones.values())
            _lock(cell for cell, _since, _until in windows)
            spots = _load_spots(windows)
            scene = Scene(spots.values(), _load_crowds(windows))
            batch = sorted(
                (spots[id] for id in open_ones if id in spots),
                key=lambda spot: (spot.taken_at, spot.id),
            )
            for spot in batch:
                scene.place(spot)
            _write(scene, batch, list(spots.values()))
    return set(asked)


# --- what is asked for, and where that is --------------------------------------------------------

_LOOK = """
SELECT id, gathering_id, lat, lon, taken_at FROM photos_photo WHERE id = ANY(%(ids)s::bigint[])
"""
Where = tuple[float, float, datetime]
Window = tuple[int, datetime, datetime]


def _look(ids: Iterable[int]) -> dict[int, Where | None]:
    """Return where the photos are that exist; None for those that have their gathering."""
    return {
        id: (lat, lon, taken_at) if gathering is None else None
        for id, gathering, lat, lon, taken_at in _fetch(_LOOK, {"ids": numbers(ids)})
    }


def _windows(places: Iterable[Where]) -> list[Window]:
    """Return the cells around the places, each with the times that matter, none twice."""
    window = timedelta(minutes=settings.PHOTOS_TIME_WINDOW_MINUTES)
    reach = 2 * settings.PHOTOS_DISTANCE_METERS
    around = sorted(
        (cell, taken_at) for lat, lon, taken_at in places for cell in grid.cover(lat, lon, reach)
    )
    found: list[Window] = []
    for cell, taken_at in around:
        since, until = taken_at - window, taken_at + window
        if found and found[-1][0] == cell and since <= found[-1][2]:
            found[-1] = (cell, found[-1][1], until)
        else:
            found.append((cell, since, until))
    return found


# One row after the other, so the locks are taken in the order of the array.
_LOCK = """
SELECT pg_advisory_xact_lock(hashtext('photos.cells'), block)
FROM unnest(%(blocks)s::int[]) AS block
"""


def _lock(cells: Iterable[int]) -> None:
    """Take the locks of the cells, in order. A long distance takes blocks of cells together, for
    the server has room for some thousands of locks only."""
    side = max(1, math.ceil(4 * settings.PHOTOS_DISTANCE_METERS / grid.METRES_PER_ROW))
    blocks = {
        row // side * grid.COLUMNS + column // side
        for row, column in (divmod(cell, grid.COLUMNS) for cell in cells)
    }
    _fetch(_LOCK, {"blocks": numbers(sorted(blocks))})


# --- what lies there -----------------------------------------------------------------------------

# OFFSET 0 keeps the planner from turning the loop over an index into a join that reads it all.
_NEAR = """
SELECT near.* FROM unnest(%(cells)s::int[], %(since)s::timestamptz[], %(until)s::timestamptz[])
  AS w (cell, since, until),
LATERAL (
  SELECT id, x, y, z, taken_at, uploaded_at, given_up_at FROM photos_photo p
  WHERE p.gathering_id IS NULL AND p.cell = w.cell AND p.taken_at BETWEEN w.since AND w.until
  OFFSET 0
) near
"""

# The rows' locks keep the sweeper from finalizing what a photo is about to join; a gathering that
# was finalized meanwhile is seen as such once its lock is had, and left out.
_OPEN = """
SELECT g.id, g.photo_count, g.sum_x, g.sum_y, g.sum_z, g.first_photo_at, g.last_photo_at,
       g.lat, g.lon
FROM photos_gathering g
WHERE g.state = 'ACTIVE' AND g.id = ANY (ARRAY(
  SELECT near.id
  FROM unnest(%(cells)s::int[], %(since)s::timestamptz[], %(until)s::timestamptz[])
    AS w (cell, since, until),
  LATERAL (
    SELECT id FROM photos_gathering a
    WHERE a.state = 'ACTIVE' AND a.cell = w.cell AND a.last_photo_at BETWEEN w.since AND w.until
    OFFSET 0
  ) near
))
ORDER BY g.id
FOR UPDATE
"""


def _load_spots(windows: Sequence[Window]) -> dict[int, Spot]:
    rows = _fetch(_NEAR, _columns(windows))
    return {
        id: Spot(id, (x, y, z), taken_at, uploaded_at, given_up_at)
        for id, x, y, z, taken_at, uploaded_at, given_up_at in rows
    }


def _load_crowds(windows: Sequence[Window]) -> list[Crowd]:
    found = []
    for id, count, x, y, z, first, last, lat, lon in _fetch(_OPEN, _columns(windows)):
        total = (int(x), int(y), int(z))
        at = sphere.direction(total) if any(total) else sphere.unit(lat, lon)
        found.append(Crowd(id, at, count, total, first, last))
    return found


def _columns(windows: Sequence[Window]) -> dict[str, Any]:
    return {
        "cells": numbers(cell for cell, _, _ in windows),
        "since": array(since for _, since, _ in windows),
        "until": array(until for _, _, until in windows),
    }


# --- what becomes of it --------------------------------------------------------------------------


def _write(scene: Scene, batch: list[Spot], spots: list[Spot]) -> None:
    came = [spot for spot in spots if spot.crowd is not None]
    crowds = list({id(spot.crowd): spot.crowd for spot in came if spot.crowd}.values())
    begun = [crowd for crowd in crowds if crowd.id is None]
    if crowds:
        _insert(begun)
        _assign(came)
        told = _update(crowds)
        publish([_started(told[crowd.id]) for crowd in begun if crowd.id])
    alone = [spot for spot in batch if spot.crowd is None]
    _give_up(scene, alone)
    _reopen(scene, came, alone)


_INSERT = f"""
INSERT INTO photos_gathering (state, lat, lon, radius, photo_count, sum_x, sum_y, sum_z,
                              first_photo_at, last_photo_at, joined_at, created_at)
SELECT 'ACTIVE', 0, 0, 0, 0, 0, 0, 0, {clock.NOW}, {clock.NOW}, {clock.NOW}, {clock.NOW}
FROM generate_series(1, %(count)s::int)
RETURNING id
"""


def _insert(begun: list[Crowd]) -> None:
    """Give those that are founded their rows; what stands in them comes with the update."""
    if begun:
        rows = _fetch(_INSERT, clock.params() | {"count": len(begun)})
        for crowd, (id,) in zip(begun, sorted(rows), strict=True):
            crowd.id = id


_ASSIGN = """
UPDATE photos_photo p SET gathering_id = new.gathering, state = 'clustered', next_try_at = NULL,
                          given_up_at = NULL, reason = ''
FROM unnest(%(ids)s::bigint[], %(gatherings)s::bigint[]) AS new (id, gathering)
WHERE p.id = new.id AND p.gathering_id IS NULL
RETURNING p.id
"""


def _assign(came: list[Spot]) -> None:
    params = {
        "ids": numbers(spot.id for spot in came),
        "gatherings": numbers(spot.crowd.id if spot.crowd else None for spot in came),
    }
    if len(_fetch(_ASSIGN, params)) != len(came):
        raise Overtaken("a photo was deleted while its batch was clustered")


_UPDATE = f"""
UPDATE photos_gathering g SET
  photo_count = new.count, sum_x = new.x, sum_y = new.y, sum_z = new.z,
  lat = new.lat, lon = new.lon, first_photo_at = new.first, last_photo_at = new.last,
  joined_at = {clock.NOW},
  radius = 2 * {grid.EARTH_RADIUS} * asin(least(1, sqrt(farthest.squared) / 2e15))
FROM unnest(%(ids)s::bigint[], %(count)s::int[], %(x)s::numeric[], %(y)s::numeric[],
            %(z)s::numeric[], %(lat)s::float8[], %(lon)s::float8[], %(first)s::timestamptz[],
            %(last)s::timestamptz[], %(cx)s::bigint[], %(cy)s::bigint[], %(cz)s::bigint[])
  AS new (id, count, x, y, z, lat, lon, first, last, cx, cy, cz),
LATERAL (
  SELECT max((p.x - new.cx)::float8 ^ 2 + (p.y - new.cy)::float8 ^ 2
             + (p.z - new.cz)::float8 ^ 2) AS squared
  FROM photos_photo p WHERE p.gathering_id = new.id
) farthest
WHERE g.id = new.id AND g.state = 'ACTIVE'
RETURNING g.id, g.lat, g.lon, g.radius, g.photo_count, g.first_photo_at, g.last_photo_at
"""
KEYS = ("gathering", "lat", "lon", "radius", "photo_count", "first_photo_at", "last_photo_at")
"""What the events say of a gathering, in the order of RETURNING."""


def _update(crowds: list[Crowd]) -> dict[int, dict[str, Any]]:
    """Write what the crowds have become; return it by id, as the events say it."""
    places = [sphere.degrees(crowd.total) for crowd in crowds]
    params = {
        "ids": numbers(crowd.id for crowd in crowds),
        "count": numbers(crowd.count for crowd in crowds),
        "lat": numbers(lat for lat, _ in places),
        "lon": numbers(lon for _, lon in places),
        "first": array(crowd.first for crowd in crowds),
        "last": array(crowd.last for crowd in crowds),
    }
    for axis, name in enumerate("xyz"):
        params[name] = numbers(crowd.total[axis] for crowd in crowds)
        params[f"c{name}"] = numbers(crowd.centre[axis] for crowd in crowds)
    rows = _fetch(_UPDATE, clock.params() | params)
    if len(rows) != len(crowds):
        raise Overtaken("a gathering ended while photos were joining it")
    return {row[0]: dict(zip(KEYS, row, strict=True)) for row in rows}


def _started(told: dict[str, Any]) -> NewEvent:
    source_id = f"gathering/{told['gathering']}/started"
    return NewEvent(GatheringStarted, told, source="photos", source_id=source_id, actor="")


_GIVE_UP = f"""
UPDATE photos_photo p SET state = 'unclusterable', next_try_at = NULL, given_up_at = {clock.NOW},
                          reason = new.reason
FROM unnest(%(ids)s::bigint[], %(reasons)s::text[]) AS new (id, reason)
WHERE p.id = new.id AND p.state = 'new'
  AND p.opened_at + make_interval(mins => %(lookback)s) <= {clock.NOW}
"""


def _give_up(scene: Scene, alone: list[Spot]) -> None:
    """End the waiting of those that had their last try: whose lookback is over."""
    if new := [spot for spot in alone if spot.given_up_at is None]:
        params = {
            "ids": numbers(spot.id for spot in new),
            "reasons": array(_reason(len(scene.alone_with(spot))) for spot in new),
            "lookback": settings.PHOTOS_SWEEP_LOOKBACK_MINUTES,
        }
        _run(_GIVE_UP, clock.params() | params)


def _reason(count: int) -> str:
    photos = "it is the only photo" if count == 1 else f"there are {count} photos"
    return (
        f"{photos} within {settings.PHOTOS_DISTANCE_METERS} m and"
        f" {settings.PHOTOS_TIME_WINDOW_MINUTES} min that no gathering has;"
        f" {settings.PHOTOS_MIN_FOR_GATHERING} make a gathering"
    )


_REOPEN = f"""
UPDATE photos_photo SET state = 'new', reason = '', given_up_at = NULL, next_try_at = {clock.NOW},
  cluster_attempts = CASE state WHEN 'new' THEN cluster_attempts ELSE 0 END,
  opened_at = CASE state WHEN 'new' THEN opened_at ELSE {clock.NOW} END
WHERE id = ANY(%(ids)s::bigint[]) AND gathering_id IS NULL
  AND (state = 'unclusterable' OR next_try_at > {clock.NOW})
"""


def _reopen(scene: Scene, came: list[Spot], alone: list[Spot]) -> None:
    """Have those tried again soon that have a new neighbour.

    A photo that has just found its gathering is one, and one that arrived after they were given
    up. Neither is so a second time, when the batch is replayed.
    """
    batch = {spot.id for spot in alone}
    found = {other.id for spot in came for other in scene.alone_with(spot) if other.id not in batch}
    for spot in alone:
        for other in scene.alone_with(spot):
            if other.given_up_at is not None and other.given_up_at < spot.uploaded_at:
                found.add(other.id)
    if found:
        _run(_REOPEN, clock.params() | {"ids": numbers(sorted(found))})


def _fetch(sql: str, params: dict[str, Any]) -> list[tuple[Any, ...]]:
    with hot_cursor() as cursor:
        cursor.execute(sql, params)
        return list(cursor.fetchall())


def _run(sql: str, params: dict[str, Any]) -> None:
    with hot_cursor() as cursor:
        cursor.execute(sql, params)
