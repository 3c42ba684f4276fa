"""The quotas of a user: unfinished imports, all imports, stored files, devices and points."""

from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Sum

from tailrace.db.query import query
from tailrace.domains.timeline.imports.errors import FileTooLarge, ImportRejected, QuotaExceeded
from tailrace.domains.timeline.models import Device, Import
from tailrace.domains.timeline.models.device import MAX_NAME

GIGABYTE = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Usage:
    """How much a user has stored."""

    bytes: int
    """Size of the stored files."""
    points: int

    def gigabytes(self) -> float:
        return self.bytes / GIGABYTE


def usage_of(user_id: int) -> Usage:
    files = Import.objects.filter(user=user_id).exclude(storage_key="")
    return Usage(files.aggregate(sum=Sum("size"))["sum"] or 0, _points_of(user_id))


_POINTS = """
SELECT (SELECT coalesce(sum(inserted - removed), 0) FROM tailrace_timeline_import
     WHERE user_id = %(user)s)
     + (SELECT coalesce(sum(live_points), 0) FROM tailrace_timeline_device WHERE user_id = %(user)s)
"""


def _points_of(user_id: int) -> int:
    """Return the number of points in the user's timeline. One cheap statement: each request of a
    device runs it."""
    [(count,)] = query(_POINTS, user=user_id)
    return int(count)


def max_bytes() -> int:
    """Return the maximum size of an imported file in bytes."""
    return int(settings.IMPORT_MAX_MEGABYTES * 1_000_000)


def points_left(user_id: int) -> int | None:
    """Return how many points the user may still add, or None if there is no limit."""
    most = settings.TIMELINE_MAX_POINTS_PER_USER
    return max(0, most - _points_of(user_id)) if most else None


def check(user: User, size: int) -> None:
    """Raise ImportRejected if the user may not import one more file of `size` bytes.

    The result is reliable only while the user is locked.
    """
    if size > max_bytes():
        limit = f"the limit is {max_bytes() / 1e6:,.0f} MB (IMPORT_MAX_MEGABYTES)"
        raise FileTooLarge("file", f"the file has {size / 1e6:,.1f} MB; {limit}")
    imports = Import.objects.filter(user=user)
    unfinished = imports.unfinished().count()
    if unfinished >= settings.IMPORT_MAX_UNFINISHED:
        message = f"{unfinished} of your imports are unfinished (IMPORT_MAX_UNFINISHED)"
        raise QuotaExceeded("file", f"{message}; promote or cancel some first")
    if imports.count() >= settings.IMPORT_MAX_PER_USER:
        message = f"your history has {settings.IMPORT_MAX_PER_USER:,} imports, the maximum"
        raise QuotaExceeded("file", f"{message} (IMPORT_MAX_PER_USER)")
    usage, most = usage_of(user.pk), settings.IMPORT_MAX_GIGABYTES_PER_USER
    if usage.bytes + size > most * GIGABYTE:
        message = (
            f"your files take {usage.gigabytes():.2f} GB, this file {size / GIGABYTE:.3f} GB more,"
            f" and the maximum is {most:g} GB (IMPORT_MAX_GIGABYTES_PER_USER)"
        )
        advice = "files of finished imports are deleted after IMPORT_FILES_RETENTION_DAYS"
        raise QuotaExceeded("file", f"{message}; {advice}")
    if settings.TIMELINE_MAX_POINTS_PER_USER and points_left(user.pk) == 0:
        message = "your timeline has the maximum number of points (TIMELINE_MAX_POINTS_PER_USER)"
        raise QuotaExceeded("file", f"{message}; undo an import first")


def device_of(user: User, name: str) -> Device:
    """Return the user's device with this name; create it if it does not exist.

    The user must be locked. Raises ImportRejected.
    """
    name = " ".join(name.split()) or "default"
    if len(name) > MAX_NAME or "\0" in name:
        raise ImportRejected("device", f"a name has at most {MAX_NAME} characters, and no NUL")
    if device := Device.objects.filter(user=user, name=name).first():
        return device
    if Device.objects.filter(user=user).count() >= settings.TIMELINE_MAX_DEVICES_PER_USER:
        message = f"you have {settings.TIMELINE_MAX_DEVICES_PER_USER} devices, the maximum"
        raise QuotaExceeded("device", f"{message} (TIMELINE_MAX_DEVICES_PER_USER)")
    return Device.objects.create(user=user, name=name)
