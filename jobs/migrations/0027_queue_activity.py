import django.db.models.functions.datetime
from django.db import migrations, models

# The old columns stay for one release, with defaults, so that workers of the version before run on
# beside newer ones: each side has its own flags and tokens, and the tick wakes what the other side
# takes for awake. A copied flag could be one whose message is consumed already.
COPY = """
SET LOCAL lock_timeout = '5s';
ALTER TABLE tailrace_jobs_queueactivity SET (fillfactor = 20, autovacuum_vacuum_threshold = 200,
  autovacuum_vacuum_scale_factor = 0);
INSERT INTO tailrace_jobs_queueactivity (name, slice, awake, drained_at, resends, tokens, tokens_at)
SELECT name, 0, false, drained_at, 0, tokens, tokens_at FROM tailrace_jobs_queue;
ALTER TABLE tailrace_jobs_queue ALTER COLUMN awake SET DEFAULT false,
  ALTER COLUMN resends SET DEFAULT 0, ALTER COLUMN tokens SET DEFAULT 0;
"""
COPY_BACK = """
SET LOCAL lock_timeout = '5s';
UPDATE tailrace_jobs_queue q SET awake = false, drained_at = a.drained_at, resends = 0, tokens = a.tokens,
  tokens_at = a.tokens_at
FROM tailrace_jobs_queueactivity a WHERE a.name = q.name;
ALTER TABLE tailrace_jobs_queue ALTER COLUMN awake DROP DEFAULT, ALTER COLUMN resends DROP DEFAULT,
  ALTER COLUMN tokens DROP DEFAULT;
"""
MOVED = ("awake", "awake_at", "drained_at", "resends", "tokens", "tokens_at")


class Migration(migrations.Migration):
    """What changes with each wake-up and each drain leaves the table of queues."""

    dependencies = [("tailrace_jobs", "0026_renewals_write_no_index")]

    operations = [
        migrations.CreateModel(
            name="QueueActivity",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "name",
                        "slice",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("name", models.TextField(help_text="of the queue")),
                (
                    "slice",
                    models.BigIntegerField(
                        default=0,
                        help_text=(
                            "moves on every few seconds, so that the newest version is found soon"
                        ),
                    ),
                ),
                (
                    "awake",
                    models.BooleanField(
                        default=False, help_text="a message is out, no drain has begun"
                    ),
                ),
                ("awake_at", models.DateTimeField(null=True)),
                ("drained_at", models.DateTimeField(null=True)),
                (
                    "resends",
                    models.SmallIntegerField(default=0, help_text="messages since the last drain"),
                ),
                ("tokens", models.FloatField(default=0)),
                (
                    "tokens_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
            ],
            options={"default_permissions": ()},
        ),
        migrations.RunSQL(COPY, COPY_BACK),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RemoveField(model_name="queue", name=name) for name in MOVED
            ]
        ),
    ]
