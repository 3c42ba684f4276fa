from tailrace.jobs.platform.inspection.display.formatting import when
from tailrace.jobs.platform.inspection.storage.past_retention import most_overdue
from tailrace.jobs.platform.inspection.verdict.cause import Cause, Check, Facts

TOLERATED_SECONDS = 86_400
"""How long after the end of its retention a job may still exist."""


class RetentionBehind(Check):
    """Finished jobs that should have been deleted."""

    code = "retention_behind"
    rank = 75

    def causes(self, facts: Facts) -> list[Cause]:
        overdue = most_overdue()
        if overdue is None or overdue[1] <= TOLERATED_SECONDS:
            return []
        at = overdue[0]
        words = f"Jobs past their retention have not been deleted: one ended at {when(at)}."
        advice = "Pruning is part of upkeep: look for prune.failed in the workers' logs."
        return [Cause(words, since=at, advice=advice)]
