from django.db import migrations, models

LOCK_LIMIT = "SET LOCAL lock_timeout = '5s'"


class Migration(migrations.Migration):
    """A new table and a nullable column: no row is written or read."""

    dependencies = [("tailrace_builds", "0004_field_descriptions")]

    operations = [
        migrations.RunSQL(LOCK_LIMIT, migrations.RunSQL.noop),
        migrations.AddField(
            model_name="project",
            name="imported_at",
            field=models.DateTimeField(
                blank=True,
                help_text="when import_backend had read all of its packages",
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="package",
            name="refreshed_at",
            field=models.DateTimeField(
                blank=True, help_text="when the read of its metadata began", null=True
            ),
        ),
        migrations.AlterField(
            model_name="project",
            name="refreshed_at",
            field=models.DateTimeField(
                blank=True, help_text="when the read of its metadata began", null=True
            ),
        ),
        migrations.CreateModel(
            name="UnreadChange",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("backend", models.TextField()),
                ("project", models.TextField()),
                (
                    "package",
                    models.TextField(blank=True, default="", help_text="empty: the project's own"),
                ),
                (
                    "event_id",
                    models.BigIntegerField(help_text="id of the event that reported it"),
                ),
                ("recorded_at", models.DateTimeField()),
            ],
            options={
                "indexes": [
                    models.Index(
                        fields=["backend", "project", "package"], name="tailrace_unread_change_of"
                    ),
                    models.Index(fields=["recorded_at"], name="tailrace_unread_change_since"),
                ],
            },
        ),
    ]
