import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import tailrace.db.real_field
from tailrace.domains.timeline.imports.staging import CREATE_PARENT, DROP_PARENT


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Device",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
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
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="timeline_devices",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Import",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
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
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
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
                (
                    "device",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="imports",
                        to="tailrace_timeline.device",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="timeline_imports",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
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
                (
                    "altitude",
                    tailrace.db.real_field.RealField(blank=True, help_text="metres", null=True),
                ),
                (
                    "accuracy",
                    tailrace.db.real_field.RealField(blank=True, help_text="metres", null=True),
                ),
                (
                    "speed",
                    tailrace.db.real_field.RealField(
                        blank=True, help_text="metres per second", null=True
                    ),
                ),
                (
                    "course",
                    tailrace.db.real_field.RealField(
                        blank=True, help_text="degrees from north", null=True
                    ),
                ),
                (
                    "device",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
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
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="points",
                        to="tailrace_timeline.import",
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            model_name="device",
            constraint=models.UniqueConstraint(
                fields=("user", "name"), name="tailrace_timeline_device_once"
            ),
        ),
        migrations.AddIndex(
            model_name="import",
            index=models.Index(fields=["user", "-id"], name="tailrace_import_of_user"),
        ),
        migrations.AddIndex(
            model_name="import",
            index=models.Index(
                condition=models.Q(("visible", False)),
                fields=["user"],
                name="tailrace_import_hidden",
            ),
        ),
        migrations.AddIndex(
            model_name="import",
            index=models.Index(
                condition=models.Q(
                    ("state__in", ("completed", "cancelled", "failed", "undone")), _negated=True
                ),
                fields=["state", "created_at"],
                name="tailrace_timeline_import_open",
            ),
        ),
        migrations.AddIndex(
            model_name="import",
            index=models.Index(
                condition=models.Q(("storage_key", ""), _negated=True),
                fields=["ended_at"],
                name="tailrace_timeline_import_file",
            ),
        ),
        migrations.AddIndex(
            model_name="import",
            index=models.Index(
                condition=models.Q(("visible", False)),
                fields=["ended_at"],
                name="tailrace_timeline_import_ended",
            ),
        ),
        migrations.AddIndex(
            model_name="import",
            index=models.Index(fields=["storage_key"], name="tailrace_timeline_import_key"),
        ),
        migrations.RunSQL(CREATE_PARENT, DROP_PARENT),
    ]
