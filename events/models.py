from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models import Func, Q
from django.db.models.functions import Cast, Now


class CurrentTransaction(Func):
    """The id of the current transaction as a number of 64 bits, which never wraps around."""

    function = "pg_current_xact_id"
    output_field = models.TextField()


class EventQuerySet(models.QuerySet["Event"]):
    def flagged(self) -> "EventQuerySet":
        """Return events with a problem that no operator has acknowledged yet."""
        return self.filter(acknowledged_at=None).exclude(problem="")


class Event(models.Model):
    """A fact: something that happened. Append-only; its state is derived from its jobs."""

    source = models.TextField(help_text="where the event comes from, e.g. obs:main:1")
    source_id = models.TextField(help_text="the id of the event there")
    type = models.TextField()
    schema_version = models.PositiveSmallIntegerField(default=1)
    subject = models.TextField(default="", blank=True, help_text="what it is about")
    payload = models.JSONField(default=dict)
    occurred_at = models.DateTimeField(db_default=Now(), help_text="when it happened")
    recorded_at = models.DateTimeField(db_default=Now(), help_text="when it was recorded here")
    actor = models.TextField(default="", blank=True, help_text="who did it")
    # No database constraint: its check would cost `publish` more than the insert of the row, and
    # pruning keeps an event for as long as the events that it caused.
    cause = models.ForeignKey(
        "self",
        models.DO_NOTHING,
        null=True,
        blank=True,
        related_name="effects",
        db_constraint=False,
        db_index=False,
        help_text="the event whose handler published this one",
    )
    trace_parent = models.TextField(default="", blank=True)
    problem = models.TextField(default="", blank=True, help_text="what is wrong with it")
    acknowledged_at = models.DateTimeField(null=True, blank=True)
    # Readers that follow the order of ids would miss events of transactions that commit late.
    # Readers that follow (xact, id), up to the oldest running transaction, miss no event.
    xact = models.BigIntegerField(
        null=True,
        editable=False,
        db_default=Cast(Cast(CurrentTransaction(), models.TextField()), models.BigIntegerField()),
        help_text="the transaction that recorded it; empty: from before a restore",
    )

    objects = EventQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["source", "source_id"], name="tailrace_event_recorded_once"
            ),
        ]
        indexes = [
            models.Index(fields=["type", "id"], name="tailrace_event_type"),
            models.Index(
                fields=["subject", "id"],
                name="tailrace_event_subject",
                opclasses=["text_pattern_ops", "int8_ops"],
                condition=~Q(subject=""),
            ),
            BrinIndex(
                fields=["recorded_at"], name="tailrace_event_recorded_at", autosummarize=True
            ),
            models.Index(fields=["xact", "id"], name="tailrace_event_committed"),
            models.Index(
                fields=["cause"], name="tailrace_event_cause", condition=Q(cause__isnull=False)
            ),
            models.Index(
                fields=["id"],
                name="tailrace_event_flagged",
                condition=~Q(problem="") & Q(acknowledged_at=None),
            ),
        ]
        permissions = [
            ("view_payload", "Can view the payload of an event"),
            ("acknowledge_event", "Can acknowledge a flagged event"),
            ("view_hidden", "Can read events that are hidden, such as those of hidden projects"),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.id}"
