from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F
from django.db.models.functions import Now


class QueueQuerySet(models.QuerySet["Queue"]):
    def active(self) -> "QueueQuerySet":
        """Return the queues whose handler existed in the code at the last migrate."""
        return self.filter(retired_at=None)


class Queue(models.Model):
    """The queue of a handler, with settings that operators change while it runs. `migrate` creates
    one row per handler."""

    name = models.TextField(primary_key=True)
    paused_at = models.DateTimeField(null=True, blank=True)
    paused_by = models.TextField(default="", blank=True)
    paused_reason = models.TextField(default="", db_default="", blank=True, max_length=200)
    paused_until = models.DateTimeField(
        null=True, blank=True, help_text="when the tick resumes it; empty: until somebody does"
    )
    max_running = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="jobs at once, all workers together; empty: as the handler",
    )
    rate_limit = models.FloatField(
        null=True, blank=True, help_text="jobs per second, all workers together; empty: no limit"
    )
    # The transaction and the id of the last event that backfill has checked.
    backfilled_xact = models.BigIntegerField(null=True, blank=True, editable=False)
    backfilled_to = models.BigIntegerField(null=True, blank=True, editable=False)
    retired_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects = QueueQuerySet.as_manager()

    class Meta:
        ordering = ("name",)
        permissions = [("pause_queue", "Can pause and resume a queue and change its limits")]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(rate_limit=None) | models.Q(rate_limit__gt=0),
                name="tailrace_queue_rate_limit_above_zero",
                violation_error_message="a rate limit is above 0; pause the queue to stop it",
            ),
            models.CheckConstraint(
                condition=models.Q(max_running=None) | models.Q(max_running__gt=0),
                name="tailrace_queue_max_running_above_zero",
                violation_error_message="max_running is above 0; pause the queue to stop it",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def paused(self) -> bool:
        return self.paused_at is not None


class QueueActivity(models.Model):
    """The part of a queue's state that each wake-up and each drain changes. One row per queue; see
    `tailrace.jobs.engine.waking.activity` for the statements."""

    pk = models.CompositePrimaryKey("name", "slice")
    name = models.TextField(help_text="of the queue")
    slice = models.BigIntegerField(
        default=0, help_text="moves on every few seconds, so that the newest version is found soon"
    )
    awake = models.BooleanField(default=False, help_text="a message is out, no drain has begun")
    awake_at = models.DateTimeField(null=True)
    drained_at = models.DateTimeField(null=True)
    resends = models.SmallIntegerField(default=0, help_text="messages since the last drain")
    tokens = models.FloatField(default=0)
    tokens_at = models.DateTimeField(db_default=Now())

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return self.name


class Throughput(models.Model):
    """The number of jobs that the drains of a queue settled in one minute, for sparklines."""

    queue = models.TextField()
    minute = models.DateTimeField()
    completed = models.PositiveIntegerField(default=0)
    retried = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    busy_ms = models.PositiveBigIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(F("minute"), F("queue"), name="tailrace_throughput_per_minute")
        ]

    def __str__(self) -> str:
        return f"{self.queue} {self.minute:%Y-%m-%d %H:%M:%S} UTC"


class Total(models.Model):
    """The counts of all processes since the table was last emptied
    (`tailrace.jobs.engine.counters.totals`)."""

    pk = models.CompositePrimaryKey("metric", "name")
    metric = models.TextField()
    name = models.TextField(help_text="of the queue, or of the event type")
    numbers = ArrayField(models.FloatField())

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.metric} {self.name}"


class Pulse(models.Model):
    """The last heartbeat of each worker, the time of the last turn of each kind of upkeep, and the
    last failures of threads and losses of workers, for the verdict."""

    name = models.TextField(
        primary_key=True,
        help_text="worker:<node name> <host>:<process>, a turn such as tick,"
        " thread:<host>:<process> <thread>, or loss:<handler>",
    )
    at = models.DateTimeField(db_default=Now())
    queues = models.JSONField(default=list, help_text="the queues that a worker listens on")
    by = models.TextField(
        default="", db_default="", blank=True, help_text="the process that took the turn"
    )
    facts = models.JSONField(
        default=dict,
        db_default=models.Value({}, models.JSONField()),
        help_text="of a worker: host, processes, memory and version of the code",
    )

    class Meta:
        permissions = [("end_session", "Can end a session of the database that does harm")]

    def __str__(self) -> str:
        return self.name
