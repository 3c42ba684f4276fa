from django.db import models

MINUTE, TEN_MINUTES, HOUR = 60, 600, 3600
RATIO = 1.35
"""Between the limits of two classes of times: a percentile is off by half of that at most."""
LAST_CLASS = 63
"""From 44 hours on."""


def class_of(interval: str) -> str:
    """Return SQL for the class of an interval: class k has times from RATIO**(k-1) ms, which are
    not in it, to RATIO**k ms."""
    milliseconds = f"greatest(1000 * extract(epoch FROM {interval}), 1)::float8"
    return f"least(ceil(ln({milliseconds}) / ln({RATIO}::float8)), {LAST_CLASS})::int"


class QueuePeriod(models.Model):
    """What a queue did in one minute, in ten, or in an hour: for the charts of its page.

    Upkeep adds up minutes from jobs and Throughput, and longer periods from shorter ones.
    """

    queue = models.TextField()
    seconds = models.PositiveIntegerField(help_text="length: 60, 600 or 3600")
    at = models.DateTimeField(help_text="when it began")
    completed = models.PositiveIntegerField(default=0)
    retried = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    busy_ms = models.PositiveBigIntegerField(default=0)
    wait = models.JSONField(default=dict, help_text="jobs by class of their time from due to claim")
    run = models.JSONField(default=dict, help_text="jobs by class of their time from claim to end")

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
