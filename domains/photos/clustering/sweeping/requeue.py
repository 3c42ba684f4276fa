"""Requeue unclusterable photos for an operator."""

from collections.abc import Sequence

from django.db import transaction

from tailrace.db import clock
from tailrace.db.query import query
from tailrace.db.sql.arrays import number_array
from tailrace.domains.photos.clustering.sweeping.unassigned import requeue_photos_for_clustering
from tailrace.domains.photos.models import Photo
from tailrace.jobs.operations import audit

PERMISSION = "tailrace_photos.change_photo"
MAX_PHOTOS = 1000
"""Maximum photos per request."""

_REOPEN = f"""
UPDATE tailrace_photos_photo
  SET state = 'new', reason = '', given_up_at = NULL, cluster_attempts = 0,
  opened_at = {clock.NOW}, next_try_at = {clock.NOW}
WHERE id = ANY(%(ids)s::bigint[]) AND state = 'unclusterable'
RETURNING id
"""


def requeue(photo_ids: Sequence[int], by: object, chosen_by: str = "") -> list[int]:
    """Requeue unclusterable photos with a new lookback; return the ids of the requeued photos.

    Photos in other states do not change. The audit log records the user `by` and the filter
    `chosen_by`.
    """
    with transaction.atomic():
        rows = query(_REOPEN, ids=number_array(sorted(photo_ids)[:MAX_PHOTOS]))
        ids = sorted(id for (id,) in rows)
        if ids:
            requeue_photos_for_clustering(ids)
            names = [(id, f"photo {id}") for id in ids]
            audit.record(by, Photo, "requeued", names, chosen_by)
    return ids
