"""Personal data in timelines."""

from django.contrib.auth.models import User
from django.db import transaction

from tailrace.db.query import execute
from tailrace.domains.timeline.event_types import ImportPromoted, PlacesKnown, PointsAdded
from tailrace.domains.timeline.imports.queues import enqueue_discard
from tailrace.domains.timeline.models import Device, Import, Place
from tailrace.jobs.operations.cancel import cancel
from tailrace.web.accounts.personal_data import PersonalData

BATCH = 10_000

_DELETE = """
DELETE FROM {table} WHERE ctid = ANY(ARRAY(
  SELECT ctid FROM {table} WHERE device_id = %(device)s LIMIT %(limit)s))
"""
_TABLES = ("tailrace_timeline_pointsource", "tailrace_timeline_point")


class Timeline(PersonalData):
    """Where you were and when, your devices, and the files that you imported."""

    def delete(self, user: User) -> int:
        return delete_some_of(user.pk)


def delete_some_of(user_id: int) -> int:
    """Delete an import, some points, or a device of the user; return how many rows.

    Imports are deleted first, so that only requests of devices can still add points. These requests
    lock the device.
    """
    with transaction.atomic():
        imports = Import.objects.select_for_update().filter(user=user_id)
        if row := imports.order_by("pk").first():
            if row.job_id is not None:
                cancel([row.job_id], reason="the account was deleted")
            enqueue_discard(row.pk, row.storage_key)
            ImportPromoted.erase_some(row.pk, BATCH)
            return Import.objects.filter(pk=row.pk).delete()[0]
        device = Device.objects.select_for_update().filter(user=user_id).order_by("pk").first()
        if device is None:
            return PlacesKnown.erase_some(user_id, BATCH)
        for table in _TABLES:
            if deleted := execute(_DELETE.format(table=table), device=device.pk, limit=BATCH):
                return deleted
        if deleted := _delete_places(device.pk) + PointsAdded.erase_some(device.pk, BATCH):
            return deleted
        return device.delete()[0]


def _delete_places(device_id: int) -> int:
    places = Place.objects.filter(device=device_id).values_list("pk", flat=True)[:BATCH]
    return Place.objects.filter(pk__in=list(places)).delete()[0]
