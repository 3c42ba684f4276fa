from datetime import datetime

from django.contrib.auth.models import User
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Coalesce

from tailrace.db.real_field import RealField
from tailrace.domains.timeline.models.device import Device
from tailrace.domains.timeline.models.location_import import Import
from tailrace.domains.timeline.models.point_source import THE_DEVICE, PointSource

KEY = ("device_id", "recorded_at", "lon", "lat")


class PointQuerySet(models.QuerySet["Point"]):
    def visible_to(self, user: User) -> "PointQuerySet":
        """The points of the user's devices with a visible source: the device itself, or an import
        whose promotion is finished and was not undone."""
        key = {name: OuterRef(OuterRef(name)) for name in KEY}
        visible = Import.objects.filter(user=user, visible=True, pk=OuterRef("import_id"))
        further = PointSource.objects.filter(Q(import_id=THE_DEVICE) | Exists(visible), **key)
        hidden = Import.objects.hidden().filter(user=user, pk=OuterRef("origin_id"))
        invisible = hidden.filter(~Exists(further))
        devices = list(Device.objects.visible().filter(user=user).values_list("pk", flat=True))
        return self.filter(~Exists(invisible), device_id__in=devices)

    def between(self, start: datetime, end: datetime) -> "PointQuerySet":
        """Points from `start`, included, to `end`, excluded."""
        return self.filter(recorded_at__gte=start, recorded_at__lt=end)

    def by_time(self) -> "PointQuerySet":
        """By time and device, those with the same time in the order of their file. `place` is
        `file_order`, or 0."""
        points = self.annotate(place=Coalesce("file_order", 0))
        return points.order_by("recorded_at", "device_id", "place", "lon", "lat")


class Point(models.Model):
    """The position of a device at a time.

    Device, time, longitude and latitude are the primary key. Its index also serves reads by device
    and time. There are no foreign keys, because they would be checked once per point. Instead,
    code that inserts points locks the device, and a device is deleted after its points.
    """

    pk = models.CompositePrimaryKey(*KEY)
    device = models.ForeignKey(
        Device, models.DO_NOTHING, related_name="points", db_constraint=False, db_index=False
    )
    recorded_at = models.DateTimeField()
    origin = models.ForeignKey(
        Import,
        models.DO_NOTHING,
        null=True,
        blank=True,
        related_name="points",
        db_column="import_id",
        db_constraint=False,
        db_index=False,
        help_text="its first source: an import; empty: the device itself",
    )
    lon = models.IntegerField(help_text="1e-7 degrees, east is positive")
    lat = models.IntegerField(help_text="1e-7 degrees, north is positive")
    altitude = RealField(null=True, blank=True, help_text="metres")
    accuracy = RealField(null=True, blank=True, help_text="metres")
    speed = RealField(null=True, blank=True, help_text="metres per second")
    course = RealField(null=True, blank=True, help_text="degrees from north")
    file_order = models.IntegerField(
        null=True,
        blank=True,
        help_text="orders points of a file with the same time; empty: before the others",
    )

    place: int
    """Of `by_time`."""

    objects = PointQuerySet.as_manager()

    def __str__(self) -> str:
        return f"point of device {self.device_id}"
