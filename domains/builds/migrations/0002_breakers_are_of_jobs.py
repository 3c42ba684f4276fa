from django.db import migrations


class Migration(migrations.Migration):
    """Breakers went to jobs. The table stays for workers of the release before, which run on
    beside a deploy; the release after next drops it."""

    dependencies = [
        ("tailrace_builds", "0001_initial"),
        ("tailrace_jobs", "0003_breakers_and_buckets"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(state_operations=[migrations.DeleteModel("Breaker")]),
    ]
