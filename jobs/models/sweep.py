from django.db import models
from django.db.models.functions import Now


class SweepRun(models.Model):
    """One check of an invariant, with the numbers of violations found and repaired. Consecutive
    checks that found nothing share one row."""

    class Outcome(models.TextChoices):
        CHECKED = "checked"
        SKIPPED = "skipped", "skipped: another sweep was checking it"
        ERROR = "error"

    invariant = models.TextField()
    outcome = models.TextField(choices=Outcome.choices)
    found = models.PositiveIntegerField(default=0)
    repaired = models.PositiveIntegerField(default=0)
    checks = models.PositiveIntegerField(db_default=1, help_text="checks in a row like this one")
    started_at = models.DateTimeField(db_default=Now(), help_text="when the last of them began")
    duration_ms = models.PositiveIntegerField(default=0)
    error = models.TextField(default="", blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["invariant", "-id"], name="tailrace_sweep_invariant"),
            models.Index(fields=["started_at"], name="tailrace_sweep_started_at"),
        ]

    def __str__(self) -> str:
        return f"{self.invariant} {self.started_at:%Y-%m-%d %H:%M:%S} UTC"
