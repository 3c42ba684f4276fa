"""sweeping: what the sweeper asks for and does, one short statement each.

It clusters nothing itself: it hands photos to `photos.cluster` again. Its cost follows the photos
that wait and the gatherings that are ACTIVE, not the history.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction

from domains.photos import grid, sphere
from domains.photos.clustering import KEYS
from domains.photos.event_types import GatheringFinalized
from domains.photos.handlers.cluster import Cluster
from events import clock
from events.arrays import array, numbers
from events.hot import hot_cursor
from events.publish import NewEvent, publish
from jobs.enqueue import enqueue_many

# --- photos that wait ----------------------------------------------------------------------------

# Who was tried least comes first, so any number of photos that stay alone delays no newer one.
_UNASSIGNED = f"""
SELECT id FROM photos_photo
WHERE state = 'new' AND next_try_at <= {clock.NOW}
ORDER BY cluster_attempts, next_try_at, id
LIMIT %(limit)s::int
FOR UPDATE SKIP LOCKED
"""


def find_unassigned_photos(limit: int | None = None) -> list[int]:
    """Return the ids of photos whose next try is due, at most PHOTOS_SWEEP_BATCH."""
    limit = settings.PHOTOS_SWEEP_BATCH if limit is None else limit
    return [row[0] for row in _fetch(_UNASSIGNED, clock.params() | {"limit": limit})]


# The waits double; the last try comes when the lookback ends, and the photo's batch gives it up.
_REQUEUE = f"""
UPDATE photos_photo p SET cluster_attempts = p.cluster_attempts + 1, next_try_at =
  CASE WHEN t.ends <= {clock.NOW} THEN {clock.NOW} + t.wait
       ELSE least({clock.NOW} + t.wait, t.ends) END
FROM (
  SELECT id, opened_at + make_interval(mins => %(lookback)s) AS ends,
         make_interval(secs => %(every)s * 0.9 * 2 ^ least(cluster_attempts, 6)) AS wait
  FROM photos_photo WHERE id = ANY(%(ids)s::bigint[])
) t
WHERE p.id = t.id AND p.state = 'new'
RETURNING p.id
"""


def requeue_photos_for_clustering(ids: Sequence[int]) -> int:
    """Owe each photo a job of `photos.cluster`, and set its next try; return the new jobs.

    A photo whose job has not begun yet gets no second one.
    """
    params = {
        "ids": numbers(ids),
        "lookback": settings.PHOTOS_SWEEP_LOOKBACK_MINUTES,
        "every": settings.PHOTOS_SWEEP_SECONDS,
    }
    with transaction.atomic():
        waiting = [row[0] for row in _fetch(_REQUEUE, clock.params() | params)]
        keys = [str(id) for id in sorted(waiting)]
        return enqueue_many(Cluster, [{"routing_key": key, "unique_key": key} for key in keys])


# --- gatherings that have ended ------------------------------------------------------------------

# What somebody joins just now is locked, and not idle any more.
_IDLE = f"""
SELECT id FROM photos_gathering
WHERE state = 'ACTIVE' AND joined_at <= {clock.NOW} - make_interval(mins => %(after)s)
ORDER BY joined_at
LIMIT %(limit)s::int
FOR UPDATE SKIP LOCKED
"""


def find_inactive_gatherings(limit: int | None = None) -> list[int]:
    """Return the ids of ACTIVE gatherings that no photo has come to for so long, locked."""
    params = {
        "limit": settings.PHOTOS_SWEEP_BATCH if limit is None else limit,
        "after": settings.PHOTOS_FINALIZE_AFTER_MINUTES,
    }
    return [row[0] for row in _fetch(_IDLE, clock.params() | params)]


_FINALIZE = f"""
UPDATE photos_gathering SET state = 'FINALIZED', finalized_at = {clock.NOW}
WHERE id = ANY(%(ids)s::bigint[]) AND state = 'ACTIVE'
  AND joined_at <= {clock.NOW} - make_interval(mins => %(after)s)
RETURNING id, lat, lon, radius, photo_count, first_photo_at, last_photo_at
"""


def finalize_inactive_gatherings(ids: Sequence[int]) -> int:
    """End those of the gatherings that are idle, and publish so; return how many."""
    params = {"ids": numbers(ids), "after": settings.PHOTOS_FINALIZE_AFTER_MINUTES}
    with transaction.atomic():
        ended = _fetch(_FINALIZE, clock.params() | params)
        publish([_ended(dict(zip(KEYS, row, strict=True))) for row in sorted(ended)])
    return len(ended)


def _ended(told: dict[str, Any]) -> NewEvent:
    source_id = f"gathering/{told['gathering']}/finalized"
    return NewEvent(GatheringFinalized, told, source="photos", source_id=source_id, actor="")


# --- one truth -----------------------------------------------------------------------------------

# A turn looks at two windows of gatherings, all and ACTIVE ones, by rising ids; the next turn's
# begin where these end. Where there are few, a window holds them all.
_UNTRUE = """
WITH turns AS (
  SELECT (SELECT min(id) FROM photos_gathering) AS low,
         (SELECT max(id) FROM photos_gathering) AS high
), began AS (
  SELECT low + (%(turn)s::bigint * %(limit)s::int) %% (high - low + 1) AS id FROM turns
), looked AS (
  (SELECT g.id FROM photos_gathering g WHERE g.id >= (SELECT id FROM began)
   ORDER BY g.id LIMIT %(limit)s::int)
  UNION
  (SELECT g.id FROM photos_gathering g WHERE g.id < (SELECT id FROM began)
     AND (SELECT high - low FROM turns) < %(limit)s::int
   ORDER BY g.id LIMIT %(limit)s::int)
  UNION
  (SELECT g.id FROM photos_gathering g WHERE g.state = 'ACTIVE'
   ORDER BY g.joined_at DESC LIMIT %(limit)s::int)
)
SELECT g.id FROM looked l JOIN photos_gathering g USING (id),
LATERAL (
  SELECT count(*) AS count, coalesce(sum(p.x), 0) AS x, coalesce(sum(p.y), 0) AS y,
         coalesce(sum(p.z), 0) AS z, min(p.taken_at) AS first, max(p.taken_at) AS last
  FROM photos_photo p WHERE p.gathering_id = g.id
) t
WHERE (g.photo_count, g.sum_x, g.sum_y, g.sum_z) IS DISTINCT FROM (t.count, t.x, t.y, t.z)
   OR t.count > 0 AND (g.first_photo_at, g.last_photo_at) IS DISTINCT FROM (t.first, t.last)
