from django.db import migrations, models


class Migration(migrations.Migration):
    """Columns without a check, and with a constant default: no row is read or written."""

    dependencies = [
        ("tailrace_photos", "0003_field_descriptions"),
    ]

    operations = [
        migrations.AddField(
            model_name="gathering",
            name="place_grid",
            field=models.IntegerField(help_text="PHOTOS_PLACE_GRID_M at that time", null=True),
        ),
        migrations.AddField(
            model_name="gathering",
            name="placed_count",
            field=models.IntegerField(
                db_default=0, help_text="photos when the shown place was computed"
            ),
        ),
        migrations.AddField(
            model_name="gathering",
            name="shown_lat",
            field=models.FloatField(help_text="latitude of the shown place, in degrees", null=True),
        ),
        migrations.AddField(
            model_name="gathering",
            name="shown_lon",
            field=models.FloatField(
                help_text="longitude of the shown place, in degrees", null=True
            ),
        ),
        migrations.AddField(
            model_name="gathering",
            name="shown_radius",
            field=models.FloatField(
                help_text="metres around the shown place, a multiple of PHOTOS_PLACE_GRID_M",
                null=True,
            ),
        ),
    ]
