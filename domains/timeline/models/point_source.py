from django.db import models

from tailrace.domains.timeline.models.device import Device

THE_DEVICE = 0
"""The `import_id` of a source that is the device itself."""


class PointSource(models.Model):
    """A further source of a point: an import that has the point, too, or the device itself.

    The first source of a point is in the point's own row, so a point with one source has no row
    here. Neither has a point whose first source stays for good, because no undo can remove the
    point: the device itself, or an import that can no longer be undone. As with points, there are
    no foreign keys.
    """

    pk = models.CompositePrimaryKey("device_id", "recorded_at", "lon", "lat", "import_id")
    device = models.ForeignKey(
        Device, models.DO_NOTHING, related_name="+", db_constraint=False, db_index=False
    )
    recorded_at = models.DateTimeField()
    import_id = models.BigIntegerField(help_text="the import; 0: the device itself")
    lon = models.IntegerField(help_text="1e-7 degrees, east is positive")
    lat = models.IntegerField(help_text="1e-7 degrees, north is positive")

    def __str__(self) -> str:
        return f"source of a point of device {self.device_id}"
