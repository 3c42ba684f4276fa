"""Find uploads that were never finished, and Idempotency-Keys that have expired; delete them."""

from collections.abc import Sequence
from datetime import timedelta

from django.db.models import Q

from tailrace.db.query import database_now
from tailrace.domains.photos.models import Photo, Upload
from tailrace.domains.photos.uploads.pictures import storage

ABANDONED_AFTER = timedelta(hours=1)
"""An upload that is not finished by then will never be finished."""
KEY_LIFETIME = timedelta(days=7)
"""How long a repeated Idempotency-Key returns the photo that was uploaded with it."""


def find_ended_uploads(limit: int) -> list[int]:
    """Return the ids of uploads that will never be finished, or whose key has expired."""
    now = database_now()
    ended = Q(photo=None) | Q(started_at__lt=now - KEY_LIFETIME)
    uploads = Upload.objects.filter(ended, started_at__lt=now - ABANDONED_AFTER)
    return list(uploads.order_by("started_at").values_list("pk", flat=True)[:limit])


def delete_uploads(ids: Sequence[int]) -> int:
    """Delete these uploads, and the files of unfinished uploads; return how many."""
    deleted = []
    for upload in Upload.objects.select_for_update(skip_locked=True).filter(pk__in=ids):
        key = upload.storage_key
        in_use = not key or Photo.objects.filter(storage_key=key).exists()
        if in_use or storage.delete(key):
            deleted.append(upload.pk)
    return Upload.objects.filter(pk__in=deleted).delete()[0]
