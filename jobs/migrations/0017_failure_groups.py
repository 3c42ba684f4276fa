import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

LOCK_LIMIT = "SET LOCAL lock_timeout = '5s'"


class Migration(migrations.Migration):
    """Two new tables, and a column that may be null: no row is written."""

    dependencies = [
        ("tailrace_jobs", "0016_flows"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RunSQL(LOCK_LIMIT, migrations.RunSQL.noop),
        migrations.CreateModel(
            name="FailureGroup",
            fields=[
                (
                    "id",
                    models.BigIntegerField(
                        help_text="made from what its failures have in common",
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("handler", models.TextField()),
                ("error_class", models.TextField(blank=True)),
                (
                    "frame",
                    models.TextField(
                        blank=True, help_text="where in our code the error was raised"
                    ),
                ),
                (
                    "message",
                    models.TextField(
                        blank=True,
                        help_text="without numbers, ids, quotes and addresses, which differ",
                    ),
                ),
                (
                    "failures",
                    models.BigIntegerField(
                        default=0,
                        help_text="attempts that failed so, with those that were tried again",
                    ),
                ),
                (
                    "first_seen_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "last_seen_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "silenced_until",
                    models.DateTimeField(
                        blank=True,
                        help_text="until then it raises no alert and is counted apart; UTC",
                        null=True,
                    ),
                ),
                ("note", models.TextField(blank=True, default="", max_length=4000)),
                (
                    "assignee",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        help_text="who looks after it",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "failure",
                "indexes": [
                    models.Index(fields=["last_seen_at"], name="tailrace_failure_last_seen"),
                    models.Index(fields=["first_seen_at"], name="tailrace_failure_first_seen"),
                    models.Index(fields=["failures"], name="tailrace_failure_count"),
                    models.Index(
                        fields=["handler", "last_seen_at"], name="tailrace_failure_of_handler"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="FailureHour",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("hour", models.DateTimeField()),
                ("failures", models.PositiveIntegerField(default=0)),
                (
                    "group",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="hours",
                        to="tailrace_jobs.failuregroup",
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        fields=["group", "hour"], name="tailrace_failures_per_hour"
                    )
                ],
            },
        ),
        migrations.AddField(
            "job",
            "failure_group",
            models.ForeignKey(
                blank=True,
                db_constraint=False,
                db_index=False,
                help_text="of its last attempt that failed",
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="jobs",
                to="tailrace_jobs.failuregroup",
            ),
        ),
        migrations.RunSQL(migrations.RunSQL.noop, LOCK_LIMIT),
    ]
