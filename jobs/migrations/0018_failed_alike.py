from django.db import migrations, models
from django.db.models import Q

CREATE_INDEX = """
CREATE INDEX CONCURRENTLY IF NOT EXISTS tailrace_job_failed_alike ON tailrace_jobs_job (failure_group_id, id)
WHERE state = 'failed'
"""
DROP_INDEX = "DROP INDEX CONCURRENTLY IF EXISTS tailrace_job_failed_alike"


class Migration(migrations.Migration):
    """An index of the failed jobs by their group, made beside the writers."""

    atomic = False
    dependencies = [("tailrace_jobs", "0017_failure_groups")]

    operations = [
        migrations.SeparateDatabaseAndState(
            [migrations.RunSQL(CREATE_INDEX, DROP_INDEX)],
            [
                migrations.AddIndex(
                    "job",
                    models.Index(
                        fields=["failure_group", "id"],
                        name="tailrace_job_failed_alike",
                        condition=Q(state="failed"),
                    ),
                ),
            ],
        ),
    ]
