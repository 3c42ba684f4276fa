from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class Flow(models.Model):
    """Jobs that belong together. `jobs.flows.state` derives its state from its jobs."""

    name = models.TextField(help_text="what it does, for operators")
    unique_key = models.TextField(
        null=True, blank=True, help_text="a second flow with this key is not created"
    )
    created_at = models.DateTimeField(db_default=Now())
    deadline_at = models.DateTimeField(
        null=True, blank=True, help_text="jobs that are unfinished then are cancelled"
    )
    deadline_met = models.BooleanField(
        null=True, blank=True, help_text="whether all jobs had ended then; empty: not checked yet"
    )
    paused_at = models.DateTimeField(null=True, blank=True)
    paused_by = models.TextField(default="", blank=True)
    cancelled_at = models.DateTimeField(null=True, blank=True)
    cancelled_by = models.TextField(default="", blank=True)
    # No foreign key: the other flow may be pruned.
    copy_of = models.BigIntegerField(
        null=True, blank=True, help_text="the flow that was run again by this one"
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["unique_key"],
                name="tailrace_flow_unique_key",
                condition=Q(unique_key__isnull=False),
            )
        ]
        indexes = [
            models.Index(
                fields=["deadline_at"],
                name="tailrace_flow_deadline",
                condition=Q(deadline_at__isnull=False, deadline_met__isnull=True),
            ),
            models.Index(
                fields=["paused_at"],
                name="tailrace_flow_paused",
                condition=Q(paused_at__isnull=False),
            ),
        ]
        permissions = [("change_flow_state", "Can cancel, pause, retry and replay flows")]

    def __str__(self) -> str:
        return f"flow {self.pk}: {self.name}"


class Need(models.TextChoices):
    """How a parent must end, so that a job that waits for it runs."""

    SUCCESS = "success", "completed or skipped"
    FAILURE = "failure", "failed or cancelled; one of several is enough"
    END = "end", "in any way"


class Dependency(models.Model):
    """A job of a flow waits for a parent. A job that only needs the success of one parent has no
    row: `Job.after` is enough. While a job with rows waits, `Job.after` is one of its unfinished
    parents."""

    # No foreign keys: they would lock each parent once for each of its children.
    pk = models.CompositePrimaryKey("job_id", "parent_id")
    job_id = models.BigIntegerField()
    parent_id = models.BigIntegerField()
    need = models.TextField(choices=Need.choices, default=Need.SUCCESS)
    position = models.PositiveIntegerField(help_text="of the parent among those of its job")

    class Meta:
        default_permissions = ()
        indexes = [models.Index(fields=["parent_id"], name="tailrace_dependency_parent")]

    def __str__(self) -> str:
        return f"job {self.job_id} waits for job {self.parent_id}"
