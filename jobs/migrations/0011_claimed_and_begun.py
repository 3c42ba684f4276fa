from django.db import migrations, models

LOCK_LIMIT = "SET LOCAL lock_timeout = '5s'"


class Migration(migrations.Migration):
    """A constant default: no row is written or read."""

    dependencies = [("tailrace_jobs", "0010_slots_one_index")]

    operations = [
        migrations.RunSQL(LOCK_LIMIT, migrations.RunSQL.noop),
        migrations.AddField(
            model_name="job",
            name="begun",
            field=models.BooleanField(
                db_default=True,
                default=True,
                help_text="of a running job: its call has begun; if not, it waits for others of its"
                " claim",
            ),
        ),
        migrations.AlterField(
            model_name="attempt",
            name="outcome",
            field=models.TextField(
                choices=[
                    ("retried", "Retried"),
                    ("failed", "Failed"),
                    ("snoozed", "Snoozed"),
                    ("lost", "Lost"),
                    ("interrupted", "Interrupted"),
                ]
            ),
        ),
        migrations.RunSQL(migrations.RunSQL.noop, LOCK_LIMIT),
    ]
