from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models

UNLOGGED = "ALTER TABLE tailrace_jobs_total SET UNLOGGED"


class Migration(migrations.Migration):
    """A table of counters; a crash of PostgreSQL empties it, and its writers wait for no disk."""

    dependencies = [("tailrace_jobs", "0022_replays")]

    operations = [
        migrations.CreateModel(
            name="Total",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "metric",
                        "name",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("metric", models.TextField()),
                ("name", models.TextField(help_text="of the queue, or of the event type")),
                ("numbers", ArrayField(base_field=models.FloatField(), size=None)),
            ],
            options={"default_permissions": ()},
        ),
        migrations.RunSQL(UNLOGGED, migrations.RunSQL.noop),
    ]
