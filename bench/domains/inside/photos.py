"""Time clustering and sweeping inside one process: photos in the window, new ones, history."""

import json
import statistics
import sys
import time
from typing import Any

import django

# Places with about ten photos each, 400 m apart, over the last hour; one photo in ten is alone.
WINDOW = """
INSERT INTO tailrace_photos_photo (storage_key, caption, lat, lon, taken_at, uploaded_at, state,
                          cluster_attempts, next_try_at, opened_at, reason)
SELECT %(prefix)s || g, '',
  40 + (place %% 300) * 0.0036 + CASE WHEN random() < 0.9 THEN random() * 0.0003
                                      ELSE 0.001 + random() * 0.0015 END,
  5 + (place / 300) * 0.005 + random() * 0.0003,
  now() - (place %% 40) * interval '1 min' - random() * interval '10 min', now(), 'new', 0, now(),
  now(), ''
FROM generate_series(1, %(count)s) g,
LATERAL (SELECT floor(random() * %(places)s + g * 0)::int AS place) s
RETURNING id
"""
HISTORY = """
WITH old AS (
  INSERT INTO tailrace_photos_gathering (state, lat, lon, radius, photo_count, sum_x, sum_y, sum_z,
                                first_photo_at, last_photo_at, joined_at, created_at, finalized_at)
  SELECT 'FINALIZED', -40, 5, 0, 0, 0, 0, 0, at, at, at, at, at
  FROM generate_series(1, %(count)s / 10) g, LATERAL (SELECT now() - g * interval '9 min' AS at) t
  RETURNING id, last_photo_at AS at
)
INSERT INTO tailrace_photos_photo (storage_key, caption, lat, lon, taken_at, uploaded_at,
                          gathering_id, state, cluster_attempts, opened_at, next_try_at, reason)
SELECT 'old/' || old.id || '/' || i, '', -40, 5, at, at, old.id, 'clustered', 0, at, NULL, ''
FROM old, generate_series(1, 10) i
"""
WAIT = """
UPDATE tailrace_photos_photo SET state = 'unclusterable', next_try_at = NULL
WHERE state = 'new' AND id NOT IN (SELECT id FROM tailrace_photos_photo WHERE state = 'new'
  LIMIT 200)
"""
FIX_FIGURES = """
UPDATE tailrace_photos_gathering g SET photo_count = t.n, sum_x = t.x, sum_y = t.y, sum_z = t.z
FROM (SELECT gathering_id AS id, count(*) AS n, sum(x) AS x, sum(y) AS y, sum(z) AS z
      FROM tailrace_photos_photo WHERE gathering_id IS NOT NULL GROUP BY 1) t
WHERE g.id = t.id AND g.photo_count = 0
"""


def measure(window: int, fresh: int, history: int) -> dict[str, Any]:
    """Return photos per second and milliseconds."""
    from tailrace.domains.photos.models import Gathering, Photo

    before = _fill(window, window // 10, "window/")
    _cluster(before)
    ids = _fill(fresh, window // 10, "fresh/")
    rate = _drain(ids)
    results = {
        "rate": rate,
        "gatherings": Gathering.objects.active().count(),
        "clustered": Photo.objects.filter(pk__in=ids, state="clustered").count() / len(ids),
    }
    _execute(WAIT)
    _execute(HISTORY, {"count": history})
    _execute("ANALYZE tailrace_photos_photo, tailrace_photos_gathering")
    _execute(FIX_FIGURES)
    _execute("VACUUM (ANALYZE) tailrace_photos_photo, tailrace_photos_gathering")
    each = _sweep()
    return results | {"sweep": sum(each.values()), "each": each}


def _fill(count: int, places: int, prefix: str) -> list[int]:
    rows = _execute(WINDOW, {"count": count, "places": places, "prefix": prefix})
    _execute("ANALYZE tailrace_photos_photo")
    return [row[0] for row in rows]


def _cluster(ids: list[int]) -> None:
    from tailrace.domains.photos.clustering.cluster_photos import cluster_photos

    for start in range(0, len(ids), 1000):
        cluster_photos(ids[start : start + 1000])
    _execute("VACUUM (ANALYZE) tailrace_photos_photo, tailrace_photos_gathering")


def _drain(ids: list[int]) -> float:
    from tailrace.domains.photos.handlers.cluster import ClusterPhotos
    from tailrace.jobs.engine.drain import drain
    from tailrace.jobs.enqueue import enqueue_many

    enqueue_many(ClusterPhotos, [{"routing_key": str(id), "unique_key": str(id)} for id in ids])
    start, done = time.perf_counter(), 0
    while count := drain(ClusterPhotos.name):
        done += count
    if done != len(ids):
        raise SystemExit(f"bench: {done} of {len(ids)} jobs were completed")
    return done / (time.perf_counter() - start)


def _sweep() -> dict[str, float]:
    from django.db import transaction

    from tailrace.domains.photos.invariants import (
        ActiveGatheringsGrow,
        GatheringsAreTheirPhotos,
        PhotosGather,
    )

    durations: dict[str, list[float]] = {}
    for _ in range(15):
        for invariant in (PhotosGather, ActiveGatheringsGrow, GatheringsAreTheirPhotos):
            with transaction.atomic():
                start = time.perf_counter()
                invariant().find()
                milliseconds = 1000 * (time.perf_counter() - start)
                durations.setdefault(invariant.name, []).append(milliseconds)
    return {name: statistics.median(times) for name, times in durations.items()}


def _execute(sql: str, params: dict[str, Any] | None = None) -> list[Any]:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return list(cursor.fetchall()) if cursor.description else []


if __name__ == "__main__":
    django.setup()
    print(json.dumps(measure(*map(int, sys.argv[1:]))))
