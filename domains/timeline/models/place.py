from django.db import models
from django.db.models import Q

from tailrace.domains.timeline.models.device import Device
from tailrace.domains.timeline.models.location_import import Import

CELL = 100_000
"""1e-7 degrees: the size of a cell, about a kilometre."""


def cell_of(number: int) -> int:
    """Return the cell of a latitude or longitude in 1e-7 degrees."""
    return number // CELL


def centre_of(cell_lat: int, cell_lon: int) -> tuple[float, float]:
    """Return the centre of a cell in degrees: latitude, longitude."""
    return (cell_lat + 0.5) / 100, (cell_lon + 0.5) / 100


class Place(models.Model):
    """A cell with points of an import or of a device itself; its nearest town and its time zone."""

    origin = models.ForeignKey(
        Import, models.CASCADE, null=True, blank=True, related_name="places", db_index=False
    )
    device = models.ForeignKey(
        Device,
        models.CASCADE,
        null=True,
        blank=True,
        related_name="places",
        db_index=False,
        help_text="empty: it is of an import",
    )
    cell_lat = models.IntegerField(help_text="hundredths of degrees, rounded down")
    cell_lon = models.IntegerField(help_text="hundredths of degrees, rounded down")
    name = models.TextField(default="", blank=True, help_text="empty: no town is near")
    country = models.TextField(default="", blank=True, help_text="two letters")
    time_zone = models.TextField(default="", blank=True)
    is_named = models.BooleanField(
        db_default=True, default=True, help_text="no: a job looks its name up"
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["origin", "cell_lat", "cell_lon"], name="tailrace_timeline_place_once"
            ),
            models.UniqueConstraint(
                fields=["device", "cell_lat", "cell_lon"],
                name="tailrace_timeline_place_of_device",
                condition=Q(device__isnull=False),
            ),
        ]
        indexes = [
            models.Index(
                fields=["device", "id"],
                name="tailrace_place_unnamed",
                condition=Q(is_named=False),
            )
        ]

    def __str__(self) -> str:
        return f"place {self.pk}"
