from django.db import migrations, models

LOCK_LIMIT = "SET LOCAL lock_timeout = '5s'"


class Migration(migrations.Migration):
    """The day of a job's end, and a promise that no row has one yet, which is checked later."""

    dependencies = [("tailrace_jobs", "0027_queue_activity")]

    operations = [
        migrations.RunSQL(LOCK_LIMIT, migrations.RunSQL.noop),
        migrations.AddField(
            "job",
            "done_on",
            models.DateField(
                null=True,
                blank=True,
                editable=False,
                help_text="the day (UTC) whose partition of finished jobs has it; empty: it is "
                "among the live ones",
            ),
        ),
        migrations.RunSQL(
            "ALTER TABLE tailrace_jobs_job ADD CONSTRAINT tailrace_job_is_live CHECK (done_on IS NULL) NOT VALID",
            "ALTER TABLE tailrace_jobs_job DROP CONSTRAINT tailrace_job_is_live",
        ),
        migrations.RunSQL(migrations.RunSQL.noop, LOCK_LIMIT),
    ]
