from django.conf import settings

from db import clock
from db.query import query
from jobs.inspection.formatting import when
from jobs.inspection.verdict.cause import Cause, Check
from jobs.inspection.verdict.facts import Facts

HOURS = 2
"""Upkeep moves a job an hour after its end at the latest."""

_OLDEST = f"""
SELECT finished_at FROM jobs_live
WHERE finished_at < {clock.NOW} - make_interval(hours => {HOURS})
  AND finished_at > {clock.NOW} - make_interval(days => %(days)s)
  AND finished_at IS NOT NULL AND state <> 'failed'
ORDER BY finished_at LIMIT 1
"""


class HistoryBehind(Check):
    """Finished jobs that are still among the live ones, for example because days lack."""

    code = "history_behind"
    rank = 93

    def causes(self, facts: Facts) -> list[Cause]:
        rows = query(_OLDEST, days=settings.JOBS_RETENTION_DAYS)
        if not rows:
            return []
        return [
            Cause(
                f"Finished jobs are still among the live ones: one ended at {when(rows[0][0])}.",
                since=rows[0][0],
                advice="Upkeep moves them to the history, after an upgrade for a while. If the time"
                " does not move on, look for upkeep.failed in the workers' logs: the database's"
                " user must own the table jobs_job to make a partition for each day.",
            )
        ]
