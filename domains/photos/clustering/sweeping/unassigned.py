"""Find new photos whose next attempt is due, and enqueue `photos.cluster` for them; requeue
unclusterable photos for an operator."""

from collections.abc import Sequence

from django.conf import settings
from django.db import transaction

from tailrace.db import clock
from tailrace.db.query import prepared, query
from tailrace.db.sql.arrays import number_array
from tailrace.domains.photos.clustering.cluster_photos import HANDLER
from tailrace.domains.photos.models import Photo
from tailrace.jobs.enqueue import enqueue_many
from tailrace.jobs.runtime import audit

REQUEUE_PERMISSION = "tailrace_photos.change_photo"
MAX_REQUEUED = 1000
"""Maximum photos per request."""
OPEN_AGAIN = f"""state = 'new', reason = '', given_up_at = NULL, cluster_attempts = 0,
  opened_at = {clock.NOW}, next_try_at = {clock.NOW}"""
"""SET of a statement that begins a new lookback."""

# Photos with the fewest attempts come first, so that photos without neighbours, however many,
# do not delay newer photos.
_DUE = f"""
SELECT id FROM tailrace_photos_photo
WHERE state = 'new' AND next_try_at <= {clock.NOW}
ORDER BY cluster_attempts, next_try_at, id
LIMIT %(limit)s::int
FOR UPDATE SKIP LOCKED
"""


def find_unassigned_photos(limit: int) -> list[int]:
    """Return the ids of up to `limit` photos whose next attempt is due."""
    return [id for (id,) in prepared(_DUE, limit=limit)]


# The waits double. The last attempt is at the end of the lookback; its batch gives the photo up.
_SCHEDULE_TRY = f"""
UPDATE tailrace_photos_photo p SET cluster_attempts = p.cluster_attempts + 1, next_try_at =
  CASE WHEN t.ends <= {clock.NOW} THEN {clock.NOW} + t.wait
       ELSE least({clock.NOW} + t.wait, t.ends) END
FROM (
  SELECT id, opened_at + make_interval(mins => %(lookback)s) AS ends,
         make_interval(secs => %(every)s * 0.9 * 2 ^ least(cluster_attempts, 6)) AS wait
  FROM tailrace_photos_photo WHERE id = ANY(%(ids)s::bigint[])
) t
WHERE p.id = t.id AND p.state = 'new'
RETURNING p.id
"""


def requeue_photos_for_clustering(ids: Sequence[int]) -> int:
    """Enqueue a job for each new photo and schedule its next attempt; return how many photos. A
    photo whose job has not started yet gets no second job."""
    with transaction.atomic():
        rows = prepared(
            _SCHEDULE_TRY,
            ids=number_array(ids),
            lookback=settings.PHOTOS_SWEEP_LOOKBACK_MINUTES,
            every=settings.PHOTOS_SWEEP_SECONDS,
        )
        keys = [str(id) for (id,) in sorted(rows)]
        enqueue_many(HANDLER, [{"routing_key": key, "unique_key": key} for key in keys])
    return len(keys)


_REOPEN = f"""
UPDATE tailrace_photos_photo SET {OPEN_AGAIN}
WHERE id = ANY(%(ids)s::bigint[]) AND state = 'unclusterable'
RETURNING id
"""


def requeue(photo_ids: Sequence[int], by: object, chosen_by: str = "") -> list[int]:
    """Requeue unclusterable photos with a new lookback; return their ids. Other photos do not
    change. The audit log records the user `by` and the filter `chosen_by`."""
    with transaction.atomic():
        rows = query(_REOPEN, ids=number_array(sorted(photo_ids)[:MAX_REQUEUED]))
        ids = sorted(id for (id,) in rows)
        if ids:
            requeue_photos_for_clustering(ids)
            names = [(id, f"photo {id}") for id in ids]
            audit.record(by, Photo, "requeued", names, chosen_by)
    return ids
