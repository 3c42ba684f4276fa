from django.conf import settings

from tailrace.db import clock
from tailrace.db.query import query
from tailrace.jobs.inspection.formatting import when
from tailrace.jobs.inspection.verdict.cause import Cause, Check
from tailrace.jobs.inspection.verdict.facts import Facts
from tailrace.jobs.maintenance import history

HOURS = 2
"""Upkeep moves a job an hour after its end at the latest."""

_READ = f"""
SELECT ({history.LAST_DAY}), ({clock.NOW} AT TIME ZONE 'UTC')::date, (
  SELECT finished_at FROM tailrace_jobs_live
  WHERE finished_at < {clock.NOW} - make_interval(hours => {HOURS})
    AND finished_at > {clock.NOW} - make_interval(days => %(days)s)
    AND finished_at IS NOT NULL AND state <> 'failed'
  ORDER BY finished_at LIMIT 1)
"""
_OWNER = (
    "look for upkeep.failed in the workers' logs: the database's user must own the table"
    " tailrace_jobs_job to make a partition for each day."
)


class HistoryBehind(Check):
    """Finished jobs that are still among the live ones, and days that lack their partition."""

    code = "history_behind"
    rank = 93

    def causes(self, facts: Facts) -> list[Cause]:
        [(last, today, oldest)] = query(_READ, days=settings.JOBS_RETENTION_DAYS)
        behind: list[Cause] = []
        if oldest:
            behind.append(
                Cause(
                    f"Finished jobs are still among the live ones: one ended at {when(oldest)}.",
                    since=oldest,
                    advice="Upkeep moves them to the history. If the"
                    f" time does not move on, {_OWNER}",
                )
            )
        if last and last <= today:
            behind.append(
                Cause(
                    f"The history of jobs has no partition for the days after {last}; they are made"
                    " a week ahead.",
                    advice=f"Jobs stay among the live ones until there is one: {_OWNER}",
                )
            )
        return behind
