import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Drop the index of slots by schedule: the one of `tailrace_slot_once` begins with the schedule, too."""

    atomic = False
    dependencies = [("tailrace_jobs", "0009_sweep_runs_are_counted")]

    operations = [
        migrations.SeparateDatabaseAndState(
            [
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS jobs_slot_schedule_id_d825ebd7",
                    "CREATE INDEX CONCURRENTLY IF NOT EXISTS jobs_slot_schedule_id_d825ebd7"
                    " ON tailrace_jobs_slot (schedule_id)",
                )
            ],
            [
                migrations.AlterField(
                    "slot",
                    "schedule",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="slots",
                        to="tailrace_jobs.schedule",
                    ),
                )
            ],
        )
    ]
