from django.db import migrations, models


class Migration(migrations.Migration):
    """A column that may be null: no row is written."""

    dependencies = [("tailrace_jobs", "0014_schedule_last_run")]

    operations = [
        migrations.RunSQL("SET LOCAL lock_timeout = '5s'", migrations.RunSQL.noop),
        migrations.AddField(
            "schedule",
            "retired_at",
            models.DateTimeField(
                editable=False,
                help_text="since when it is disabled because the code no longer declares it",
                null=True,
            ),
        ),
    ]
