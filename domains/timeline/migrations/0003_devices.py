from django.db import migrations, models
from django.db.models import Q

# Columns that are null, or the same in all rows, rewrite none of them. The statements lock the
# tables of devices and imports for some milliseconds. If they must wait for a long transaction,
# they give up, so that no other session waits behind them: run `migrate` again. The table of
# devices is small, so its index is built in the same transaction.
LOCK = "SET LOCAL lock_timeout = '3s'"
UNLOCK = "SET LOCAL lock_timeout = DEFAULT"
DELETE_WITHOUT_DEVICE = """
SET CONSTRAINTS ALL IMMEDIATE;
DELETE FROM tailrace_timeline_import WHERE device_id IS NULL
"""


class Migration(migrations.Migration):
    """Devices are renamed, merged and deleted, and imports that brought nothing have none."""

    dependencies = [("tailrace_timeline", "0002_sources_of_points")]

    operations = [
        migrations.RunSQL(LOCK, UNLOCK),
        migrations.AddField(
            "device",
            "former_names",
            models.JSONField(
                blank=True,
                db_default=models.Value([], models.JSONField()),
                default=list,
                help_text="points that come with one of these names are points of this device",
            ),
        ),
        migrations.AddField(
            "device",
            "removed_at",
            models.DateTimeField(
                blank=True,
                help_text="since when it is being merged or deleted by a job",
                null=True,
            ),
        ),
        migrations.AddField(
            "device",
            "into",
            models.ForeignKey(
                blank=True,
                db_constraint=False,
                db_index=False,
                help_text="the device that takes its points; empty: they are deleted",
                null=True,
                on_delete=models.DO_NOTHING,
                related_name="merging",
                to="tailrace_timeline.device",
            ),
        ),
        migrations.AddIndex(
            "device",
            models.Index(
                fields=["removed_at"],
                name="tailrace_device_removed",
                condition=Q(removed_at__isnull=False),
            ),
        ),
        migrations.AddField(
            "import",
            "device_name",
            models.TextField(
                blank=True, db_default="", default="", help_text="of the former device"
            ),
        ),
        migrations.AlterField(
            "import",
            "device",
            models.ForeignKey(
                blank=True,
                help_text="empty: the import has ended, and brought nothing",
                null=True,
                on_delete=models.CASCADE,
                related_name="imports",
                to="tailrace_timeline.device",
            ),
        ),
        migrations.AddField(
            "import",
            "one_device",
            models.BooleanField(
                db_default=False,
                default=False,
                help_text="all points are of its device, even if the file tells several devices apart",
            ),
        ),
        migrations.AddField(
            "import",
            "tags",
            models.JSONField(
                blank=True,
                db_default=models.Value({}, models.JSONField()),
                default=dict,
                help_text="which points of the file it has, by the tag of the device; empty: all",
            ),
        ),
        migrations.AddField(
            "import",
            "part_of",
            models.ForeignKey(
                blank=True,
                db_constraint=False,
                db_index=False,
                help_text="the import of the same file with the points of another device",
                null=True,
                on_delete=models.DO_NOTHING,
                related_name="parts",
                to="tailrace_timeline.import",
            ),
        ),
        migrations.RunSQL(migrations.RunSQL.noop, DELETE_WITHOUT_DEVICE),
        migrations.RunSQL(UNLOCK, LOCK),
    ]
