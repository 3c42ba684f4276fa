from django.db import models
from django.db.models import Q


class Poller(models.Model):
    """The position up to which a backend's notification log was read, and the job that reads it."""

    name = models.TextField(unique=True, help_text="the backend's name in OBS_BACKEND_URL")
    epoch = models.PositiveIntegerField(default=1, help_text="rises each time the log is reset")
    next_number = models.BigIntegerField(
        null=True, blank=True, help_text="the next number to read; empty: never read"
    )
    end_seen = models.BigIntegerField(
        null=True, blank=True, help_text="the last known end of the log"
    )
    waiting = models.BigIntegerField(
        default=0, db_default=0, help_text="how many entries there were to read at the last read"
    )
    past_until = models.BigIntegerField(
        null=True,
        blank=True,
        help_text="entries below this number are of the past: recorded without notifying anybody",
    )
    events_read = models.BigIntegerField(default=0)
    last_event_at = models.DateTimeField(
        null=True, blank=True, help_text="time of the last event read"
    )
    polled_at = models.DateTimeField(
        null=True, blank=True, help_text="time of the last successful read"
    )
    error = models.TextField(default="", blank=True)
    errors_in_row = models.PositiveIntegerField(default=0)
    backoff_until = models.DateTimeField(null=True, blank=True)
    lease_holder = models.TextField(
        default="", blank=True, help_text="the job and claim that read the log now"
    )
    lease_until = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(next_number=None) | Q(next_number__gte=1),
                name="tailrace_poller_next_from_1",
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def behind(self) -> int | None:
        """Return the number of unread notifications; None before the first read."""
        if self.next_number is None or self.end_seen is None:
            return None
        return max(self.end_seen - self.next_number, 0)


class LogPart(models.Model):
    """Digests of consecutive entries of a log, by which the poller recognizes whether the backend
    still has the same log, and if not, where the new log begins."""

    poller = models.ForeignKey(Poller, models.CASCADE, related_name="parts")
    first = models.BigIntegerField(help_text="number of the first of the entries")
    digests = models.BinaryField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["poller", "first"], name="tailrace_log_part_once"),
        ]

    def __str__(self) -> str:
        return f"{self.poller_id}: from {self.first}"
