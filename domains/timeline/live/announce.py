"""Announce the points of devices: one event for all points that come within a few seconds.

    a point ──► the device's row counts it ──► a job, SECONDS later ──► event
                       └── MOST points ───────────────────────────────────▲

The transaction that adds points to the timeline also counts them. Only the event is delayed.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from django.db import transaction

from tailrace.db.query import database_now
from tailrace.domains.timeline.event_types import PointsAdded
from tailrace.domains.timeline.models import Device
from tailrace.events.publish import publish
from tailrace.jobs.enqueue import enqueue_many

ANNOUNCE = "timeline.announce_points"
MOST = 1000
"""Maximum points of one event. A request has no more points."""
SECONDS = 5.0
LATE = timedelta(minutes=2)
APART = timedelta(days=1)
"""Minimum gap between two points that puts them into different events."""
MOST_STRETCHES = 20
"""Maximum events for one request."""
COLLECTED = ["unannounced", "unannounced_since", "unannounced_first", "unannounced_last"]


@dataclass(frozen=True, slots=True)
class Stretch:
    """A number of points, and the times of the first and the last point."""

    count: int
    first_at: datetime
    last_at: datetime


def collect(device: Device, stretches: Sequence[Stretch], now: datetime) -> None:
    """Add the points to the device's next event, and save the device. Its row must be locked.

    Points that are APART get separate events, because subscribers of the event process the whole
    time between the first and the last point, e.g. search for photos without a location.
    """
    enqueues = not device.unannounced
    for stretch in _longest_gaps(stretches):
        if device.unannounced + stretch.count > MOST or _is_apart(device, stretch):
            _announce([device])
            enqueues = True
        first, last = device.unannounced_first, device.unannounced_last
        device.unannounced += stretch.count
        device.unannounced_since = device.unannounced_since or now
        device.unannounced_first = min(first or stretch.first_at, stretch.first_at)
        device.unannounced_last = max(last or stretch.last_at, stretch.last_at)
    if device.unannounced == MOST:
        _announce([device])
    elif enqueues:
        enqueue_announcements([device.pk], SECONDS)
    device.save(update_fields=["live_points", *COLLECTED])


def _is_apart(device: Device, stretch: Stretch) -> bool:
    first, last = device.unannounced_first, device.unannounced_last
    if first is None or last is None:
        return False
    return stretch.first_at - last > APART or first - stretch.last_at > APART


def _longest_gaps(stretches: Sequence[Stretch]) -> list[Stretch]:
    """Merge the stretches to at most MOST_STRETCHES; the longest gaps between them stay."""
    gaps = range(1, len(stretches))
    longest = sorted(gaps, key=lambda n: stretches[n - 1].last_at - stretches[n].first_at)
    starts = [0, *sorted(longest[: MOST_STRETCHES - 1]), len(stretches)]
    parts = [stretches[begin:end] for begin, end in pairwise(starts)]
    return [Stretch(sum(s.count for s in p), p[0].first_at, p[-1].last_at) for p in parts]


def announce(device_ids: Collection[int]) -> None:
    """Publish an event for each of the devices that has unannounced points."""
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
    """Enqueue jobs that announce the devices' points; return how many are new. Each device has at
    most one waiting job. `delay` is in seconds."""
    jobs = [
        {"payload": {"device_id": id}, "unique_key": str(id), "delay": delay} for id in device_ids
    ]
    return enqueue_many(ANNOUNCE, jobs)


def overdue(limit: int) -> list[int]:
    """Return the ids of devices whose points should have been announced already."""
    rows = Device.objects.filter(unannounced_since__lt=database_now() - LATE)
    return list(rows.order_by("unannounced_since").values_list("pk", flat=True)[:limit])
