"""Schedules and their slots: what was to run ran, and what comes next lies ahead."""

from collections.abc import Iterator, Sequence
from typing import Any

from django.conf import settings

from events import clock
from jobs import schedules
from jobs.fsck.kind import OLD, Kind, RowKind, Scope, bounded, rows


class SchedulesKeepUp(RowKind):
    """An enabled schedule's next slot does not lie far in the past."""

    name = "schedules.behind"
    table = "jobs_schedule"
    condition = f"r.enabled AND r.next_run_at < {OLD}"
    repairs = True
    advice = "its slots are caught up with, as the tick does; look why the tick does not"

    def repair(self, keys: Sequence[Any], scope: Scope) -> None:
        with bounded():
            schedules.run_due(10_000)


class SchedulesHaveHandlers(RowKind):
    """The handler of an enabled schedule exists."""

    name = "schedules.unknown_handler"
    table = "jobs_schedule"
    condition = f"""r.enabled AND r.handler <> ALL(%(known)s) AND NOT coalesce(
      (SELECT q.retired_at IS NULL OR q.retired_at > {OLD} FROM jobs_queue q
       WHERE q.name = r.handler), false)"""
    advice = "each of its slots is skipped: disable or delete it, or deploy a handler of its name"


class SlotsHaveTheirJobs(Kind):
    """A slot that ran has its job, unless that is old enough to have been pruned."""

    name = "slots.job_missing"
    advice = "its job was deleted; what it was to do is not done by itself: enqueue it by hand"

    def find(self, scope: Scope) -> Iterator[Any]:
        days = min(settings.JOBS_RETENTION_DAYS, settings.JOBS_FAILED_RETENTION_DAYS)
        found = rows(
            f"""SELECT s.id FROM jobs_slot s
                WHERE s.outcome = 'ran'
                  AND s.recorded_at > {clock.NOW} - make_interval(days => %(days)s)
                  AND (SELECT 1 FROM jobs_job j WHERE j.id = s.job_id) IS NULL
                ORDER BY s.id LIMIT 10000""",
            days=days,
        )
        yield from (id for (id,) in found)
