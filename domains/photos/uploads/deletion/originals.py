"""Delete the uploaded pictures after PHOTOS_ORIGINALS_RETENTION_DAYS, but keep the small copies."""

from collections.abc import Sequence
from datetime import timedelta

from django.conf import settings

from tailrace.db.query import database_now
from tailrace.domains.photos.models import Photo
from tailrace.domains.photos.uploads.pictures import storage


def find_expired(limit: int) -> list[int]:
    """Return the ids of photos whose original has expired, the oldest first."""
    days = settings.PHOTOS_ORIGINALS_RETENTION_DAYS
    if not days:
        return []
    expired = database_now() - timedelta(days=days)
    photos = Photo.objects.filter(original_deleted_at=None, uploaded_at__lt=expired)
    return list(photos.order_by("uploaded_at").values_list("pk", flat=True)[:limit])


def delete_originals(ids: Sequence[int]) -> int:
    """Delete the originals of these photos; return how many the storage could delete."""
    photos = Photo.objects.select_for_update(skip_locked=True).filter(pk__in=ids)
    keys = photos.values_list("pk", "storage_key")
    deleted = [
        id for id, key in keys if not storage.is_stored_here(key) or storage.delete_original(key)
    ]
    return Photo.objects.filter(pk__in=deleted).update(original_deleted_at=database_now())
