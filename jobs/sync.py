"""sync: the rows that stand for what the code declares: queues, and schedules owned by code."""

from datetime import datetime
from typing import Any

from django.db import transaction

from events import clock
from jobs import registry
from jobs.handler import NO_LANE, Every, Handler
from jobs.models import Job, Queue, Schedule
from jobs.states import UNSTARTED

OWNER = "code"


def sync(**kwargs: Any) -> None:
    """After migrate: a queue per handler and a schedule per declared one; what is gone is retired.

    What operators set on the rows is left alone.
    """
    with transaction.atomic():
        add()
        names = set(registry.everything())
        Queue.objects.filter(name__in=names, retired_at__isnull=False).update(retired_at=None)
        Queue.objects.active().exclude(name__in=names).update(retired_at=clock.now())
        Schedule.objects.filter(owner=OWNER).exclude(handler__in=names).delete()
        # Jobs from before their handler served lanes: no walk from lane to lane meets them.
        Job.objects.filter(handler__in=registry.laned(), state__in=UNSTARTED, lane="").update(
            lane=NO_LANE
        )


def add(**kwargs: Any) -> None:
    """When a process starts: the rows that it needs. Retires nothing, since code of the version
    before may start beside the one that migrated."""
    names = registry.everything()
    Queue.objects.bulk_create([Queue(name=name) for name in names], ignore_conflicts=True)
    _sync_schedules()


def _sync_schedules() -> None:
    wanted = {
        _name(handler, key): (handler, key)
        for handler in registry.everything().values()
        if handler.schedule is not None
        for key in handler.schedule_keys()
    }
    for name, (handler, key) in wanted.items():
        declared: dict[str, Any] = {"handler": handler.name, "routing_key": key, "owner": OWNER}
        timing = _timing(handler)
        if not Schedule.objects.filter(name=name, **timing).exists():
            declared["next_run_at"] = _first_slot(timing)
        Schedule.objects.update_or_create(name=name, defaults=declared | timing)
    ours = Schedule.objects.filter(owner=OWNER, handler__in=registry.everything())
    ours.exclude(name__in=wanted).delete()


def _first_slot(timing: dict[str, Any]) -> datetime:
    """A new cron schedule begins with its next slot, a new interval now."""
    now = clock.now()
    return Schedule(**timing).slot_after(now) if timing["cron"] else now


def _name(handler: Handler, key: str) -> str:
    return f"{handler.name}:{key}" if key else handler.name


def _timing(handler: Handler) -> dict[str, Any]:
    schedule = handler.schedule
    if isinstance(schedule, Every):
        return {"every_seconds": schedule.seconds, "cron": "", "time_zone": "UTC"}
    if schedule is None:
        return {}
    return {
        "every_seconds": None,
        "cron": schedule.expression,
        "time_zone": schedule.tz,
        "catch_up": schedule.catch_up,
    }
