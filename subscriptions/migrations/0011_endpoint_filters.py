from django.db import migrations, models

LOCK_LIMIT = "SET LOCAL lock_timeout = '5s'"


class Migration(migrations.Migration):
    """Two columns with defaults of the database: no row is written."""

    dependencies = [("tailrace_subscriptions", "0010_phone_since")]

    operations = [
        migrations.RunSQL(LOCK_LIMIT, migrations.RunSQL.noop),
        migrations.AddField(
            model_name="endpoint",
            name="event_types",
            field=models.JSONField(
                blank=True,
                db_default=[],
                default=list,
                help_text=(
                    "the event types and families that it gets; empty: all of the subscriptions"
                ),
            ),
        ),
        migrations.AddField(
            model_name="endpoint",
            name="subject_pattern",
            field=models.TextField(
                blank=True,
                db_default="",
                default="",
                help_text=(
                    "only these subjects, e.g. devel:*, where * matches any text; empty: all"
                ),
            ),
        ),
        migrations.RunSQL(migrations.RunSQL.noop, LOCK_LIMIT),
    ]
