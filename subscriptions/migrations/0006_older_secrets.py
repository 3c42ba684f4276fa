from django.db import migrations, models

LOCK_LIMIT = "SET LOCAL lock_timeout = '5s'"


class Migration(migrations.Migration):
    """A constant default: no row is written."""

    dependencies = [("tailrace_subscriptions", "0005_events_of_tokens")]

    operations = [
        migrations.RunSQL(LOCK_LIMIT, migrations.RunSQL.noop),
        migrations.AddField(
            model_name="endpoint",
            name="older_secrets",
            field=models.JSONField(
                db_default=[],
                default=list,
                editable=False,
                help_text="those before the old one that still sign: encrypted, and until when",
            ),
        ),
        migrations.RunSQL(migrations.RunSQL.noop, LOCK_LIMIT),
    ]
