from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models import Func, Q
from django.db.models.functions import Cast, Now


class CurrentTransaction(Func):
    """The number of the present transaction, which never wraps around (64 bits)."""

    function = "pg_current_xact_id"
    output_field = models.TextField()


class EventQuerySet(models.QuerySet["Event"]):
    def flagged(self) -> "EventQuerySet":
        """Events with a problem that no operator has acknowledged yet."""
        return self.filter(acknowledged_at=None).exclude(problem="")


class Event(models.Model):
    """What happened. Append-only; its state is derived from its jobs."""

    source = models.TextField(help_text="where the event comes from, e.g. obs:main:1")
    source_id = models.TextField(help_text="the id of the event there")
    type = models.TextField()
    schema_version = models.PositiveSmallIntegerField(default=1)
    subject = models.TextField(default="", blank=True, help_text="what it is about")
    payload = models.JSONField(default=dict)
    occurred_at = models.DateTimeField(db_default=Now(), help_text="when it happened")
    recorded_at = models.DateTimeField(db_default=Now(), help_text="when it was recorded here")
    actor = models.TextField(default="", blank=True, help_text="who did it")
    # No database constraint: a check per row would cost each publish more than the row itself,
    # and pruning keeps a cause for as long as its effects are kept.
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
    # By id alone a reader would pass over an event whose transaction commits late. By (xact, id),
    # up to the oldest transaction that still runs, nothing ever comes in behind the reader.
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
