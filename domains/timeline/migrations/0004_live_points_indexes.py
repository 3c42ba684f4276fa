from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models

NAME = "tailrace_timeline_place_of_device"
CREATE = f"""
CREATE UNIQUE INDEX CONCURRENTLY {NAME} ON tailrace_timeline_place (device_id, cell_lat, cell_lon)
WHERE device_id IS NOT NULL
"""


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("tailrace_timeline", "0003_live_points")]

    operations = [
        AddIndexConcurrently(
            "device",
            models.Index(
                condition=models.Q(("unannounced_since__isnull", False)),
                fields=["unannounced_since"],
                name="tailrace_device_unannounced",
            ),
        ),
        AddIndexConcurrently(
            "place",
            models.Index(
                condition=models.Q(("is_named", False)),
                fields=["device", "id"],
                name="tailrace_place_unnamed",
            ),
        ),
        migrations.SeparateDatabaseAndState(
            [migrations.RunSQL(CREATE, f"DROP INDEX CONCURRENTLY IF EXISTS {NAME}")],
            [
                migrations.AddConstraint(
                    model_name="place",
                    constraint=models.UniqueConstraint(
                        condition=models.Q(("device__isnull", False)),
                        fields=("device", "cell_lat", "cell_lon"),
                        name=NAME,
                    ),
                )
            ],
        ),
    ]
