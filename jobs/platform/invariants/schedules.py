"""Schedules and slots: past slots were processed, and the next slot is in the future."""

from collections.abc import Sequence

from tailrace.db import clock
from tailrace.db.query import query
from tailrace.environment.conf import conf
from tailrace.jobs.engine.maintenance.sweeping.row_invariant import OLD, RowInvariant, handler_names
from tailrace.jobs.engine.maintenance.ticking import schedules
from tailrace.jobs.runtime.invariant import Invariant


class ScheduleIsOnTime(RowInvariant):
    """The next slot of an enabled schedule is not far in the past."""

    name = "schedules.behind"
    every = 15
    table = "tailrace_jobs_schedule"
    condition = f"r.enabled AND r.next_run_at < {OLD} AND {schedules.FOR_THIS_CODE}"
    advice = "the slots are processed as by the tick; find out why the tick did not process them"

    def find(self) -> list[int]:
        # ORDER BY matches the index, so that a planner without statistics uses it.
        sql = f"SELECT r.id FROM {self.table} r WHERE {self.condition} ORDER BY r.next_run_at"
        rows = query(f"{sql} LIMIT %(limit)s", **handler_names(), limit=self.limit)
        return [id for (id,) in rows]

    def repair(self, violations: Sequence[int]) -> int:
        return schedules.work_off()


class ScheduleHasHandler(RowInvariant):
    """The handler of an enabled schedule exists."""

    name = "schedules.unknown_handler"
    table = "tailrace_jobs_schedule"
    condition = f"""r.enabled AND r.handler <> ALL(%(known)s) AND NOT coalesce(
      (SELECT q.retired_at IS NULL OR q.retired_at > {OLD} FROM tailrace_jobs_queue q
       WHERE q.name = r.handler), false)"""
    advice = (
        "all slots are skipped: disable or delete the schedule, or deploy a handler of that name"
    )


class SlotHasJob(Invariant):
    """A slot that ran has its job, unless the job is old enough to be pruned."""

    name = "slots.job_missing"
    every = None
    advice = "the job was deleted: enqueue it again by hand if it is still needed"

    def find(self) -> list[int]:
        days = min(conf.JOBS_RETENTION_DAYS, conf.JOBS_FAILED_RETENTION_DAYS)
        sql = f"""SELECT s.id FROM tailrace_jobs_slot s
            WHERE s.outcome = 'ran'
              AND s.recorded_at > {clock.NOW} - make_interval(days => %(days)s)
              AND (SELECT 1 FROM tailrace_jobs_job j WHERE j.id = s.job_id) IS NULL
            ORDER BY s.id LIMIT %(limit)s"""
        return [id for (id,) in query(sql, days=days, limit=self.limit)]
