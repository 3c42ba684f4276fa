"""The names and descriptions of fields. It changes nothing in the database."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tailrace_builds", "0003_hidden_projects"),
    ]

    operations = [
        migrations.AlterField(
            model_name="project",
            name="told_by",
            field=models.BigIntegerField(
                db_column="told_by", default=0, help_text="id of the event that said so"
            ),
        ),
        migrations.RenameField(model_name="project", old_name="told_by", new_name="last_event"),
        migrations.AlterModelOptions(
            name="watch",
            options={
                "permissions": [
                    ("moderate", "Can moderate: is notified about reports and appeals")
                ],
                "verbose_name_plural": "watches",
            },
        ),
        migrations.AlterField(
            model_name="binary",
            name="modified_at",
            field=models.DateTimeField(
                blank=True, help_text="when other content replaced it", null=True
            ),
        ),
        migrations.AlterField(
            model_name="binary",
            name="project",
            field=models.TextField(help_text="the project that released it"),
        ),
        migrations.AlterField(
            model_name="binary",
            name="source_project",
            field=models.TextField(blank=True, default="", help_text="the project that built it"),
        ),
        migrations.AlterField(
            model_name="package",
            name="error",
            field=models.TextField(
                blank=True, default="", help_text="what is wrong with the sources"
            ),
        ),
        migrations.AlterField(
            model_name="package",
            name="gone_at",
            field=models.DateTimeField(
                blank=True, help_text="when it was found to be deleted", null=True
            ),
        ),
        migrations.AlterField(
            model_name="package",
            name="verifymd5",
            field=models.TextField(
                blank=True, default="", help_text="checksum of the sources with links expanded"
            ),
        ),
        migrations.AlterField(
            model_name="poller",
            name="end_seen",
            field=models.BigIntegerField(
                blank=True, help_text="the last known end of the log", null=True
            ),
        ),
        migrations.AlterField(
            model_name="poller",
            name="epoch",
            field=models.PositiveIntegerField(
                default=1, help_text="rises each time the log is reset"
            ),
        ),
        migrations.AlterField(
            model_name="poller",
            name="last_event_at",
            field=models.DateTimeField(
                blank=True, help_text="time of the last event read", null=True
            ),
        ),
        migrations.AlterField(
            model_name="poller",
            name="lease_holder",
            field=models.TextField(
                blank=True, default="", help_text="the job and claim that read the log now"
            ),
        ),
        migrations.AlterField(
            model_name="poller",
            name="name",
            field=models.TextField(help_text="the backend's name in OBS_BACKEND_URL", unique=True),
        ),
        migrations.AlterField(
            model_name="poller",
            name="next_number",
            field=models.BigIntegerField(
                blank=True, help_text="the next number to read; empty: never read", null=True
            ),
        ),
        migrations.AlterField(
            model_name="poller",
            name="polled_at",
            field=models.DateTimeField(
                blank=True, help_text="time of the last successful read", null=True
            ),
        ),
        migrations.AlterField(
            model_name="project",
            name="backend",
            field=models.TextField(blank=True, help_text="empty: from a source without a name"),
        ),
        migrations.AlterField(
            model_name="project",
            name="hidden",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="only those who hold a role in it may read it",
            ),
        ),
        migrations.AlterField(
            model_name="project",
            name="last_event",
            field=models.BigIntegerField(
                db_column="told_by",
                default=0,
                help_text="id of the latest event that created or deleted it",
            ),
        ),
    ]
