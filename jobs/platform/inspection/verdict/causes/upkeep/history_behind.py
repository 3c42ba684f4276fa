from tailrace.db import clock
from tailrace.db.query import query
from tailrace.environment.conf import conf
from tailrace.jobs.engine.maintenance.pruning import history
from tailrace.jobs.platform.inspection.display.formatting import when
from tailrace.jobs.platform.inspection.verdict.cause import Cause, Check, Facts

HOURS = 2
"""Upkeep moves a finished job to the history within an hour, so two hours are late."""

_READ = f"""
SELECT ({history.LAST_DAY}), ({clock.NOW} AT TIME ZONE 'UTC')::date, (
  SELECT finished_at FROM tailrace_jobs_live
  WHERE finished_at < {clock.NOW} - make_interval(hours => {HOURS})
    AND finished_at > {clock.NOW} - make_interval(days => %(days)s)
    AND finished_at IS NOT NULL AND state <> 'failed'
  ORDER BY finished_at LIMIT 1)
"""
_OWNER = (
    "look for upkeep.failed in the workers' logs: the database user must own the table"
    " tailrace_jobs_job to create a partition for each day."
)


class HistoryBehind(Check):
    """Finished jobs that were not moved to the history, and days without a partition."""

    code = "history_behind"
    rank = 45

    def causes(self, facts: Facts) -> list[Cause]:
        [(last, today, oldest)] = query(_READ, days=conf.JOBS_RETENTION_DAYS)
        behind: list[Cause] = []
        if oldest:
            words = "Finished jobs have not been moved to the history: "
            words += f"one ended at {when(oldest)}."
            advice = "Upkeep moves finished jobs to the history. If this time stays the same, "
            behind.append(Cause(words, since=oldest, advice=advice + _OWNER))
        if last and last <= today:
            words = f"The history of jobs has no partition for the days after {last}; "
            words += "partitions are created a week ahead."
            advice = f"Finished jobs cannot be moved until it is created: {_OWNER}"
            behind.append(Cause(words, advice=advice))
        return behind
