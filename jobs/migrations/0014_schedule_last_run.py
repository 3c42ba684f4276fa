from django.db import migrations, models


class Migration(migrations.Migration):
    """A column that may be null: no row is written."""

    dependencies = [("tailrace_jobs", "0013_request_keys")]

    operations = [
        migrations.RunSQL("SET LOCAL lock_timeout = '5s'", migrations.RunSQL.noop),
        migrations.AddField(
            "schedule",
            "last_run_at",
            models.DateTimeField(
                editable=False,
                help_text="the last slot for which a job was created",
                null=True,
            ),
        ),
    ]
