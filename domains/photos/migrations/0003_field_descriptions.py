"""The descriptions of fields. It changes nothing in the database."""

import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tailrace_photos", "0002_uploads"),
    ]

    operations = [
        migrations.AlterField(
            model_name="gathering",
            name="first_photo_at",
            field=models.DateTimeField(help_text="when the first photo was taken"),
        ),
        migrations.AlterField(
            model_name="gathering",
            name="joined_at",
            field=models.DateTimeField(
                db_default=django.db.models.functions.datetime.Now(),
                help_text="when a photo last joined",
            ),
        ),
        migrations.AlterField(
            model_name="gathering",
            name="last_photo_at",
            field=models.DateTimeField(help_text="when the last photo was taken"),
        ),
        migrations.AlterField(
            model_name="gathering",
            name="lat",
            field=models.FloatField(help_text="latitude of the centroid, in degrees"),
        ),
        migrations.AlterField(
            model_name="gathering",
            name="lon",
            field=models.FloatField(help_text="longitude of the centroid, in degrees"),
        ),
        migrations.AlterField(
            model_name="photo",
            name="cluster_attempts",
            field=models.PositiveIntegerField(
                default=0, help_text="how often the sweeper has retried it"
            ),
        ),
        migrations.AlterField(
            model_name="photo",
            name="opened_at",
            field=models.DateTimeField(
                db_default=django.db.models.functions.datetime.Now(),
                help_text="start of the lookback: the upload, or a new neighbour",
            ),
        ),
        migrations.AlterField(
            model_name="photo",
            name="reason",
            field=models.TextField(blank=True, default="", help_text="why it has no gathering"),
        ),
        migrations.AlterField(
            model_name="photo",
            name="storage_key",
            field=models.TextField(help_text="where the picture is stored", unique=True),
        ),
        migrations.AlterField(
            model_name="upload",
            name="fingerprint",
            field=models.TextField(
                blank=True, default="", help_text="hash of the request with this key"
            ),
        ),
        migrations.AlterField(
            model_name="upload",
            name="storage_key",
            field=models.TextField(
                blank=True, default="", help_text="where the files are stored; empty: no files"
            ),
        ),
    ]
