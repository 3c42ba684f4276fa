"""The quotas of a user: unfinished imports, all imports, stored files, devices and points."""

from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Sum

from tailrace.db.query import query
from tailrace.domains.timeline.models import Device, Import
from tailrace.domains.timeline.models.device import MAX_NAME
from tailrace.web.uploads import limits
from tailrace.web.uploads.errors import QuotaExceeded, UploadRejected


@dataclass(frozen=True, slots=True)
class Usage:
    bytes: int
    """Size of the stored files."""
    points: int

    def gigabytes(self) -> float:
        return self.bytes / limits.GIGABYTE


def usage_of(user_id: int) -> Usage:
    imports = Import.objects.filter(user=user_id).exclude(storage_key="")
    files = imports.values("storage_key", "size").distinct()  # several imports may share a file
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


def points_left(user_id: int) -> int | None:
    """Return how many points a device may still add, or None if there is no limit."""
    most = settings.TIMELINE_MAX_POINTS_PER_USER
    return max(0, most - _points_of(user_id)) if most else None


def points_left_for_imports(user_id: int) -> int | None:
    """Return how many points an import may still have, or None if there is no limit. A further
    source of a point counts as a point, since it takes as much space."""
    left = points_left(user_id)
    if left is None:
        return None
    shared = Import.objects.filter(user=user_id).aggregate(sum=Sum("shared"))["sum"] or 0
    return max(0, left - shared)


def check(user: User, size: int) -> None:
    """Raise UploadRejected if the user may not import one more file of `size` bytes.

    The result is reliable only while the user is locked.
    """
    limits.check_size("file", size, "IMPORT_MAX_MEGABYTES")
    imports = Import.objects.filter(user=user)
    limits.check_count(
        "file", imports.unfinished().count(), "unfinished imports", "IMPORT_MAX_UNFINISHED",
        "promote or cancel some first",
    )  # fmt: skip
    limits.check_count("file", imports.count(), "imports in your history", "IMPORT_MAX_PER_USER")
    limits.check_space(
        "file", usage_of(user.pk).bytes, size, "IMPORT_MAX_GIGABYTES_PER_USER",
        "files of finished imports are deleted after IMPORT_FILES_RETENTION_DAYS",
    )  # fmt: skip
    if settings.TIMELINE_MAX_POINTS_PER_USER and points_left_for_imports(user.pk) == 0:
        message = "your timeline has the maximum number of points (TIMELINE_MAX_POINTS_PER_USER)"
        raise QuotaExceeded(("file", f"{message}; undo an import first"))


def device_name(text: str) -> str:
    """Return the text as the name of a device, without needless spaces. Raises UploadRejected."""
    name = " ".join(text.split()) or "default"
    if len(name) > MAX_NAME or "\0" in name:
        raise UploadRejected(("device", f"a name has at most {MAX_NAME} characters, and no NUL"))
    return name


def device_of(user: User, name: str) -> Device:
    """Return the user's device with this name or former name; create it if it does not exist.

    The user must be locked. The device is locked, too, so that it is not deleted before it is used.
    Raises UploadRejected.
    """
    name = device_name(name)
    devices = Device.objects.select_for_update(no_key=True).filter(user=user)
    if device := devices.called(name):
        return device
    count = Device.objects.present().filter(user=user).count()
    limits.check_count(
        "device", count, "devices", "TIMELINE_MAX_DEVICES_PER_USER", "merge or delete some first"
    )
    return Device.objects.create(user=user, name=name)
