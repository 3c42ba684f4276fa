from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.models.functions import Cast

import tailrace.events.models

XACT = models.BigIntegerField(
    null=True,
    editable=False,
    db_default=Cast(
        Cast(tailrace.events.models.CurrentTransaction(), models.TextField()),
        models.BigIntegerField(),
    ),
    help_text="the transaction that recorded it; none: long ago",
)


class Migration(migrations.Migration):
    """A column without a default needs no rewrite; the default is for the rows to come."""

    atomic = False

    dependencies = [("tailrace_events", "0001_initial")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.AddField("event", "xact", XACT)],
            database_operations=[
                migrations.RunSQL(
                    """
                    BEGIN;
                    SET LOCAL lock_timeout = '5s';
                    ALTER TABLE tailrace_events_event ADD COLUMN IF NOT EXISTS xact bigint;
                    ALTER TABLE tailrace_events_event
                      ALTER COLUMN xact SET DEFAULT (pg_current_xact_id()::text)::bigint;
                    COMMIT;
                    """,
                    """
                    BEGIN;
                    SET LOCAL lock_timeout = '5s';
                    ALTER TABLE tailrace_events_event DROP COLUMN IF EXISTS xact;
                    COMMIT;
                    """,
                )
            ],
        ),
        AddIndexConcurrently(
            "event", models.Index(fields=["xact", "id"], name="tailrace_event_committed")
        ),
    ]
