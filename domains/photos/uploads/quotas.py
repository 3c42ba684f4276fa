"""The quotas of a user: the number of photos, and the space of their pictures."""

from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth.models import User

from tailrace.db.query import query
from tailrace.domains.photos.uploads.errors import FieldError, QuotaExceeded

GIGABYTE = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Usage:
    """How much a user has stored."""

    photos: int
    bytes: int

    def gigabytes(self) -> float:
        return self.bytes / GIGABYTE


# The small copy stays when the original is deleted.
_USAGE = """
SELECT count(*), coalesce(sum(copy_bytes), 0)::bigint
  + coalesce(sum(original_bytes) FILTER (WHERE original_deleted_at IS NULL), 0)::bigint
FROM tailrace_photos_photo WHERE user_id = %(user)s
"""


def usage_of(user: User) -> Usage:
    """Return how much the user has stored now."""
    [(photos, size)] = query(_USAGE, user=user.pk)
    return Usage(photos, size)


def check(user: User, size: int, field: str) -> None:
    """Raise QuotaExceeded if the user may not store one more photo of `size` bytes.

    `field` is the field that the error names. The result is reliable only while the user is locked.
    """
    usage = usage_of(user)
    most = settings.PHOTOS_MAX_PER_USER
    if most and usage.photos >= most:
        message = f"you have {usage.photos:,} photos, the maximum (PHOTOS_MAX_PER_USER)"
        raise QuotaExceeded(FieldError(field, f"{message}; delete some first"))
    gigabytes = settings.PHOTOS_MAX_GIGABYTES_PER_USER
    if gigabytes and usage.bytes + size > gigabytes * GIGABYTE:
        message = (
            f"your photos take {usage.gigabytes():.2f} GB, this photo {size / GIGABYTE:.3f} GB"
            f" more, and the maximum is {gigabytes:g} GB (PHOTOS_MAX_GIGABYTES_PER_USER)"
        )
        raise QuotaExceeded(FieldError(field, f"{message}; delete some first"))
