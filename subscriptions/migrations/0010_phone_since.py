from django.db import migrations, models

LOCK_LIMIT = "SET LOCAL lock_timeout = '5s'"


class Migration(migrations.Migration):
    """A column without a default: no row is written."""

    dependencies = [("tailrace_subscriptions", "0009_plan_table")]

    operations = [
        migrations.RunSQL(LOCK_LIMIT, migrations.RunSQL.noop),
        migrations.AddField(
            model_name="preferences",
            name="phone_since",
            field=models.DateTimeField(
                editable=False,
                help_text="when the number was entered; empty: long ago",
                null=True,
            ),
        ),
        migrations.RunSQL(migrations.RunSQL.noop, LOCK_LIMIT),
    ]
