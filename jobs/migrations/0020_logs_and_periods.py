import django.db.models.deletion
from django.db import migrations, models

ID = models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")
COUNT = models.PositiveIntegerField(default=0)


class Migration(migrations.Migration):
    """New tables, and a column that may be null: no row is written."""

    dependencies = [("tailrace_jobs", "0019_pulse_facts")]

    operations = [
        migrations.RunSQL("SET LOCAL lock_timeout = '5s'", migrations.RunSQL.noop),
        migrations.AddField(
            "job",
            "copy_of",
            models.BigIntegerField(
                blank=True, help_text="the job that was run again, with another payload", null=True
            ),
        ),
        migrations.CreateModel(
            "LogLines",
            [
                ("id", ID),
                ("claim_no", models.PositiveIntegerField()),
                (
                    "first",
                    models.PositiveIntegerField(
                        help_text="number of the first line; the claim's first is 1"
                    ),
                ),
                ("last", models.PositiveIntegerField()),
                ("lines", models.JSONField(help_text="a list of number, time and text")),
                (
                    "job",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="tailrace_jobs.job",
                    ),
                ),
            ],
            {
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("job", "claim_no", "first"), name="tailrace_log_lines_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            "QueuePeriod",
            [
                ("id", ID),
                ("queue", models.TextField()),
                ("seconds", models.PositiveIntegerField(help_text="length: 60, 600 or 3600")),
                ("at", models.DateTimeField(help_text="when it began")),
                ("completed", COUNT),
                ("retried", COUNT),
                ("failed", COUNT),
                ("busy_ms", models.PositiveBigIntegerField(default=0)),
                (
                    "wait",
                    models.JSONField(
                        default=dict, help_text="jobs by class of their time from due to claim"
                    ),
                ),
                (
                    "run",
                    models.JSONField(
                        default=dict, help_text="jobs by class of their time from claim to end"
                    ),
                ),
            ],
            {
                "default_permissions": (),
                "indexes": [
                    models.Index(fields=["seconds", "at"], name="tailrace_queue_period_age")
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("queue", "seconds", "at"), name="tailrace_queue_period_once"
                    )
                ],
            },
        ),
    ]
