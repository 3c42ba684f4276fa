from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class Schedule(models.Model):
    """When a handler gets a job by the clock: every so many seconds, or by a cron expression."""

    class CatchUp(models.TextChoices):
        LATEST = "latest", "run once for all slots that were missed"
        ALL = "all", "run each slot that was missed"
        SKIP = "skip", "skip slots that were missed"

    name = models.TextField(unique=True)
    handler = models.TextField()
    routing_key = models.TextField(default="", blank=True)
    payload = models.JSONField(null=True, blank=True)
    every_seconds = models.FloatField(null=True, blank=True)
    cron = models.TextField(default="", blank=True, help_text="minute hour day month weekday")
    time_zone = models.TextField(default="UTC")
    owner = models.TextField(
        default="",
        blank=True,
        help_text="code, or the user who created it",
    )
    catch_up = models.TextField(choices=CatchUp.choices, default=CatchUp.LATEST)
    enabled = models.BooleanField(default=True)
    next_run_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [
            models.Index(fields=["next_run_at"], name="schedule_next", condition=Q(enabled=True))
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(every_seconds__isnull=False, every_seconds__gt=0, cron="")
                | (Q(every_seconds=None) & ~Q(cron="")),
                name="schedule_by_interval_or_cron",
                violation_error_message="give either every_seconds (above 0) or cron",
            )
        ]

    def __str__(self) -> str:
        return self.name

    def slots_after(self, at: datetime) -> Iterator[datetime]:
        """Yield the slots later than the slot `at`, in UTC, without end.

        Raises ValueError, KeyError (time zone) or CronSimError when the schedule has no more.
        """
        if self.every_seconds is not None:
            while True:
                at += timedelta(seconds=self.every_seconds)
                yield at
        for slot in CronSim(self.cron, at.astimezone(ZoneInfo(self.time_zone))):
            yield slot.astimezone(UTC)
        raise ValueError(f"{self.cron!r} has no slot in the next 50 years")

    def slot_after(self, at: datetime) -> datetime:
        """Return the first slot later than the slot `at`, in UTC."""
        return next(self.slots_after(at))

    def clean(self) -> None:
        errors: dict[str, Any] = {}
        try:
            zone = ZoneInfo(self.time_zone)
        except (ZoneInfoNotFoundError, ValueError):
            errors["time_zone"] = f"{self.time_zone!r} is no time zone; e.g. Europe/Berlin"
            zone = ZoneInfo("UTC")
        if self.cron:
            try:
                next(CronSim(self.cron, datetime.now(zone)))
            except (CronSimError, StopIteration):
                errors["cron"] = f"{self.cron!r} is no cron expression; e.g. 0 8 * * 1-5"
        if errors:
            raise ValidationError(errors)


class Slot(models.Model):
    """One time at which a schedule was to run, and what became of it."""

    class Outcome(models.TextChoices):
        RAN = "ran"
        MERGED = "merged"
        SKIPPED = "skipped"
        MISSED = "missed"

    schedule = models.ForeignKey(Schedule, models.CASCADE, related_name="slots", db_index=False)
    at = models.DateTimeField()
    outcome = models.TextField(choices=Outcome.choices)
    reason = models.TextField(default="", blank=True)
    job = models.ForeignKey(
        "jobs.Job",
        models.DO_NOTHING,
        null=True,
        blank=True,
        related_name="+",
        db_constraint=False,
        db_index=False,
    )
    recorded_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["schedule", "at"], name="slot_once")]
        indexes = [models.Index(fields=["recorded_at"], name="slot_recorded_at")]

    def __str__(self) -> str:
        return f"{self.schedule_id} at {self.at:%Y-%m-%d %H:%M:%S}: {self.outcome}"
