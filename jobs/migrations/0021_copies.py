from django.db import migrations, models
from django.db.models import Q

CREATE_INDEX = """
CREATE INDEX CONCURRENTLY IF NOT EXISTS tailrace_job_copies ON tailrace_jobs_job (copy_of)
WHERE copy_of IS NOT NULL
"""
DROP_INDEX = "DROP INDEX CONCURRENTLY IF EXISTS tailrace_job_copies"


class Migration(migrations.Migration):
    """An index of the few jobs that were run again, made beside the writers."""

    atomic = False
    dependencies = [("tailrace_jobs", "0020_logs_and_periods")]

    operations = [
        migrations.SeparateDatabaseAndState(
            [migrations.RunSQL(CREATE_INDEX, DROP_INDEX)],
            [
                migrations.AddIndex(
                    "job",
                    models.Index(
                        fields=["copy_of"],
                        name="tailrace_job_copies",
                        condition=Q(copy_of__isnull=False),
                    ),
                ),
            ],
        ),
    ]
