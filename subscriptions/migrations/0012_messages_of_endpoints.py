from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models

# Of the jobs of webhooks alone, so that it costs those of other handlers nothing. It is the list
# of an endpoint's messages, the newest first, and of its recoveries.
CREATE = """
CREATE INDEX CONCURRENTLY IF NOT EXISTS tailrace_job_of_endpoint ON tailrace_jobs_job (lane, id DESC)
WHERE handler IN (
  'subscriptions.webhook', 'subscriptions.webhook_test', 'subscriptions.webhook_recovery')
"""
DROP = "DROP INDEX CONCURRENTLY IF EXISTS tailrace_job_of_endpoint"


class Migration(migrations.Migration):
    """The indexes of an endpoint's messages and of their tries, made beside the writers."""

    atomic = False
    run_before = [("tailrace_jobs", "0030_history_apart")]  # which divides the table
    dependencies = [
        ("tailrace_subscriptions", "0011_endpoint_filters"),
        ("tailrace_jobs", "0016_flows"),
    ]

    operations = [
        migrations.RunSQL(CREATE, DROP),
        AddIndexConcurrently(
            "delivery",
            models.Index(
                condition=models.Q(("job_id__isnull", False)),
                fields=["job_id", "id"],
                name="tailrace_delivery_of_job",
            ),
        ),
    ]
