from django.db import models

from tailrace.jobs.models.job import Job


class LogLines(models.Model):
    """Lines that one claim of a job logged and that were written together."""

    # No database constraint: lines are pruned with their job.
    job = models.ForeignKey(
        Job, models.DO_NOTHING, related_name="+", db_constraint=False, db_index=False
    )
    claim_no = models.PositiveIntegerField()
    first = models.PositiveIntegerField(
        help_text="number of the first line; the claim's first is 1"
    )
    last = models.PositiveIntegerField()
    lines = models.JSONField(help_text="a list of number, time and text")

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["job", "claim_no", "first"], name="tailrace_log_lines_once"
            )
        ]

    def __str__(self) -> str:
        return f"lines {self.first} to {self.last} of job {self.job_id}, claim {self.claim_no}"
