from django.db import migrations

from tailrace.db.real_field import RealField

CALL_AFTER = RealField(
    null=True, blank=True, help_text="seconds from the claim until the call of the handler began"
)
CALL_TOOK = RealField(
    null=True, blank=True, help_text="seconds that the call took, with the other jobs of its batch"
)
LOCK_LIMIT = "SET LOCAL lock_timeout = '5s'"


class Migration(migrations.Migration):
    """When calls began within their claims, and how long they took. No row is rewritten."""

    dependencies = [("tailrace_jobs", "0030_history_apart")]

    operations = [
        migrations.RunSQL(LOCK_LIMIT, migrations.RunSQL.noop),
        migrations.AddField("job", "call_after", CALL_AFTER),
        migrations.AddField("job", "call_took", CALL_TOOK),
        migrations.AddField("attempt", "call_after", CALL_AFTER.clone()),
        migrations.AddField("attempt", "call_took", CALL_TOOK.clone()),
        migrations.RunSQL(migrations.RunSQL.noop, LOCK_LIMIT),
    ]
