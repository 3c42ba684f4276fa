from django.contrib.postgres.indexes import BrinIndex
from django.db import migrations, models
from django.db.models import Q
from django.db.models.functions import Cast, Now

from tailrace.events.models import CurrentTransaction

ID = models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")


class Migration(migrations.Migration):
    """What happened. Append-only."""

    initial = True
    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Event",
            fields=[
                ("id", ID),
                (
                    "source",
                    models.TextField(help_text="where the event comes from, e.g. obs:main:1"),
                ),
                ("source_id", models.TextField(help_text="the id of the event there")),
                ("type", models.TextField()),
                ("schema_version", models.PositiveSmallIntegerField(default=1)),
                ("subject", models.TextField(blank=True, default="", help_text="what it is about")),
                ("payload", models.JSONField(default=dict)),
                (
                    "occurred_at",
                    models.DateTimeField(db_default=Now(), help_text="when it happened"),
                ),
                (
                    "recorded_at",
                    models.DateTimeField(db_default=Now(), help_text="when it was recorded here"),
                ),
                ("actor", models.TextField(blank=True, default="", help_text="who did it")),
                (
                    "cause",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        help_text="the event whose handler published this one",
                        null=True,
                        on_delete=models.DO_NOTHING,
                        related_name="effects",
                        to="tailrace_events.event",
                    ),
                ),
                ("trace_parent", models.TextField(blank=True, default="")),
                (
                    "problem",
                    models.TextField(blank=True, default="", help_text="what is wrong with it"),
                ),
                ("acknowledged_at", models.DateTimeField(blank=True, null=True)),
                (
                    "xact",
                    models.BigIntegerField(
                        db_default=Cast(
                            Cast(CurrentTransaction(), models.TextField()), models.BigIntegerField()
                        ),
                        editable=False,
                        help_text="the transaction that recorded it; empty: from before a restore",
                        null=True,
                    ),
                ),
            ],
            options={
                "permissions": [
                    ("view_payload", "Can view the payload of an event"),
                    ("acknowledge_event", "Can acknowledge a flagged event"),
                    (
                        "view_hidden",
                        "Can read events that are hidden, such as those of hidden projects",
                    ),
                ],
                "constraints": [
                    # A source may tell of a fact again: it is recorded once.
                    models.UniqueConstraint(
                        fields=["source", "source_id"], name="tailrace_event_recorded_once"
                    ),
                ],
                "indexes": [
                    # The events of a type along their ids: backfill, the list, the API.
                    models.Index(fields=["type", "id"], name="tailrace_event_type"),
                    # By the beginning of the subject, whatever the database's collation.
                    models.Index(
                        fields=["subject", "id"],
                        name="tailrace_event_subject",
                        condition=~Q(subject=""),
                        opclasses=["text_pattern_ops", "int8_ops"],
                    ),
                    # Events come in the order of their time: a few pages tell the whole table's ranges.
                    BrinIndex(
                        fields=["recorded_at"],
                        name="tailrace_event_recorded_at",
                        autosummarize=True,
                    ),
                    # The order in which readers follow: nothing comes in behind them, however late it commits.
                    models.Index(fields=["xact", "id"], name="tailrace_event_committed"),
                    # The effects of an event.
                    models.Index(
                        fields=["cause"],
                        name="tailrace_event_cause",
                        condition=Q(cause__isnull=False),
                    ),
                    # The few that have a problem and wait for an operator.
                    models.Index(
                        fields=["id"],
                        name="tailrace_event_flagged",
                        condition=~Q(problem="") & Q(acknowledged_at=None),
                    ),
                ],
            },
        ),
    ]
