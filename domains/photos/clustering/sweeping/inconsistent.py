"""Find gatherings whose figures disagree with their photos, and compute the figures again.

A gathering that has too few photos is dissolved: it is deleted, and its photos are requeued.
"""

from collections.abc import Iterable, Sequence

from django.conf import settings
from django.db import transaction

from tailrace.db import clock
from tailrace.db.query import prepared
from tailrace.db.sql.arrays import number_array
from tailrace.domains.photos.clustering.figures import write_figures
from tailrace.domains.photos.clustering.rules import Cluster
from tailrace.domains.photos.clustering.sweeping.unassigned import (
    OPEN_AGAIN,
    requeue_photos_for_clustering,
)
from tailrace.domains.photos.event_types import GatheringDissolved
from tailrace.domains.photos.models import Gathering
from tailrace.events.publish import NewEvent, publish

# A run checks two windows of gatherings: one of all gatherings by id, and the ACTIVE gatherings
# that a photo joined last. The next run continues with the next ids. If there are few gatherings,
# a window contains all of them.
_INCONSISTENT = """
WITH ids AS (
  SELECT (SELECT min(id) FROM tailrace_photos_gathering) AS low,
         (SELECT max(id) FROM tailrace_photos_gathering) AS high
), start AS (
  SELECT low + (%(run)s::bigint * %(limit)s::int) %% (high - low + 1) AS id FROM ids
), candidates AS (
  (SELECT g.id FROM tailrace_photos_gathering g WHERE g.id >= (SELECT id FROM start)
   ORDER BY g.id LIMIT %(limit)s::int)
  UNION
  (SELECT g.id FROM tailrace_photos_gathering g WHERE g.id < (SELECT id FROM start)
     AND (SELECT high - low FROM ids) < %(limit)s::int
   ORDER BY g.id LIMIT %(limit)s::int)
  UNION
  (SELECT g.id FROM tailrace_photos_gathering g WHERE g.state = 'ACTIVE'
   ORDER BY g.joined_at DESC LIMIT %(limit)s::int)
)
SELECT g.id FROM candidates c JOIN tailrace_photos_gathering g USING (id),
LATERAL (
  SELECT count(*) AS count, coalesce(sum(p.x), 0) AS x, coalesce(sum(p.y), 0) AS y,
         coalesce(sum(p.z), 0) AS z, min(p.taken_at) AS first, max(p.taken_at) AS last
  FROM tailrace_photos_photo p WHERE p.gathering_id = g.id
) t
WHERE (g.photo_count, g.sum_x, g.sum_y, g.sum_z) IS DISTINCT FROM (t.count, t.x, t.y, t.z)
   OR t.count > 0 AND (g.first_photo_at, g.last_photo_at, g.place_grid)
        IS DISTINCT FROM (t.first, t.last, %(grid)s::int)
ORDER BY g.id
LIMIT %(limit)s::int
"""


def find_inconsistent_gatherings(limit: int) -> list[int]:
    """Return the ids of gatherings whose figures disagree with their photos."""
    grid = settings.PHOTOS_PLACE_GRID_M
    run = int(clock.now().timestamp() // settings.PHOTOS_SWEEP_SECONDS)
    return [id for (id,) in prepared(_INCONSISTENT, limit=limit, run=run, grid=grid)]


_LOCK = """
SELECT id FROM tailrace_photos_gathering WHERE id = ANY(%(ids)s::bigint[]) ORDER BY id FOR UPDATE
"""
_FIGURES = """
SELECT g.id, t.count, t.x, t.y, t.z, t.first, t.last, g.placed_count, g.place_grid
FROM tailrace_photos_gathering g, LATERAL (
  SELECT count(*) AS count, coalesce(sum(p.x), 0) AS x, coalesce(sum(p.y), 0) AS y,
         coalesce(sum(p.z), 0) AS z, coalesce(min(p.taken_at), g.first_photo_at) AS first,
         coalesce(max(p.taken_at), g.last_photo_at) AS last
  FROM tailrace_photos_photo p WHERE p.gathering_id = g.id
) t
WHERE g.id = ANY(%(ids)s::bigint[])
"""


def repair_gatherings(ids: Sequence[int]) -> int:
    """Compute the figures of the gatherings from their photos again; return how many were repaired.
    A gathering that photos are joining, so that its row is locked, waits for the next sweep."""
    with transaction.atomic():
        locked = lock_gatherings(ids, skip_locked=True)
        rows = prepared(_FIGURES, ids=number_array(locked)) if locked else []
        clusters = [
            Cluster(id, count, (int(x), int(y), int(z)), first, last, (0, 0, 0), *placed)
            for id, count, x, y, z, first, last, *placed in rows
        ]
        least = settings.PHOTOS_MIN_FOR_GATHERING
        small = [cluster.id for cluster in clusters if cluster.count < least and cluster.id]
        if small:
            _dissolve(small)
        kept = [cluster for cluster in clusters if cluster.count >= least]
        return len(small) + (len(write_figures(kept, joined=False)) if kept else 0)


def lock_gatherings(ids: Iterable[int], *, skip_locked: bool = False) -> list[int]:
    """Lock the rows of these gatherings in the order of their ids; return the locked ids."""
    sql = f"{_LOCK} SKIP LOCKED" if skip_locked else _LOCK
    return [id for (id,) in prepared(sql, ids=number_array(sorted(ids)))]


_RELEASE = f"""
UPDATE tailrace_photos_photo SET gathering_id = NULL, {OPEN_AGAIN}
WHERE gathering_id = ANY(%(ids)s::bigint[])
RETURNING id
"""


def _dissolve(ids: Sequence[int]) -> None:
    """Delete gatherings whose rows are locked, and requeue their photos."""
    released = sorted(id for (id,) in prepared(_RELEASE, ids=number_array(ids)))
    Gathering.objects.filter(pk__in=ids).delete()
    publish(NewEvent(GatheringDissolved, {"gathering": id}) for id in ids)
    if released:
        requeue_photos_for_clustering(released)