ORDER BY g.id
LIMIT %(limit)s::int
"""


def find_untrue_gatherings(limit: int | None = None) -> list[int]:
    """Return the ids of gatherings whose figures are not those of their photos."""
    limit = settings.PHOTOS_SWEEP_BATCH if limit is None else limit
    turn = int(clock.now().timestamp() // settings.PHOTOS_SWEEP_SECONDS)
    return [row[0] for row in _fetch(_UNTRUE, {"limit": limit, "turn": turn})]


_HOLD = """
SELECT id FROM photos_gathering WHERE id = ANY(%(ids)s::bigint[]) FOR UPDATE SKIP LOCKED
"""
_TRUTH = """
SELECT g.id, t.count, t.x, t.y, t.z, t.first, t.last
FROM photos_gathering g, LATERAL (
  SELECT count(*) AS count, coalesce(sum(p.x), 0) AS x, coalesce(sum(p.y), 0) AS y,
         coalesce(sum(p.z), 0) AS z, coalesce(min(p.taken_at), g.first_photo_at) AS first,
         coalesce(max(p.taken_at), g.last_photo_at) AS last
  FROM photos_photo p WHERE p.gathering_id = g.id
) t
WHERE g.id = ANY(%(ids)s::bigint[])
"""
_REPAIR = f"""
UPDATE photos_gathering g SET
  photo_count = new.count, sum_x = new.x, sum_y = new.y, sum_z = new.z,
  first_photo_at = new.first, last_photo_at = new.last,
  lat = coalesce(new.lat, g.lat), lon = coalesce(new.lon, g.lon),
  radius = 2 * {grid.EARTH_RADIUS} * asin(least(1, sqrt(coalesce(farthest.squared, 0)) / 2e15))
FROM unnest(%(ids)s::bigint[], %(count)s::int[], %(x)s::numeric[], %(y)s::numeric[],
            %(z)s::numeric[], %(lat)s::float8[], %(lon)s::float8[], %(first)s::timestamptz[],
            %(last)s::timestamptz[], %(cx)s::bigint[], %(cy)s::bigint[], %(cz)s::bigint[])
  AS new (id, count, x, y, z, lat, lon, first, last, cx, cy, cz),
LATERAL (
  SELECT max((p.x - new.cx)::float8 ^ 2 + (p.y - new.cy)::float8 ^ 2
             + (p.z - new.cz)::float8 ^ 2) AS squared
  FROM photos_photo p WHERE p.gathering_id = new.id
) farthest
WHERE g.id = new.id
RETURNING g.id
"""


def repair_gatherings(ids: Sequence[int]) -> int:
    """Let the gatherings say what their photos say; return how many were repaired.

    One that photos are joining just now is left to the next sweep.
    """
    with transaction.atomic():
        held = [row[0] for row in _fetch(_HOLD, {"ids": numbers(ids)})]
        rows = _fetch(_TRUTH, {"ids": numbers(held)}) if held else []
        return len(_fetch(_REPAIR, _true(rows))) if rows else 0


def _true(rows: list[tuple[Any, ...]]) -> dict[str, Any]:
    totals = [(int(x), int(y), int(z)) for _id, _count, x, y, z, *_times in rows]
    places = [sphere.degrees(total) if any(total) else (None, None) for total in totals]
    centres = [sphere.direction(total) for total in totals]
    firsts: list[datetime] = [row[5] for row in rows]
    lasts: list[datetime] = [row[6] for row in rows]
    params: dict[str, Any] = {
        "ids": numbers(row[0] for row in rows),
        "count": numbers(row[1] for row in rows),
        "lat": numbers(lat for lat, _ in places),
        "lon": numbers(lon for _, lon in places),
        "first": array(firsts),
        "last": array(lasts),
    }
    for axis, name in enumerate("xyz"):
        params[name] = numbers(total[axis] for total in totals)
        params[f"c{name}"] = numbers(centre[axis] for centre in centres)
    return params


def _fetch(sql: str, params: dict[str, Any]) -> list[tuple[Any, ...]]:
    with hot_cursor() as cursor:
        cursor.execute(sql, params)
        return list(cursor.fetchall())
