"""Announce the points of devices: one event for all that came within a few seconds.

    a point ──► the device's row counts it ──► a job, SECONDS later ──► event
                       └── MOST points ───────────────────────────────────▲

The points themselves are in the timeline already: only what follows from them is collected, in the
transaction that adds them.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from django.db import transaction

from db.query import database_now
from domains.timeline.event_types import PointsAdded
from domains.timeline.models import Device
from events.publish import publish
from jobs.enqueue import enqueue_many

ANNOUNCE = "timeline.announce_points"
MOST = 1000
"""Points of one event; a request has no more."""
SECONDS = 5.0
LATE = timedelta(minutes=2)
COLLECTED = ["unannounced", "unannounced_since", "unannounced_first", "unannounced_last"]


def collect(
    device: Device, count: int, first_at: datetime, last_at: datetime, now: datetime
) -> None:
    """Count these points of the device, which is locked, into its next event, and save it."""
    if device.unannounced + count > MOST:
        _announce([device])
    is_first = not device.unannounced
    device.unannounced += count
    device.unannounced_since = device.unannounced_since or now
    device.unannounced_first = min(device.unannounced_first or first_at, first_at)
    device.unannounced_last = max(device.unannounced_last or last_at, last_at)
    if device.unannounced == MOST:
        _announce([device])
    elif is_first:
        enqueue_announcements([device.pk], SECONDS)
    device.save(update_fields=["live_points", *COLLECTED])


def announce(device_ids: Collection[int]) -> None:
    """Publish an event for each of these devices that has unannounced points."""
    with transaction.atomic():
        rows = Device.objects.select_for_update(no_key=True).filter(pk__in=device_ids)
        devices = list(rows.filter(unannounced__gt=0).order_by("pk"))
        _announce(devices)
        Device.objects.bulk_update(devices, COLLECTED)


def _announce(devices: Sequence[Device]) -> None:
    publish([PointsAdded.new_event(device) for device in devices])
    for device in devices:
        device.unannounced, device.unannounced_since = 0, None
        device.unannounced_first = device.unannounced_last = None


def enqueue_announcements(device_ids: Collection[int], delay: float = 0.0) -> int:
    """Let jobs announce the devices' points; a device has one job at a time."""
    jobs = [
        {"payload": {"device_id": id}, "unique_key": str(id), "delay": delay} for id in device_ids
    ]
    return enqueue_many(ANNOUNCE, jobs)


def overdue(limit: int) -> list[int]:
    """Return the ids of devices whose points should have been announced."""
    rows = Device.objects.filter(unannounced_since__lt=database_now() - LATE)
    return list(rows.order_by("unannounced_since").values_list("pk", flat=True)[:limit])
