from django.conf import settings
from django.db import migrations, models
from django.db.models import Q
from django.db.models.functions import Now

from tailrace.db.real_field import RealField

# The points of an import on their way into the timeline. `imports.staging` makes a partition for
# each import, UNLOGGED and without an index, and fills it by binary COPY.
CREATE_STAGED_POINTS = """
CREATE TABLE tailrace_timeline_staged_point (
    import_id bigint NOT NULL,
    recorded_at timestamp with time zone NOT NULL,
    lon integer NOT NULL,
    lat integer NOT NULL,
    altitude real,
    accuracy real,
    speed real,
    course real
) PARTITION BY LIST (import_id)
"""
DROP_STAGED_POINTS = "DROP TABLE tailrace_timeline_staged_point"

ID = models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")


class Migration(migrations.Migration):
    """Where the devices of a user were, from files and live."""

    initial = True
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Device",
            fields=[
                ("id", ID),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=models.CASCADE,
                        related_name="timeline_devices",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("name", models.TextField()),
                (
                    "live_points",
                    models.BigIntegerField(
                        db_default=0,
                        help_text="points that came from the device itself, not from files",
                    ),
                ),
                ("created_at", models.DateTimeField(db_default=Now())),
                (
                    "unannounced",
                    models.IntegerField(
                        db_default=0,
                        help_text="points from the device that no event has announced yet",
                    ),
                ),
                ("unannounced_since", models.DateTimeField(blank=True, null=True)),
                (
                    "unannounced_first",
                    models.DateTimeField(
                        blank=True, help_text="the time of the first of these points", null=True
                    ),
                ),
                ("unannounced_last", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "constraints": [
                    # It is the index by user, too.
                    models.UniqueConstraint(
                        fields=["user", "name"], name="tailrace_timeline_device_once"
                    ),
                ],
                "indexes": [
                    # Devices whose new points no event has announced. Not by the number, which changes with each
                    # request.
                    models.Index(
                        fields=["unannounced_since"],
                        name="tailrace_device_unannounced",
                        condition=Q(unannounced_since__isnull=False),
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Import",
            fields=[
                ("id", ID),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=models.CASCADE,
                        related_name="timeline_imports",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "device",
                    models.ForeignKey(
                        on_delete=models.CASCADE,
                        related_name="imports",
                        to="tailrace_timeline.device",
                    ),
                ),
                (
                    "state",
                    models.TextField(
                        choices=[
                            ("receiving", "Receiving"),
                            ("queued", "Queued"),
                            ("parsing", "Parsing"),
                            ("needs_decision", "needs a decision"),
                            ("grace", "ready"),
                            ("promoting", "Promoting"),
                            ("enriching", "Enriching"),
                            ("completed", "Completed"),
                            ("cancelled", "Cancelled"),
                            ("failed", "Failed"),
                            ("undoing", "Undoing"),
                            ("undone", "Undone"),
                        ],
                        default="receiving",
                    ),
                ),
                (
                    "visible",
                    models.BooleanField(
                        db_default=False,
                        help_text="readers see its points; set with the promotion's end",
                    ),
                ),
                ("file_name", models.TextField()),
                (
                    "storage_key",
                    models.TextField(help_text="where the file is stored; empty: it was deleted"),
                ),
                ("size", models.BigIntegerField(help_text="bytes of the file")),
                ("formats", models.TextField(blank=True, default="")),
                ("created_at", models.DateTimeField(db_default=Now())),
                (
                    "job_id",
                    models.BigIntegerField(
                        blank=True, help_text="the job of the present step", null=True
                    ),
                ),
                (
                    "run",
                    models.TextField(
                        blank=True,
                        default="",
                        help_text="the claim of the worker that stages or promotes it",
                    ),
                ),
                ("parsing_since", models.DateTimeField(blank=True, null=True)),
                ("bytes_read", models.BigIntegerField(default=0)),
                ("staged", models.BigIntegerField(default=0, help_text="points read and accepted")),
                (
                    "rejected",
                    models.BigIntegerField(default=0, help_text="points read and not accepted"),
                ),
                (
                    "tally",
                    models.JSONField(
                        blank=True, default=dict, help_text="why, with the first of them"
                    ),
                ),
                ("expected_duplicates", models.BigIntegerField(blank=True, null=True)),
                (
                    "first_at",
                    models.DateTimeField(blank=True, help_text="the first point", null=True),
                ),
                (
                    "last_at",
                    models.DateTimeField(blank=True, help_text="the last point", null=True),
                ),
                (
                    "days",
                    models.JSONField(
                        blank=True,
                        default=dict,
                        help_text="how many days have points, and the latest of them",
                    ),
                ),
                (
                    "error",
                    models.TextField(
                        blank=True, default="", help_text="what is wrong with the file, where"
                    ),
                ),
                (
                    "accepts_part",
                    models.BooleanField(
                        default=False, help_text="the owner wants the part before the error"
                    ),
                ),
                (
                    "times_lost",
                    models.PositiveIntegerField(
                        default=0,
                        help_text="how often its staged points were lost in a crash of the database",
                    ),
                ),
                (
                    "promote_at",
                    models.DateTimeField(blank=True, help_text="the end of the grace", null=True),
                ),
                ("promotion_began_at", models.DateTimeField(blank=True, null=True)),
                (
                    "promoted_blocks",
                    models.BigIntegerField(default=0, help_text="of the partition: the cursor"),
                ),
                ("inserted", models.BigIntegerField(default=0)),
                ("duplicates", models.BigIntegerField(default=0)),
                ("promoted_at", models.DateTimeField(blank=True, null=True)),
                ("undo_cursor", models.DateTimeField(blank=True, null=True)),
                (
                    "removed",
                    models.BigIntegerField(default=0, help_text="points that undoing has removed"),
                ),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "indexes": [
                    # The imports of a user, the latest first.
                    models.Index(fields=["user", "-id"], name="tailrace_import_of_user"),
                    # The few whose points readers leave out.
                    models.Index(
                        fields=["user"], name="tailrace_import_hidden", condition=Q(visible=False)
                    ),
                    # Imports that are under way.
                    models.Index(
                        fields=["state", "created_at"],
                        name="tailrace_timeline_import_open",
                        condition=~Q(state__in=("completed", "cancelled", "failed", "undone")),
                    ),
                    # Files that retention deletes.
                    models.Index(
                        fields=["ended_at"],
                        name="tailrace_timeline_import_file",
                        condition=~Q(storage_key=""),
                    ),
                    # Ended imports without points, which are deleted.
                    models.Index(
                        fields=["ended_at"],
                        name="tailrace_timeline_import_ended",
                        condition=Q(visible=False),
                    ),
                    # Whether a stored file has an import.
                    models.Index(fields=["storage_key"], name="tailrace_timeline_import_key"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Place",
            fields=[
                ("id", ID),
                (
                    "origin",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=models.CASCADE,
                        related_name="places",
                        to="tailrace_timeline.import",
                    ),
                ),
                (
                    "device",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        help_text="empty: it is of an import",
                        null=True,
                        on_delete=models.CASCADE,
                        related_name="places",
                        to="tailrace_timeline.device",
                    ),
                ),
                ("cell_lat", models.IntegerField(help_text="hundredths of degrees, rounded down")),
                ("cell_lon", models.IntegerField(help_text="hundredths of degrees, rounded down")),
                (
                    "name",
                    models.TextField(blank=True, default="", help_text="empty: no town is near"),
                ),
                ("country", models.TextField(blank=True, default="", help_text="two letters")),
                ("time_zone", models.TextField(blank=True, default="")),
                (
                    "is_named",
                    models.BooleanField(
                        db_default=True, default=True, help_text="no: a job looks its name up"
                    ),
                ),
            ],
            options={
                "constraints": [
                    # It is the index by import, too.
                    models.UniqueConstraint(
                        fields=["origin", "cell_lat", "cell_lon"],
                        name="tailrace_timeline_place_once",
                    ),
                    # It is the index by device, too.
                    models.UniqueConstraint(
                        fields=["device", "cell_lat", "cell_lon"],
                        name="tailrace_timeline_place_of_device",
                        condition=Q(device__isnull=False),
                    ),
                ],
                "indexes": [
                    # Places whose names a job looks up.
                    models.Index(
                        fields=["device", "id"],
                        name="tailrace_place_unnamed",
                        condition=Q(is_named=False),
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Point",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "device_id",
                        "recorded_at",
                        "lon",
                        "lat",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("recorded_at", models.DateTimeField()),
                ("lon", models.IntegerField(help_text="1e-7 degrees, east is positive")),
                ("lat", models.IntegerField(help_text="1e-7 degrees, north is positive")),
                ("altitude", RealField(blank=True, help_text="metres", null=True)),
                ("accuracy", RealField(blank=True, help_text="metres", null=True)),
                ("speed", RealField(blank=True, help_text="metres per second", null=True)),
                ("course", RealField(blank=True, help_text="degrees from north", null=True)),
                (
                    "device",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=models.DO_NOTHING,
                        related_name="points",
                        to="tailrace_timeline.device",
                    ),
                ),
                (
                    "origin",
                    models.ForeignKey(
                        blank=True,
                        db_column="import_id",
                        db_constraint=False,
                        db_index=False,
                        help_text="the import that brought it; empty: the device itself",
                        null=True,
                        on_delete=models.DO_NOTHING,
                        related_name="points",
                        to="tailrace_timeline.import",
                    ),
                ),
            ],
        ),
        migrations.RunSQL(CREATE_STAGED_POINTS, DROP_STAGED_POINTS),
    ]
