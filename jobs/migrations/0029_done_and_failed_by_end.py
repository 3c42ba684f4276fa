from django.db import migrations, models
from django.db.models import Q


def concurrently(name: str, condition: str) -> tuple[str, str]:
    """Return statements that make an index of the ends of jobs beside the writers, and drop it."""
    return (
        f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON tailrace_jobs_job (finished_at)"
        f" WHERE {condition}",
        f"DROP INDEX CONCURRENTLY IF EXISTS {name}",
    )


class Migration(migrations.Migration):
    """Failed jobs apart from the others by the time of their end: they stay longer."""

    atomic = False
    dependencies = [("tailrace_jobs", "0028_done_on")]

    operations = [
        migrations.RunSQL(
            "ALTER TABLE tailrace_jobs_job VALIDATE CONSTRAINT tailrace_job_is_live",
            migrations.RunSQL.noop,
        ),
        migrations.SeparateDatabaseAndState(
            [
                migrations.RunSQL(
                    *concurrently(
                        "tailrace_job_done", "finished_at IS NOT NULL AND state <> 'failed'"
                    )
                ),
                migrations.RunSQL(*concurrently("tailrace_job_failed_at", "state = 'failed'")),
                migrations.RunSQL(
                    *reversed(concurrently("job_finished", "finished_at IS NOT NULL"))
                ),
            ],
            [
                migrations.AddIndex(
                    "job",
                    models.Index(
                        fields=["finished_at"],
                        name="tailrace_job_done",
                        condition=Q(finished_at__isnull=False) & ~Q(state="failed"),
                    ),
                ),
                migrations.AddIndex(
                    "job",
                    models.Index(
                        fields=["finished_at"],
                        name="tailrace_job_failed_at",
                        condition=Q(state="failed"),
                    ),
                ),
                migrations.RemoveIndex("job", "job_finished"),
            ],
        ),
    ]
