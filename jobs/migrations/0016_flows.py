from django.db import migrations, models
from django.db.models import Q

CREATE_INDEX = """
CREATE INDEX CONCURRENTLY IF NOT EXISTS tailrace_job_after ON tailrace_jobs_job (after_id)
WHERE after_id IS NOT NULL
"""
DROP_INDEX = "DROP INDEX CONCURRENTLY IF EXISTS tailrace_job_after"


class Migration(migrations.Migration):
    """An index of the few jobs that wait for others, made beside the writers."""

    atomic = False
    dependencies = [("tailrace_jobs", "0015_schedule_retired")]

    operations = [
        migrations.SeparateDatabaseAndState(
            [migrations.RunSQL(CREATE_INDEX, DROP_INDEX)],
            [
                migrations.AddIndex(
                    "job",
                    models.Index(
                        fields=["after"],
                        name="tailrace_job_after",
                        condition=Q(after__isnull=False),
                    ),
                ),
            ],
        ),
    ]
