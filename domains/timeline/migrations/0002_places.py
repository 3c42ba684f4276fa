import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tailrace_timeline", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="Place",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
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
                    "origin",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="places",
                        to="tailrace_timeline.import",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("origin", "cell_lat", "cell_lon"),
                        name="tailrace_timeline_place_once",
                    )
                ],
            },
        ),
    ]
