from django.db import migrations, models

# The new columns are null in all rows, so no row is rewritten. The statements lock the table of
# points and the tables of staged points for some milliseconds. If they must wait for a long
# transaction, they give up, so that no other session waits behind them: run `migrate` again.
LOCK = "SET LOCAL lock_timeout = '3s'"
UNLOCK = "SET LOCAL lock_timeout = DEFAULT"
ADD = "ALTER TABLE tailrace_timeline_staged_point ADD COLUMN file_order integer"
DROP = "ALTER TABLE tailrace_timeline_staged_point DROP COLUMN file_order"


class Migration(migrations.Migration):
    """Points of a file with the same time keep their order."""

    dependencies = [("tailrace_timeline", "0003_devices")]

    operations = [
        migrations.RunSQL(LOCK, UNLOCK),
        migrations.RunSQL(ADD, DROP),
        migrations.AddField(
            model_name="point",
            name="file_order",
            field=models.IntegerField(
                blank=True,
                help_text="orders points of a file with the same time; empty: before the others",
                null=True,
            ),
        ),
        migrations.RunSQL(UNLOCK, LOCK),
    ]
