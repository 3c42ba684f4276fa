from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from tailrace.db.real_field import RealField
from tailrace.events.models import Event
from tailrace.jobs.handler import LOWEST_PRIORITY
from tailrace.jobs.runtime.states import LIVE, UNSTARTED, State

INDEXED_STATES = frozenset({*LIVE, State.FAILED})
"""States for which partial indexes of jobs exist."""
CALL_AFTER = "seconds from the claim until the call of the handler began"
CALL_TOOK = "seconds that the call took, with the other jobs of its batch"


class JobQuerySet(models.QuerySet["Job"]):
    def pending(self) -> "JobQuerySet":
        return self.filter(state=State.PENDING)

    def running(self) -> "JobQuerySet":
        return self.filter(state=State.RUNNING)

    def failed(self) -> "JobQuerySet":
        return self.filter(state=State.FAILED)


class Job(models.Model):
    """One piece of work for one handler, because of an event, a request or a schedule."""

    handler = models.TextField(help_text="name of the handler, of its queue and of its Celery task")
    # No database constraint: a job and its event are written in one transaction and pruned
    # together, and a check per row would lock each event once per job.
    event = models.ForeignKey(
        Event,
        models.DO_NOTHING,
        null=True,
        blank=True,
        related_name="jobs",
        db_constraint=False,
        db_index=False,
    )
    routing_key = models.TextField(default="", blank=True, help_text="key of the destination")
    payload = models.JSONField(null=True, blank=True)
    state = models.TextField(choices=State.choices, default=State.PENDING)
    priority = models.PositiveSmallIntegerField(default=1, help_text="0 (first) to 3")
    lane = models.TextField(default="", blank=True)
    due_at = models.DateTimeField(db_default=Now())
    attempt = models.PositiveIntegerField(default=0, help_text="attempts started")
    claim_no = models.PositiveIntegerField(default=0, help_text="claims so far; the fencing token")
    lease_until = models.DateTimeField(null=True, blank=True)
    worker = models.TextField(default="", blank=True)
    begun = models.BooleanField(
        default=True,
        db_default=True,
        help_text="of a running job: its call has begun; if not, it waits for others of its claim",
    )
    isolate = models.BooleanField(default=False, help_text="claimed alone: its worker was lost")
    suspect_group = models.IntegerField(
        null=True,
        blank=True,
        help_text="jobs of a failed batch: each group is called by itself",
    )
    after = models.ForeignKey(
        "self",
        models.DO_NOTHING,
        null=True,
        blank=True,
        related_name="continuations",
        db_constraint=False,
        db_index=False,
        help_text="the job it waits for",
    )
    # No foreign key, and a null value costs no space in the rows of other jobs.
    flow_id = models.BigIntegerField(null=True, blank=True, help_text="the flow it belongs to")
    flow_name = models.TextField(null=True, blank=True, help_text="its name in the flow")
    # No foreign key: the other job may be pruned.
    copy_of = models.BigIntegerField(
        null=True, blank=True, help_text="the job that was run again, with another payload"
    )
    unique_key = models.TextField(null=True, blank=True)
    merged = models.IntegerField(
        default=0, db_default=0, help_text="jobs of the same unique key that were merged into it"
    )
    has_dependents = models.BooleanField(
        default=False, db_default=False, help_text="another job waits for it, or has waited"
    )
    schedule = models.ForeignKey(
        "tailrace_jobs.Schedule",
        models.DO_NOTHING,
        null=True,
        blank=True,
        db_constraint=False,
        db_index=False,
    )
    slot = models.DateTimeField(null=True, blank=True)
    progress_done = models.PositiveBigIntegerField(null=True, blank=True)
    progress_total = models.PositiveBigIntegerField(null=True, blank=True)
    progress_note = models.TextField(default="", blank=True)
    result = models.JSONField(null=True, blank=True)
    error = models.TextField(default="", blank=True, help_text="why it is in this state")
    created_at = models.DateTimeField(db_default=Now())
    started_at = models.DateTimeField(null=True, blank=True)
    call_after = RealField(null=True, blank=True, help_text=CALL_AFTER)
    call_took = RealField(null=True, blank=True, help_text=CALL_TOOK)
    finished_at = models.DateTimeField(null=True, blank=True)
    cancel_requested = models.BooleanField(default=False)
    done_on = models.DateField(
        null=True,
        blank=True,
        editable=False,
        help_text="the day (UTC) whose partition of finished jobs has it; empty: it is among the "
        "live ones",
    )
    failure_group = models.ForeignKey(
        "tailrace_jobs.FailureGroup",
        models.DO_NOTHING,
        null=True,
        blank=True,
        related_name="jobs",
        db_constraint=False,
        db_index=False,
        help_text="of its last attempt that failed",
    )

    objects = JobQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["event", "handler", "routing_key"],
                name="tailrace_job_owed_once",
                condition=Q(event__isnull=False),
            ),
            models.UniqueConstraint(
                fields=["handler", "unique_key"],
                name="tailrace_job_unique_key",
                condition=Q(unique_key__isnull=False, state__in=UNSTARTED),
            ),
            models.CheckConstraint(
                condition=Q(priority__lte=LOWEST_PRIORITY), name="tailrace_job_priority_0_to_3"
            ),
        ]
        # Partial, so that their size depends on the live rows and not on the history.
        indexes = [
            models.Index(
                fields=["handler", "priority", "due_at", "id"],
                name="tailrace_job_due",
                condition=Q(state=State.PENDING),
            ),
            models.Index(
                fields=["handler", "lane", "priority", "due_at", "id"],
                name="tailrace_job_lane_due",
                condition=Q(state=State.PENDING) & ~Q(lane=""),
            ),
            models.Index(
                fields=["handler", "lane", "id"],
                name="tailrace_job_lane_head",
                condition=Q(state=State.PENDING) & ~Q(lane=""),
            ),
            # Only columns that do not change while a job runs, so without `lease_until`: the
            # renewal of a lease stays a HOT update, which writes to no index.
            models.Index(
                fields=["handler", "lane"],
                name="tailrace_job_running",
                condition=Q(state=State.RUNNING),
            ),
            models.Index(
                fields=["after"],
                name="tailrace_job_waits_for",
                condition=Q(after__isnull=False, state__in=(State.WAITING, State.CANCELLED)),
            ),
            models.Index(
                fields=["after"], name="tailrace_job_after", condition=Q(after__isnull=False)
            ),
            models.Index(
                fields=["flow_id", "flow_name"],
                name="tailrace_job_of_flow",
                condition=Q(flow_id__isnull=False),
            ),
            models.Index(
                fields=["copy_of"], name="tailrace_job_copies", condition=Q(copy_of__isnull=False)
            ),
            models.Index(
                fields=["handler", "id"],
                name="tailrace_job_failed",
                condition=Q(state=State.FAILED),
            ),
            models.Index(
                fields=["failure_group", "id"],
                name="tailrace_job_failed_alike",
                condition=Q(state=State.FAILED),
            ),
            models.Index(
                fields=["finished_at"],
                name="tailrace_job_done",
                condition=Q(finished_at__isnull=False) & ~Q(state=State.FAILED),
            ),
            models.Index(
                fields=["finished_at"],
                name="tailrace_job_failed_at",
                condition=Q(state=State.FAILED),
            ),
            models.Index(
                fields=["schedule"],
                name="tailrace_job_scheduled",
                condition=Q(schedule__isnull=False, state__in=LIVE),
            ),
        ]
        permissions = [
            ("replay_job", "Can replay, retry and cancel jobs"),
            ("view_job_payload", "Can view the payload and result of a job"),
            ("change_job_payload", "Can run a job of any queue again with a changed payload"),
        ]

    def __str__(self) -> str:
        return f"{self.handler} {self.pk}"


