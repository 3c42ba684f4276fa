"""Create the rows of queues and schedules that the code declares."""

from collections.abc import Mapping, Sequence
from copy import copy
from datetime import datetime
from typing import Any

import structlog

from tailrace.db import clock, connections
from tailrace.db.engine_database import home
from tailrace.db.limits import time_limits
from tailrace.db.locks import Blocked
from tailrace.db.query import database_now, execute, query
from tailrace.jobs.engine import registry
from tailrace.jobs.engine.waking import activity
from tailrace.jobs.handler import NO_LANE, Cron, Every
from tailrace.jobs.models import Queue, Schedule
from tailrace.jobs.models.schedule import OF_CODE

log = structlog.get_logger(__name__)

STATEMENT_SECONDS, LOCK_SECONDS = 10, 2
MIGRATE_STATEMENT_SECONDS, MIGRATE_LOCK_SECONDS = 3600, 10


def sync(**kwargs: Any) -> None:
    """After migrate: create missing rows; retire queues and schedules that the code no longer
    declares.

    No row is deleted, since a declaration may depend on environment variables that this shell does
    not have, and the settings of operators are kept. Raises OperationalError when it waits too long
    for the row of a queue. Schedules that another transaction has locked are not changed.
    """
    [(migrated,)] = query("SELECT to_regclass('tailrace_jobs_queue') IS NOT NULL")
    if not migrated:  # e.g. after `migrate tailrace_jobs zero`
        return
    with time_limits(MIGRATE_STATEMENT_SECONDS, MIGRATE_LOCK_SECONDS):
        add_queues()
        if locked := _sync_schedules():
            log.warning("sync.locked", schedules=locked, hint="run `manage.py migrate` again")
        names = set(registry.all_handlers())
        _retire_queues(names)
        removed = Schedule.objects.of_code().filter(enabled=True).exclude(handler__in=names)
        removed.update(enabled=False, retired_at=database_now())
        _set_lanes()


# A variant `handler@queue` is declared with its handler.
_RETIRE = f"""
UPDATE tailrace_jobs_queue q
SET retired_at = CASE WHEN q.retired_at IS NULL THEN {clock.NOW} END
WHERE (q.retired_at IS NULL) <> (split_part(q.name, '@', 1) = ANY(%(names)s))
"""


def _retire_queues(names: set[str]) -> None:
    """Retire the queues without a handler in this code, and restore the others."""
    with connections.default():
        execute(_RETIRE, names=sorted(names))


# Each statement uses the partial index of a state, so that the history is not read.
_WITHOUT_LANE = """
UPDATE tailrace_jobs_live SET lane = %(no_lane)s WHERE id = ANY(ARRAY(
  SELECT id FROM tailrace_jobs_live
  WHERE handler = ANY(%(handlers)s) AND lane = '' AND {unstarted}
  FOR NO KEY UPDATE SKIP LOCKED))
"""


def _set_lanes() -> None:
    """Set the lane of jobs that were created before their handler had lanes: claims by lane would
    not find them. Locked jobs are skipped; fsck finds them."""
    handlers = handlers_with_lanes()
    if not handlers:
        return
    execute("SET LOCAL enable_seqscan = off")
    for unstarted in ("state = 'pending'", "state = 'waiting' AND after_id IS NOT NULL"):
        execute(_WITHOUT_LANE.format(unstarted=unstarted), no_lane=NO_LANE, handlers=handlers)
    execute("RESET enable_seqscan")


def handlers_with_lanes() -> list[str]:
    return [name for name, handler in registry.all_handlers().items() if handler.in_lanes()]


def add_missing() -> None:
    """When a process starts: create the rows that it needs. No handler is retired, since the code
    may be older than the last migrate. Raises Blocked if rows are locked, after all others are
    written."""
    with time_limits(STATEMENT_SECONDS, LOCK_SECONDS):
        add_queues()
        locked = _sync_schedules()
    if locked:
        raise Blocked(f"another transaction has locked these schedules: {_named(locked)}")


def add_missing_queues() -> None:
    """When a worker starts: create the queues that it serves. Schedules are left to `migrate` and
    beat: during a deploy, a worker of the earlier code would set their earlier timing again."""
    with time_limits(STATEMENT_SECONDS, LOCK_SECONDS):
        add_queues()


