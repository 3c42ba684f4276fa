import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

LOCK_LIMIT = "SET LOCAL lock_timeout = '5s'"


class Migration(migrations.Migration):
    """Two new tables; a foreign key locks the users for a moment."""

    dependencies = [
        ("tailrace_jobs", "0021_copies"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RunSQL(LOCK_LIMIT, migrations.RunSQL.noop),
        migrations.CreateModel(
            name="Replay",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("what", models.TextField(help_text="the filter, or the jobs that were chosen")),
                ("jobs", models.PositiveIntegerField(default=0)),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("undone_at", models.DateTimeField(null=True)),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="ReplayedJob",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("before", models.JSONField(help_text="the columns that a replay changes")),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
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
                (
                    "replay",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="replayed",
                        to="tailrace_jobs.replay",
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("replay", "job"), name="tailrace_job_replayed_once"
                    )
                ],
            },
        ),
        migrations.RunSQL(migrations.RunSQL.noop, LOCK_LIMIT),
    ]
