from django.conf import settings
from django.db import models
from django.db.models.functions import Now


class Replay(models.Model):
    """A replay of many jobs at once. It can be undone for jobs that have not begun."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", db_index=False
    )
    what = models.TextField(help_text="the filter, or the jobs that were chosen")
    jobs = models.PositiveIntegerField(default=0)
    at = models.DateTimeField(db_default=Now())
    undone_at = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"replay {self.pk}"


class ReplayedJob(models.Model):
    """The columns of a job before its replay."""

    replay = models.ForeignKey(
        Replay, models.DO_NOTHING, db_constraint=False, db_index=False, related_name="replayed"
    )
    # No database constraint: the job may be pruned first.
    job = models.ForeignKey(
        "tailrace_jobs.Job",
        models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="+",
    )
    before = models.JSONField(help_text="the columns that a replay changes")
    at = models.DateTimeField(db_default=Now())

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["replay", "job"], name="tailrace_job_replayed_once"),
        ]

    def __str__(self) -> str:
        return f"job {self.job_id} of replay {self.replay_id}"
