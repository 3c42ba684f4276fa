"""requeue: an operator has photos tried again that were given up."""

from collections.abc import Sequence

from django.db import transaction

from domains.photos import sweeping
from domains.photos.models import Photo
from events import clock
from events.arrays import numbers
from events.hot import hot_cursor
from jobs import audit

PERMISSION = "photos.change_photo"
MOST = 1000
"""Photos per click; an operator who wants more clicks again."""

_REOPEN = f"""
UPDATE photos_photo SET state = 'new', reason = '', given_up_at = NULL, cluster_attempts = 0,
  opened_at = {clock.NOW}, next_try_at = {clock.NOW}
WHERE id = ANY(%(ids)s::bigint[]) AND state = 'unclusterable'
RETURNING id
"""


def requeue(photo_ids: Sequence[int], by: object) -> list[int]:
    """Have unclusterable photos tried again, with a lookback of their own from now on.

    Returns those that were unclusterable; the others are left alone. Written down as done by the
    user `by`.
    """
    with transaction.atomic():
        with hot_cursor() as cursor:
            cursor.execute(_REOPEN, clock.params() | {"ids": numbers(sorted(photo_ids)[:MOST])})
            ids = sorted(row[0] for row in cursor.fetchall())
        if ids:
            sweeping.requeue_photos_for_clustering(ids)
            audit.record(by, Photo, "requeued", [(id, f"photo {id}") for id in ids])
    return ids
