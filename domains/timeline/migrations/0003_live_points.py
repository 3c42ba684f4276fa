import django.db.models.deletion
from django.db import migrations, models

LOCK_LIMIT = "SET LOCAL lock_timeout = '5s'"
WITHOUT_DEVICES = "DELETE FROM tailrace_timeline_place WHERE origin_id IS NULL"


class Migration(migrations.Migration):
    dependencies = [
        ("tailrace_timeline", "0002_places"),
    ]

    operations = [
        migrations.RunSQL(LOCK_LIMIT, migrations.RunSQL.noop),
        migrations.AddField(
            model_name="device",
            name="unannounced",
            field=models.IntegerField(
                db_default=0, help_text="points from the device that no event has announced yet"
            ),
        ),
        migrations.AddField(
            model_name="device",
            name="unannounced_since",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="device",
            name="unannounced_first",
            field=models.DateTimeField(
                blank=True, help_text="the time of the first of these points", null=True
            ),
        ),
        migrations.AddField(
            model_name="device",
            name="unannounced_last",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="place",
            name="device",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                help_text="empty: it is of an import",
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="places",
                to="tailrace_timeline.device",
            ),
        ),
        migrations.AddField(
            model_name="place",
            name="is_named",
            field=models.BooleanField(
                db_default=True, default=True, help_text="no: a job looks its name up"
            ),
        ),
        migrations.AlterField(
            model_name="place",
            name="origin",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="places",
                to="tailrace_timeline.import",
            ),
        ),
        migrations.RunSQL(migrations.RunSQL.noop, WITHOUT_DEVICES),
        migrations.RunSQL(migrations.RunSQL.noop, LOCK_LIMIT),
    ]
