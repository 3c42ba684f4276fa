import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Drop the index of attempts by job: the one of the constraint begins with the job, too."""

    atomic = False
    dependencies = [("tailrace_jobs", "0005_suspects_and_counted_snoozes")]

    operations = [
        migrations.SeparateDatabaseAndState(
            [
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS jobs_attempt_job_id_b587cf59",
                    "CREATE INDEX CONCURRENTLY IF NOT EXISTS jobs_attempt_job_id_b587cf59"
                    " ON tailrace_jobs_attempt (job_id)",
                )
            ],
            [
                migrations.AlterField(
                    "attempt",
                    "job",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="attempts",
                        to="tailrace_jobs.job",
                    ),
                )
            ],
        )
    ]
