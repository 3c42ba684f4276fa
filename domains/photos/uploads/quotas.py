"""The quotas of a user: the number of photos, and the space of their pictures."""

from dataclasses import dataclass

from django.contrib.auth.models import User

from tailrace.db.query import query
from tailrace.web.uploads import limits


@dataclass(frozen=True, slots=True)
class Usage:
    """How much a user has stored."""

    photos: int
    bytes: int

    def gigabytes(self) -> float:
        return self.bytes / limits.GIGABYTE


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
    """Raise QuotaExceeded, about this field, if the user may not store one more photo of `size`
    bytes. The result is reliable only while the user is locked."""
    usage, advice = usage_of(user), "delete some first"
    limits.check_count(field, usage.photos, "photos", "PHOTOS_MAX_PER_USER", advice)
    limits.check_space(field, usage.bytes, size, "PHOTOS_MAX_GIGABYTES_PER_USER", advice)
