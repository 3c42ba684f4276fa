"""Measure the pictures of photos that were uploaded before their sizes were recorded."""

from collections.abc import Sequence

import structlog

from tailrace.db.query import query
from tailrace.domains.photos.models import Photo
from tailrace.domains.photos.uploads import storage

log = structlog.get_logger(__name__)

# The condition of the index, whose size does not grow with the table.
_UNMEASURED = """
SELECT id, storage_key FROM tailrace_photos_photo
WHERE copy_bytes = 0 AND storage_key LIKE 'uploads/%%'
ORDER BY id LIMIT %(limit)s
"""


def find_unmeasured(limit: int) -> list[tuple[int, str]]:
    """Return the id and the storage key of photos whose pictures have no sizes yet."""
    return [(id, key) for id, key in query(_UNMEASURED, limit=limit)]


def measure(photos: Sequence[tuple[int, str]]) -> int:
    """Record the sizes of these photos' pictures; return of how many.

    Those that the storage cannot tell now are found again.
    """
    measured = 0
    for id, key in photos:
        try:
            original, copy = storage.sizes(key)
        except OSError as error:
            log.warning("photos.not_measured", photo=id, error=error.strerror)
            continue
        measured += Photo.objects.filter(pk=id, copy_bytes=0).update(
            original_bytes=max(original, 0), copy_bytes=copy or -1
        )
    return measured
