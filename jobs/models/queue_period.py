from django.db import models

MINUTE, TEN_MINUTES, HOUR = 60, 600, 3600
RATIO = 1.35
"""The ratio of the limits of two neighbouring classes of durations. It bounds the error of a
percentile."""
ALL_QUEUES = ""
"""`queue` in the rows of all queues together."""
LAST_CLASS = 63
"""The class of durations above 44 hours."""


def class_of(interval: str) -> str:
    """Return SQL for the class of an interval. Class k contains durations above RATIO**(k-1) ms, up
    to RATIO**k ms."""
    milliseconds = f"greatest(1000 * extract(epoch FROM {interval}), 1)::float8"
    return f"least(ceil(ln({milliseconds}) / ln({RATIO}::float8)), {LAST_CLASS})::int"


class QueuePeriod(models.Model):
    """The statistics of a queue, or of all queues together, for 1 minute, 10 minutes or 1 hour: for
    the charts of its page and of the overview."""

    queue = models.TextField(help_text="empty: all queues together")
    seconds = models.PositiveIntegerField(help_text="length: 60, 600 or 3600")
    at = models.DateTimeField(help_text="when it began")
    completed = models.PositiveIntegerField(default=0)
    retried = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    busy_ms = models.PositiveBigIntegerField(default=0)
    wait = models.JSONField(default=dict, help_text="jobs by class of their time from due to claim")
    run = models.JSONField(default=dict, help_text="jobs by class of their time from claim to end")
    events = models.PositiveIntegerField(
        default=0, db_default=0, help_text="recorded events; only of all queues together"
    )
    due = models.PositiveIntegerField(
        null=True, help_text="due jobs at its end, the most of longer periods; only of all queues"
    )

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["queue", "seconds", "at"], name="tailrace_queue_period_once"
            )
        ]
        indexes = [models.Index(fields=["seconds", "at"], name="tailrace_queue_period_age")]

    def __str__(self) -> str:
        return f"{self.queue} {self.at:%Y-%m-%d %H:%M:%S} UTC for {self.seconds} s"
