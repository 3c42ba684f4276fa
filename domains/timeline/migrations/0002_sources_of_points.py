from django.db import migrations, models

# Columns that are null, or the same in all rows, rewrite none of them, and the table of points does
# not change. The statements lock the table of imports for some milliseconds. If they must wait for
# a long transaction, they give up, so that no other session waits behind them: run `migrate` again.
LOCK = "SET LOCAL lock_timeout = '3s'"
UNLOCK = "SET LOCAL lock_timeout = DEFAULT"


class Migration(migrations.Migration):
    """A point has several sources, and an import has the end of its undo."""

    dependencies = [("tailrace_timeline", "0001_initial")]

    operations = [
        migrations.RunSQL(LOCK, UNLOCK),
        migrations.CreateModel(
            name="PointSource",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "device_id",
                        "recorded_at",
                        "lon",
                        "lat",
                        "import_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "device",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=models.DO_NOTHING,
                        related_name="+",
                        to="tailrace_timeline.device",
                    ),
                ),
                ("recorded_at", models.DateTimeField()),
                (
                    "import_id",
                    models.BigIntegerField(help_text="the import; 0: the device itself"),
                ),
                ("lon", models.IntegerField(help_text="1e-7 degrees, east is positive")),
                ("lat", models.IntegerField(help_text="1e-7 degrees, north is positive")),
            ],
        ),
        migrations.AddField(
            "import",
            "shared",
            models.BigIntegerField(
                db_default=0, default=0, help_text="points with it as a further source"
            ),
        ),
        migrations.AddField(
            "import",
            "undo_until",
            models.DateTimeField(blank=True, help_text="the end of its undo", null=True),
        ),
        migrations.AlterField(
            "device",
            "live_points",
            models.BigIntegerField(
                db_default=0, help_text="points whose first source is the device itself"
            ),
        ),
        migrations.AlterField(
            "import",
            "inserted",
            models.BigIntegerField(default=0, help_text="points whose first source it is"),
        ),
        migrations.AlterField(
            "import",
            "promotion_began_at",
            models.DateTimeField(
                blank=True,
                help_text="from then on, points of it may be in the timeline",
                null=True,
            ),
        ),
        migrations.AlterField(
            "point",
            "origin",
            models.ForeignKey(
                blank=True,
                db_column="import_id",
                db_constraint=False,
                db_index=False,
                help_text="its first source: an import; empty: the device itself",
                null=True,
                on_delete=models.DO_NOTHING,
                related_name="points",
                to="tailrace_timeline.import",
            ),
        ),
        migrations.RunSQL(UNLOCK, LOCK),
    ]
