from django.conf import settings
from django.db import models
from django.db.models import Count, F, Q, Sum
from django.db.models.functions import Coalesce, Now

MAX_NAME = 100
MOST_FORMER_NAMES = 20
"""Maximum former names of a device; older ones are forgotten."""


class DeviceQuerySet(models.QuerySet["Device"]):
    def present(self) -> "DeviceQuerySet":
        """Devices that are neither being merged into another device nor being deleted."""
        return self.filter(removed_at=None)

    def visible(self) -> "DeviceQuerySet":
        """Devices whose points readers see: all except devices that are being deleted."""
        return self.filter(Q(removed_at=None) | Q(into__isnull=False))

    def called(self, name: str) -> "Device | None":
        """Return the present device with this name, or else with this former name."""
        present = self.present()
        return (
            present.filter(name=name).first()
            or present.filter(former_names__contains=[name]).first()
        )

    def removed_last(self) -> "DeviceQuerySet":
        """Sorted by name. Devices that are being merged or deleted come last."""
        return self.order_by(F("removed_at").asc(nulls_first=True), "name")

    def with_counts(self) -> "DeviceQuerySet":
        """Add `point_count` and `import_count`."""
        imported = Coalesce(Sum(F("imports__inserted") - F("imports__removed")), 0)
        return self.annotate(point_count=F("live_points") + imported, import_count=Count("imports"))


class Device(models.Model):
    """A device that recorded points of a user, such as a phone or a watch. Its points come from
    itself or from imported files."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="timeline_devices", db_index=False
    )
    name = models.TextField()
    live_points = models.BigIntegerField(
        db_default=0, help_text="points whose first source is the device itself"
    )
    created_at = models.DateTimeField(db_default=Now())
    point_count: int
    import_count: int
    """Of `with_counts`."""

    former_names = models.JSONField(
        default=list,
        db_default=models.Value([], models.JSONField()),
        blank=True,
        help_text="points that come with one of these names are points of this device",
    )
    removed_at = models.DateTimeField(
        null=True, blank=True, help_text="since when it is being merged or deleted by a job"
    )
    into = models.ForeignKey(
        "self",
        models.DO_NOTHING,
        null=True,
        blank=True,
        db_constraint=False,
        db_index=False,
        related_name="merging",
        help_text="the device that takes its points; empty: they are deleted",
    )

    unannounced = models.IntegerField(
        db_default=0, help_text="points from the device that no event has announced yet"
    )
    unannounced_since = models.DateTimeField(null=True, blank=True)
    unannounced_first = models.DateTimeField(
        null=True, blank=True, help_text="the time of the first of these points"
    )
    unannounced_last = models.DateTimeField(null=True, blank=True)

    objects = DeviceQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "name"], name="tailrace_timeline_device_once")
        ]
        indexes = [
            # `unannounced` is not indexed, because it changes with each request.
            models.Index(
                fields=["unannounced_since"],
                name="tailrace_device_unannounced",
                condition=Q(unannounced_since__isnull=False),
            ),
            models.Index(
                fields=["removed_at"],
                name="tailrace_device_removed",
                condition=Q(removed_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"device {self.pk}"

    @property
    def label(self) -> str:
        """The name, also of a device that is being removed: see `unused_name`."""
        return self.name if self.removed_at is None else self.name.strip().partition(" ")[2]

    def unused_name(self) -> str:
        """Return a name for this device while it is being removed, so that its own name is free.
        Names of present devices do not begin with a space."""
        return f" {self.pk} {self.name}"

    def remember(self, *names: str) -> None:
        """Add these former names. The caller saves the device."""
        kept = [each for each in [*self.former_names, *names] if each != self.name]
        self.former_names = list(dict.fromkeys(reversed(kept)))[:MOST_FORMER_NAMES][::-1]
