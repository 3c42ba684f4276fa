from django.db import migrations, models


class Migration(migrations.Migration):
    """A column with a constant default: no row is written."""

    dependencies = [("tailrace_jobs", "0018_failed_alike")]

    operations = [
        migrations.RunSQL("SET LOCAL lock_timeout = '5s'", migrations.RunSQL.noop),
        migrations.AddField(
            "pulse",
            "facts",
            models.JSONField(
                db_default=models.Value({}, models.JSONField()),
                default=dict,
                help_text="of a worker: host, processes, memory and version of the code",
            ),
        ),
        migrations.AlterField(
            "pulse",
            "name",
            models.TextField(
                help_text="worker:<node name> <host>:<process>, or tick, sweep or prune",
                primary_key=True,
                serialize=False,
            ),
        ),
    ]
