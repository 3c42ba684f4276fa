import django.contrib.postgres.fields
from django.db import migrations, models

LOCK_LIMIT = "SET LOCAL lock_timeout = '5s'"


class Migration(migrations.Migration):
    """Constant defaults: no row is written. Tokens that are there may record no events."""

    dependencies = [("tailrace_subscriptions", "0004_help_texts")]

    operations = [
        migrations.RunSQL(LOCK_LIMIT, migrations.RunSQL.noop),
        migrations.AddField(
            model_name="apitoken",
            name="event_types",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.TextField(),
                blank=True,
                db_default=[],
                default=list,
                help_text="event types and families that it may record with the scope events:write",
                size=None,
            ),
        ),
        migrations.AddField(
            model_name="apitoken",
            name="event_source",
            field=models.TextField(
                blank=True,
                db_default="",
                default="",
                help_text="the source of the events that it records; it has no other",
            ),
        ),
        migrations.RunSQL(migrations.RunSQL.noop, LOCK_LIMIT),
    ]