class Attempt(models.Model):
    """A claim that did not complete its job: retried, failed, snoozed, lost or interrupted.
    Consecutive snoozes are one row, with the number of the last claim."""

    class Outcome(models.TextChoices):
        RETRIED = "retried"
        FAILED = "failed"
        SNOOZED = "snoozed"
        LOST = "lost"
        INTERRUPTED = "interrupted"

    # The unique constraint below is also the index by job.
    job = models.ForeignKey(
        Job, models.DO_NOTHING, related_name="attempts", db_constraint=False, db_index=False
    )
    claim_no = models.PositiveIntegerField()
    started_at = models.DateTimeField(null=True)
    call_after = RealField(null=True, blank=True, help_text=CALL_AFTER)
    call_took = RealField(null=True, blank=True, help_text=CALL_TOOK)
    finished_at = models.DateTimeField(db_default=Now())
    outcome = models.TextField(choices=Outcome.choices)
    times = models.IntegerField(
        db_default=1, help_text="claims that ended so, one after the other; above 1 for snoozes"
    )
    error_class = models.TextField(default="", blank=True)
    message = models.TextField(default="", blank=True)
    traceback = models.TextField(default="", blank=True, help_text="cut to 8 KB")
    worker = models.TextField(default="", blank=True)

    class Meta:
        # A claim is settled once: a second row would be a second settlement.
        constraints = [
            models.UniqueConstraint(
                fields=["job", "claim_no"], name="tailrace_attempt_settled_once"
            )
        ]

    def __str__(self) -> str:
        return f"attempt {self.claim_no} of job {self.job_id}: {self.outcome}"

    @property
    def summary(self) -> str:
        """The outcome, with the number of claims if there are several: `snoozed 200 times`."""
        return self.outcome if self.times == 1 else f"{self.outcome} {self.times} times"
