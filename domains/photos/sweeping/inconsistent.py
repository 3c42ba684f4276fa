"""Find gatherings whose figures differ from those of their photos, and write them again."""

from collections.abc import Sequence

from django.conf import settings
from django.db import transaction

from db import clock, prepared
from db.arrays import number_array
from domains.photos.clustering.figures import write_figures
from domains.photos.clustering.rules import Cluster

# A run looks at two windows of gatherings: all by rising ids, and the ACTIVE ones. The next run
# continues where this one ends. Where there are few gatherings, a window holds them all.
_INCONSISTENT = """
WITH ids AS (
  SELECT (SELECT min(id) FROM photos_gathering) AS low,
         (SELECT max(id) FROM photos_gathering) AS high
), start AS (
  SELECT low + (%(run)s::bigint * %(limit)s::int) %% (high - low + 1) AS id FROM ids
), candidates AS (
  (SELECT g.id FROM photos_gathering g WHERE g.id >= (SELECT id FROM start)
   ORDER BY g.id LIMIT %(limit)s::int)
  UNION
  (SELECT g.id FROM photos_gathering g WHERE g.id < (SELECT id FROM start)
     AND (SELECT high - low FROM ids) < %(limit)s::int
   ORDER BY g.id LIMIT %(limit)s::int)
  UNION
  (SELECT g.id FROM photos_gathering g WHERE g.state = 'ACTIVE'
   ORDER BY g.joined_at DESC LIMIT %(limit)s::int)
)
SELECT g.id FROM candidates c JOIN photos_gathering g USING (id),
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


def find_inconsistent_gatherings() -> list[int]:
    """Return the ids of gatherings whose figures differ from those of their photos."""
    limit = settings.PHOTOS_SWEEP_BATCH
    run = int(clock.now().timestamp() // settings.PHOTOS_SWEEP_SECONDS)
    return [id for (id,) in prepared.query(_INCONSISTENT, limit=limit, run=run)]


_LOCK = """
SELECT id FROM photos_gathering WHERE id = ANY(%(ids)s::bigint[]) FOR UPDATE SKIP LOCKED
"""
_FIGURES = """
SELECT g.id, t.count, t.x, t.y, t.z, t.first, t.last
FROM photos_gathering g, LATERAL (
  SELECT count(*) AS count, coalesce(sum(p.x), 0) AS x, coalesce(sum(p.y), 0) AS y,
         coalesce(sum(p.z), 0) AS z, coalesce(min(p.taken_at), g.first_photo_at) AS first,
         coalesce(max(p.taken_at), g.last_photo_at) AS last
  FROM photos_photo p WHERE p.gathering_id = g.id
) t
WHERE g.id = ANY(%(ids)s::bigint[])
"""


def repair_gatherings(ids: Sequence[int]) -> int:
    """Compute the gatherings' figures from their photos again; return how many were repaired.

    A gathering that photos are joining now is left to the next sweep.
    """
    with transaction.atomic():
        locked = [id for (id,) in prepared.query(_LOCK, ids=number_array(ids))]
        rows = prepared.query(_FIGURES, ids=number_array(locked)) if locked else []
        clusters = [
            Cluster(id, count, (int(x), int(y), int(z)), first, last)
            for id, count, x, y, z, first, last in rows
        ]
        return len(write_figures(clusters, joined=False)) if clusters else 0
