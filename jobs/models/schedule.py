from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from tailrace.jobs.models import timing

OF_CODE = "code"
"""The owner of the schedules that handlers declare."""
LIMITS = {"name": 600, "routing_key": 600, "owner": 600, "cron": 200}
"""The maximum number of characters of each field. An index limits most of them."""


class ScheduleQuerySet(models.QuerySet["Schedule"]):
    def of_code(self) -> "ScheduleQuerySet":
        """Return the schedules that handlers declare."""
        return self.filter(owner=OF_CODE)

    def retired(self) -> "ScheduleQuerySet":
        """Return the schedules that handlers had declared, but no longer at the last migrate."""
        return self.of_code().filter(retired_at__isnull=False)


class Schedule(models.Model):
    """The times at which jobs of a handler are created: by an interval or a cron expression."""

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
    spread = models.FloatField(
        default=0,
        db_default=0,
        help_text="seconds: each slot is later by a fixed part of them, which the name decides",
    )
    owner = models.TextField(
        default="",
        blank=True,
        help_text="code, or the user who created it",
    )
    catch_up = models.TextField(choices=CatchUp.choices, default=CatchUp.LATEST)
    enabled = models.BooleanField(default=True)
    next_run_at = models.DateTimeField(db_default=Now())
    last_run_at = models.DateTimeField(
        null=True, editable=False, help_text="the last slot for which a job was created"
    )

    retired_at = models.DateTimeField(
        null=True,
        editable=False,
        help_text="since when it is disabled because the code no longer declares it",
    )

    objects = ScheduleQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(
                fields=["next_run_at"], name="tailrace_schedule_next", condition=Q(enabled=True)
            ),
            # With this operator class the index finds prefixes in any collation of the database.
            models.Index(
                fields=["owner"], name="tailrace_schedule_owner", opclasses=["text_pattern_ops"]
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(every_seconds__isnull=False, every_seconds__gt=0, cron="")
                | (Q(every_seconds=None) & ~Q(cron="")),
                name="tailrace_schedule_by_interval_or_cron",
                violation_error_message="give either every_seconds (above 0) or cron",
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def offset(self) -> timedelta:
        """The delay of each slot after its nominal time."""
        return timing.offset(self.name, self.spread)

    def slots_after(self, at: datetime) -> Iterator[datetime]:
        """Yield the slots after the slot `at`, in UTC, without end. Raises ValueError or
        OverflowError if there are no more slots or the schedule is invalid."""
        offset = self.offset
        for nominal in timing.nominals_after(at - offset, *self._timing()):
            yield nominal + offset

    def slot_after(self, at: datetime) -> datetime:
        """Return the first slot after the slot `at`, in UTC. Raises as `slots_after`."""
        return timing.nominal_after(at - self.offset, *self._timing()) + self.offset

    def first_slot(self, now: datetime, before: "Schedule | None" = None) -> datetime:
        """Return the next slot of a new schedule, or of one that was like `before` until now.

        The timing that is valid at the nominal time of a slot decides about the slot. A slot whose
        nominal time has come is kept, with the new offset; later slots follow the new timing. So no
        slot is lost, and no slot runs twice. A changed interval begins at the old next slot, if
        that is earlier than the first slot of the new interval.
        """
        every = self.every_seconds
        nominal = now if before is None and every is not None else None
        if before is not None:
            pending = before.next_run_at - before.offset
            if pending <= now:
                nominal = pending
            elif every is not None:
                nominal = min(pending, timing.nominal_after(now, *self._timing()))
        if nominal is None:
            nominal = timing.nominal_after(now, *self._timing())
        return nominal + self.offset

    def _timing(self) -> tuple[float | None, str, str]:
        return self.every_seconds, self.cron, self.time_zone

    def clean(self) -> None:
        errors: dict[str, Any] = dict(timing.problems(*self._timing(), self.spread))
        for field, limit in LIMITS.items():
            if (length := len(getattr(self, field))) > limit:
                errors[field] = f"has {length} characters; at most {limit} are allowed"
        if errors:
            raise ValidationError(errors)


class Slot(models.Model):
    """One time at which a schedule was to run, and the outcome."""

    class Outcome(models.TextChoices):
        RAN = "ran"
        MERGED = "merged"
        SKIPPED = "skipped"
        MISSED = "missed"

    # No database constraint: slots of a deleted schedule stay until they are pruned.
    schedule = models.ForeignKey(
        Schedule, models.DO_NOTHING, related_name="slots", db_constraint=False, db_index=False
    )
    at = models.DateTimeField()
    outcome = models.TextField(choices=Outcome.choices)
    reason = models.TextField(default="", blank=True)
    job = models.ForeignKey(
        "tailrace_jobs.Job",
        models.DO_NOTHING,
        null=True,
        blank=True,
        related_name="+",
        db_constraint=False,
        db_index=False,
    )
    recorded_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["schedule", "at"], name="tailrace_slot_once")
        ]
        indexes = [models.Index(fields=["recorded_at"], name="tailrace_slot_recorded_at")]

    def __str__(self) -> str:
        return f"{self.schedule_id} at {self.at:%Y-%m-%d %H:%M:%S} UTC: {self.outcome}"