def add_queues() -> None:
    """Create the missing queues, each with its activity row."""
    # Inserting an existing row waits for a transaction that changes it, even with DO NOTHING.
    present = set(Queue.objects.using(home()).values_list("name", flat=True))
    missing = [Queue(name=name) for name in registry.all_handlers() if name not in present]
    Queue.objects.bulk_create(missing, ignore_conflicts=True)
    execute(activity.CREATE, names=list(registry.all_handlers()))


_ADD_QUEUE = """
INSERT INTO tailrace_jobs_queue (name, paused_by) VALUES (%(name)s, '') ON CONFLICT DO NOTHING
"""


def add_queue(name: str) -> None:
    """Create this queue if it is missing, whatever happens to the caller's transaction."""
    with connections.engine():
        # As in `add_queues`: the row is not inserted if it exists.
        if not query("SELECT 1 FROM tailrace_jobs_queue WHERE name = %(name)s", name=name):
            execute(_ADD_QUEUE, name=name)
        execute(activity.CREATE, names=[name])


def _sync_schedules() -> list[str]:
    """Create, change and retire the schedules of handlers as declared; return the names of
    schedules that were skipped because another transaction has locked them."""
    declared = _declared()
    rows = Schedule.objects.using(home())
    stored = {row.name: row for row in rows.filter(name__in=declared)}
    now = database_now()
    new = [Schedule(name=name) for name in declared if name not in stored]
    for row in new:
        _set(row, declared[row.name], now)
    Schedule.objects.bulk_create(new, ignore_conflicts=True)
    enabled = rows.of_code().filter(enabled=True, handler__in=registry.all_handlers())
    outdated = dict(enabled.exclude(name__in=declared).values_list("pk", "name"))
    outdated |= {row.pk: row.name for row in stored.values() if _differs(row, declared[row.name])}
    free = rows.select_for_update(skip_locked=True).filter(pk__in=outdated)
    for row in free:
        del outdated[row.pk]
        if row.name in declared:
            _set(row, declared[row.name], now)
        else:
            row.enabled, row.retired_at = False, now
        row.save()
    return sorted(outdated.values())


def missing_schedules() -> list[str]:
    """Return the names of declared schedules without a row."""
    declared = set(_declared())
    stored = Schedule.objects.filter(name__in=declared).values_list("name", flat=True)
    return sorted(declared - set(stored))


def restore_schedule(name: str) -> bool:
    """Enable a retired schedule, or create the missing row of a declared one; return False if it is
    neither."""
    retired = Schedule.objects.retired().filter(name=name, enabled=False)
    if retired.update(enabled=True, retired_at=None):
        return True
    fields = _declared().get(name)
    if fields is None or Schedule.objects.filter(name=name).exists():
        return False
    row = Schedule(name=name)
    _set(row, fields, database_now())
    return bool(Schedule.objects.bulk_create([row], ignore_conflicts=True))


def _declared() -> dict[str, dict[str, Any]]:
    """Return the fields of each declared schedule, by name."""
    return {
        f"{handler.name}:{key}" if key else handler.name: {
            "handler": handler.name,
            "routing_key": key,
            "owner": OF_CODE,
            "retired_at": None,
            **_timing(handler.schedule),
        }
        for handler in registry.all_handlers().values()
        if handler.schedule is not None
        for key in handler.schedule_keys()
    }


def _timing(schedule: Every | Cron) -> dict[str, Any]:
    if isinstance(schedule, Every):
        return {"every_seconds": schedule.seconds, "cron": "", "time_zone": "UTC"}
    timing = {"every_seconds": None, "cron": schedule.expression, "time_zone": schedule.tz}
    return timing | {"catch_up": schedule.catch_up}


_TIMING = ("every_seconds", "cron", "time_zone")


def _differs(row: Schedule, fields: Mapping[str, Any]) -> bool:
    return any(getattr(row, name) != value for name, value in fields.items())


def _set(row: Schedule, fields: Mapping[str, Any], now: datetime) -> None:
    """Set these fields of a schedule, and enable it if it was retired; if its timing changes, set
    its next run to the first slot of the new timing."""
    before = None if row.pk is None else copy(row)
    row.enabled = row.enabled or row.retired_at is not None
    for name, value in fields.items():
        setattr(row, name, value)
    if before is None or any(getattr(before, name) != getattr(row, name) for name in _TIMING):
        row.next_run_at = row.first_slot(now, before)


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more
