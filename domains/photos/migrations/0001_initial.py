from django.conf import settings
from django.db import migrations, models
from django.db.models import F, Q
from django.db.models.functions import Now

ID = models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")


class Migration(migrations.Migration):
    """Photos, and the gatherings that they belong to."""

    initial = True
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Gathering",
            fields=[
                ("id", ID),
                (
                    "state",
                    models.TextField(
                        choices=[("ACTIVE", "Active"), ("FINALIZED", "Finalized")], default="ACTIVE"
                    ),
                ),
                ("lat", models.FloatField(help_text="latitude of the centroid, in degrees")),
                ("lon", models.FloatField(help_text="longitude of the centroid, in degrees")),
                (
                    "cell",
                    models.GeneratedField(
                        db_persist=True,
                        expression=models.Func(
                            F("lat"),
                            F("lon"),
                            output_field=models.IntegerField(),
                            template="(least(17999, floor((lat + 90) * 100)::int) * 36000 + least(('{8,35,70,140,281,562,1125,2250,4500,9000,18000,36000}'::int[])[1 + width_bucket(least(least(17999, floor((lat + 90) * 100)::int), 17999 - least(17999, floor((lat + 90) * 100)::int)), '{2,5,11,23,46,93,187,375,750,1500,3000}'::int[])] - 1, floor((lon + 180) / 360 * ('{8,35,70,140,281,562,1125,2250,4500,9000,18000,36000}'::int[])[1 + width_bucket(least(least(17999, floor((lat + 90) * 100)::int), 17999 - least(17999, floor((lat + 90) * 100)::int)), '{2,5,11,23,46,93,187,375,750,1500,3000}'::int[])])::int))",
                        ),
                        output_field=models.IntegerField(),
                    ),
                ),
                ("radius", models.FloatField(default=0, help_text="metres to the farthest photo")),
                ("photo_count", models.PositiveIntegerField(default=0)),
                (
                    "shown_lat",
                    models.FloatField(
                        help_text="latitude of the shown place, in degrees", null=True
                    ),
                ),
                (
                    "shown_lon",
                    models.FloatField(
                        help_text="longitude of the shown place, in degrees", null=True
                    ),
                ),
                (
                    "shown_radius",
                    models.FloatField(
                        help_text="metres around the shown place, a multiple of PHOTOS_PLACE_GRID_M",
                        null=True,
                    ),
                ),
                (
                    "placed_count",
                    models.IntegerField(
                        db_default=0, help_text="photos when the shown place was computed"
                    ),
                ),
                (
                    "place_grid",
                    models.IntegerField(help_text="PHOTOS_PLACE_GRID_M at that time", null=True),
                ),
                ("sum_x", models.DecimalField(decimal_places=0, default=0, max_digits=30)),
                ("sum_y", models.DecimalField(decimal_places=0, default=0, max_digits=30)),
                ("sum_z", models.DecimalField(decimal_places=0, default=0, max_digits=30)),
                (
                    "first_photo_at",
                    models.DateTimeField(help_text="when the first photo was taken"),
                ),
                ("last_photo_at", models.DateTimeField(help_text="when the last photo was taken")),
                (
                    "joined_at",
                    models.DateTimeField(db_default=Now(), help_text="when a photo last joined"),
                ),
                ("created_at", models.DateTimeField(db_default=Now())),
                ("finalized_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        name="tailrace_gathering_on_earth",
                        condition=Q(lat__range=(-90, 90), lon__range=(-180, 180)),
                    ),
                ],
                "indexes": [
                    # Gatherings that a photo may join: by place, then by time.
                    models.Index(
                        fields=["cell", "last_photo_at"],
                        name="tailrace_gathering_near",
                        condition=Q(state="ACTIVE"),
                    ),
                    # Gatherings that the sweeper finalizes: the longest idle first.
                    models.Index(
                        fields=["joined_at"],
                        name="tailrace_gathering_idle",
                        condition=Q(state="ACTIVE"),
                    ),
                    # The list of gatherings.
                    models.Index(
                        fields=["state", "-last_photo_at"], name="tailrace_gathering_latest"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Photo",
            fields=[
                ("id", ID),
                (
                    "user",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=models.SET_NULL,
                        related_name="photos",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "storage_key",
                    models.TextField(help_text="where the picture is stored", unique=True),
                ),
                ("caption", models.TextField(blank=True, default="")),
                (
                    "lat",
                    models.FloatField(
                        blank=True,
                        help_text="degrees, north is positive; empty: not known yet",
                        null=True,
                    ),
                ),
                (
                    "lon",
                    models.FloatField(blank=True, help_text="degrees, east is positive", null=True),
                ),
                (
                    "cell",
                    models.GeneratedField(
                        db_persist=True,
                        expression=models.Func(
                            F("lat"),
                            F("lon"),
                            output_field=models.IntegerField(),
                            template="(least(17999, floor((lat + 90) * 100)::int) * 36000 + least(('{8,35,70,140,281,562,1125,2250,4500,9000,18000,36000}'::int[])[1 + width_bucket(least(least(17999, floor((lat + 90) * 100)::int), 17999 - least(17999, floor((lat + 90) * 100)::int)), '{2,5,11,23,46,93,187,375,750,1500,3000}'::int[])] - 1, floor((lon + 180) / 360 * ('{8,35,70,140,281,562,1125,2250,4500,9000,18000,36000}'::int[])[1 + width_bucket(least(least(17999, floor((lat + 90) * 100)::int), 17999 - least(17999, floor((lat + 90) * 100)::int)), '{2,5,11,23,46,93,187,375,750,1500,3000}'::int[])])::int))",
                        ),
                        output_field=models.IntegerField(),
                    ),
                ),
                (
                    "x",
                    models.GeneratedField(
                        db_persist=True,
                        expression=models.Func(
                            F("lat"),
                            F("lon"),
                            output_field=models.BigIntegerField(),
                            template="round((cos(radians(lat)) * cos(radians(lon))) * 1e15::float8)::bigint",
                        ),
                        output_field=models.BigIntegerField(),
                    ),
                ),
                (
                    "y",
                    models.GeneratedField(
                        db_persist=True,
                        expression=models.Func(
                            F("lat"),
                            F("lon"),
                            output_field=models.BigIntegerField(),
                            template="round((cos(radians(lat)) * sin(radians(lon))) * 1e15::float8)::bigint",
                        ),
                        output_field=models.BigIntegerField(),
                    ),
                ),
                (
                    "z",
                    models.GeneratedField(
                        db_persist=True,
                        expression=models.Func(
                            F("lat"),
                            F("lon"),
                            output_field=models.BigIntegerField(),
                            template="round((sin(radians(lat))) * 1e15::float8)::bigint",
                        ),
                        output_field=models.BigIntegerField(),
                    ),
                ),
                ("taken_at", models.DateTimeField()),
                ("uploaded_at", models.DateTimeField(db_default=Now())),
                (
                    "original_bytes",
                    models.BigIntegerField(
                        db_default=0, help_text="of the picture; 0: stored elsewhere"
                    ),
                ),
                (
                    "copy_bytes",
                    models.BigIntegerField(
                        db_default=0,
                        help_text="of its small copy; 0: stored elsewhere",
                    ),
                ),
                (
                    "original_deleted_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="when the picture was deleted; its copy stays",
                        null=True,
                    ),
                ),
                (
                    "gathering",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="photos",
                        to="tailrace_photos.gathering",
                    ),
                ),
                (
                    "state",
                    models.TextField(
                        choices=[
                            ("unplaced", "Unplaced"),
                            ("new", "New"),
                            ("clustered", "Clustered"),
                            ("unclusterable", "Unclusterable"),
                        ],
                        default="new",
                    ),
                ),
                (
                    "cluster_attempts",
                    models.PositiveIntegerField(
                        default=0, help_text="how often the sweeper has retried it"
                    ),
                ),
                ("next_try_at", models.DateTimeField(blank=True, db_default=Now(), null=True)),
                (
                    "opened_at",
                    models.DateTimeField(
                        db_default=Now(),
                        help_text="start of the lookback: the upload, or a new neighbour",
                    ),
                ),
                (
                    "placed_at",
                    models.DateTimeField(
                        blank=True, help_text="when the owner's timeline gave its place", null=True
                    ),
                ),
                ("given_up_at", models.DateTimeField(blank=True, null=True)),
                (
                    "reason",
                    models.TextField(blank=True, default="", help_text="why it has no gathering"),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        name="tailrace_photo_on_earth",
                        condition=Q(lat__range=(-90, 90), lon__range=(-180, 180)),
                    ),
                    # The state agrees with the gathering.
                    models.CheckConstraint(
                        name="tailrace_photo_clustered_has_gathering",
                        condition=Q(gathering__isnull=False, state="clustered")
                        | ~Q(state="clustered") & Q(gathering=None),
                    ),
                    # Else the sweeper would never take it up.
                    models.CheckConstraint(
                        name="tailrace_photo_new_has_next_try",
                        condition=~Q(state="new") | Q(next_try_at__isnull=False),
                    ),
                    # The state agrees with the place.
                    models.CheckConstraint(
                        name="tailrace_photo_has_a_place",
                        condition=Q(lat__isnull=True, lon__isnull=True, state="unplaced")
                        | ~Q(state="unplaced") & Q(lat__isnull=False, lon__isnull=False),
                    ),
                ],
                "indexes": [
                    # Photos that may start a gathering: by place, then by time.
                    models.Index(
                        fields=["cell", "taken_at"],
                        name="tailrace_photo_near",
                        condition=Q(gathering=None),
                    ),
                    # Photos that the sweeper requeues: the fewest tries first.
                    models.Index(
                        fields=["cluster_attempts", "next_try_at", "id"],
                        name="tailrace_photo_waiting",
                        condition=Q(state="new"),
                    ),
                    # The photos of a gathering.
                    models.Index(
                        fields=["gathering", "taken_at"],
                        name="tailrace_photo_of_gathering",
                        condition=Q(gathering__isnull=False),
                    ),
                    # The list of those that were given up, the latest first.
                    models.Index(
                        fields=["-given_up_at"],
                        name="tailrace_photo_unclusterable",
                        condition=Q(state="unclusterable"),
                    ),
                    # The photos of a user, the latest first.
                    models.Index(fields=["user", "-uploaded_at"], name="tailrace_photo_of_user"),
                    # Photos that wait for a place from their owner's timeline.
                    models.Index(
                        fields=["user", "taken_at", "id"],
                        name="tailrace_photo_unplaced",
                        condition=Q(state="unplaced"),
                    ),
                    # Photos whose originals the sweeper deletes: the oldest first.
                    models.Index(
                        fields=["uploaded_at"],
                        name="tailrace_photo_with_original",
                        condition=Q(original_deleted_at=None),
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Upload",
            fields=[
                ("id", ID),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=models.CASCADE,
                        related_name="photo_uploads",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "storage_key",
                    models.TextField(
                        blank=True,
                        default="",
                        help_text="where the files are stored; empty: no files",
                    ),
                ),
                ("idempotency_key", models.TextField(blank=True, default="")),
                (
                    "fingerprint",
                    models.TextField(
                        blank=True, default="", help_text="hash of the request with this key"
                    ),
                ),
                ("started_at", models.DateTimeField(db_default=Now())),
                (
                    "photo",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=models.CASCADE,
                        related_name="uploads",
                        to="tailrace_photos.photo",
                    ),
                ),
            ],
            options={
                "constraints": [
                    # A key stands for one photo of its user.
                    models.UniqueConstraint(
                        fields=["user", "idempotency_key"],
                        name="tailrace_photo_upload_once",
                        condition=Q(photo__isnull=False),
                    ),
                ],
                "indexes": [
                    # Uploads that were given up.
                    models.Index(fields=["started_at"], name="tailrace_photo_upload_started"),
                    # They are deleted with their photo.
                    models.Index(fields=["photo"], name="tailrace_photo_upload_photo"),
                    # They are deleted with their user; the other index leaves out what has no photo.
                    models.Index(fields=["user"], name="tailrace_photo_upload_user"),
                ],
            },
        ),
        migrations.CreateModel(
            name="FileDeletion",
            fields=[
                ("id", ID),
                ("storage_key", models.TextField(help_text="where the files are stored")),
                ("requested_at", models.DateTimeField(db_default=Now())),
            ],
        ),
    ]
