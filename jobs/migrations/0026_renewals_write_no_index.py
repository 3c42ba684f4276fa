from django.db import migrations, models
from django.db.models import Q

RUNNING = "ON tailrace_jobs_job (handler, lane) WHERE state = 'running'"
LEASE = "ON tailrace_jobs_job (lease_until, handler) WHERE state = 'running'"
LANE_BUSY = "ON tailrace_jobs_job (handler, lane) WHERE state = 'running' AND NOT (lane = '')"


def drop(name: str) -> str:
    """The statement that drops an index beside the writers."""
    return f"DROP INDEX CONCURRENTLY IF EXISTS {name}"


def create(name: str, what: str) -> list[str]:
    """The statements that make an index beside the writers. What a migration that was interrupted
    has left is not valid, and is made anew."""
    return [drop(name), f"CREATE INDEX CONCURRENTLY {name} {what}"]


class Migration(migrations.Migration):
    """The running jobs are found by an index of what does not change while they run, and pages of
    jobs keep room for a further version of their rows: the renewal of a lease is a HOT update."""

    atomic = False
    dependencies = [("tailrace_jobs", "0025_change_job_payload")]

    operations = [
        migrations.SeparateDatabaseAndState(
            [
                migrations.RunSQL(
                    create("tailrace_job_running", RUNNING), drop("tailrace_job_running")
                ),
                migrations.RunSQL(drop("job_lease"), create("job_lease", LEASE)),
                migrations.RunSQL(drop("job_lane_busy"), create("job_lane_busy", LANE_BUSY)),
            ],
            [
                migrations.AddIndex(
                    "job",
                    models.Index(
                        fields=["handler", "lane"],
                        name="tailrace_job_running",
                        condition=Q(state="running"),
                    ),
                ),
                migrations.RemoveIndex("job", "job_lease"),
                migrations.RemoveIndex("job", "job_lane_busy"),
            ],
        ),
        # Of new pages alone: nothing is rewritten.
        migrations.RunSQL(
            """
            BEGIN;
            SET LOCAL lock_timeout = '5s';
            ALTER TABLE tailrace_jobs_job SET (fillfactor = 85);
            COMMIT;
            """,
            """
            BEGIN;
            SET LOCAL lock_timeout = '5s';
            ALTER TABLE tailrace_jobs_job RESET (fillfactor);
            COMMIT;
            """,
        ),
    ]
