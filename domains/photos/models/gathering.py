from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from tailrace.domains.photos.models.location import cell_column, valid_coordinates


class GatheringQuerySet(models.QuerySet["Gathering"]):
    def active(self) -> "GatheringQuerySet":
        """Gatherings that photos can still join."""
        return self.filter(state=Gathering.State.ACTIVE)

    def placed(self) -> "GatheringQuerySet":
        """Gatherings that have a shown location. The sweeper computes it for all others."""
        return self.filter(place_grid__isnull=False)

    def finalized(self) -> "GatheringQuerySet":
        """Gatherings that photos can no longer join."""
        return self.filter(state=Gathering.State.FINALIZED)


class Gathering(models.Model):
    """Photos that were taken near each other, within minutes.

        ACTIVE ──── no photo joined for PHOTOS_FINALIZE_AFTER_MINUTES ───► FINALIZED

    Each photo refers to its gathering. Count, sums, centroid, radius and times are computed from
    the photos, and written in the same transaction.
    """

    class State(models.TextChoices):
        ACTIVE = "ACTIVE"
        FINALIZED = "FINALIZED"

    state = models.TextField(choices=State.choices, default=State.ACTIVE)
    lat = models.FloatField(help_text="latitude of the centroid, in degrees")
    lon = models.FloatField(help_text="longitude of the centroid, in degrees")
    cell = cell_column()
    radius = models.FloatField(default=0, help_text="metres to the farthest photo")
    photo_count = models.PositiveIntegerField(default=0)
    # The location that users see: `lat`, `lon` and `radius` would reveal where photos were taken.
    shown_lat = models.FloatField(null=True, help_text="latitude of the shown place, in degrees")
    shown_lon = models.FloatField(null=True, help_text="longitude of the shown place, in degrees")
    shown_radius = models.FloatField(
        null=True, help_text="metres around the shown place, a multiple of PHOTOS_PLACE_GRID_M"
    )
    placed_count = models.IntegerField(
        db_default=0, help_text="photos when the shown place was computed"
    )
    place_grid = models.IntegerField(null=True, help_text="PHOTOS_PLACE_GRID_M at that time")
    # The centroid is the direction of the sum of the photos' unit vectors. They are whole numbers,
    # so that the sum does not depend on the order in which workers add them.
    sum_x = models.DecimalField(max_digits=30, decimal_places=0, default=0)
    sum_y = models.DecimalField(max_digits=30, decimal_places=0, default=0)
    sum_z = models.DecimalField(max_digits=30, decimal_places=0, default=0)
    first_photo_at = models.DateTimeField(help_text="when the first photo was taken")
    last_photo_at = models.DateTimeField(help_text="when the last photo was taken")
    joined_at = models.DateTimeField(db_default=Now(), help_text="when a photo last joined")
    created_at = models.DateTimeField(db_default=Now())
    finalized_at = models.DateTimeField(null=True, blank=True)

    objects = GatheringQuerySet.as_manager()

    class Meta:
        constraints = [valid_coordinates("gathering")]
        indexes = [
            # Gatherings that a photo may join: by cell, then by time.
            models.Index(
                fields=["cell", "last_photo_at"],
                name="tailrace_gathering_near",
                condition=Q(state="ACTIVE"),
            ),
            # Gatherings that the sweeper finalizes: the longest idle first.
            models.Index(
                fields=["joined_at"], name="tailrace_gathering_idle", condition=Q(state="ACTIVE")
            ),
            models.Index(fields=["state", "-last_photo_at"], name="tailrace_gathering_latest"),
        ]

    def __str__(self) -> str:
        return f"gathering {self.pk}"
