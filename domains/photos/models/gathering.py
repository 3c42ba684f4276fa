from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from domains.photos.models.place import cell, on_earth


class GatheringQuerySet(models.QuerySet["Gathering"]):
    def active(self) -> "GatheringQuerySet":
        """Those that photos may still join."""
        return self.filter(state=Gathering.State.ACTIVE)

    def finalized(self) -> "GatheringQuerySet":
        """Those that nothing joins any more."""
        return self.filter(state=Gathering.State.FINALIZED)


class Gathering(models.Model):
    """A photo event: photos of one place and time.

        ACTIVE ──── nothing came for PHOTOS_FINALIZE_AFTER_MINUTES ───► FINALIZED

    Who belongs to it stands on the photos; count, sums, centroid, radius and times follow from
    them, and are written together with them.
    """

    class State(models.TextChoices):
        ACTIVE = "ACTIVE"
        FINALIZED = "FINALIZED"

    state = models.TextField(choices=State.choices, default=State.ACTIVE)
    lat = models.FloatField(help_text="of the centroid, degrees")
    lon = models.FloatField(help_text="of the centroid, degrees")
    cell = cell()
    radius = models.FloatField(default=0, help_text="metres to the farthest photo")
    photo_count = models.PositiveIntegerField(default=0)
    # The centroid is where the sum of the photos' unit vectors points. Whole numbers add up to
    # the same in whatever order workers add them.
    sum_x = models.DecimalField(max_digits=30, decimal_places=0, default=0)
    sum_y = models.DecimalField(max_digits=30, decimal_places=0, default=0)
    sum_z = models.DecimalField(max_digits=30, decimal_places=0, default=0)
    first_photo_at = models.DateTimeField(help_text="when its first photo was taken")
    last_photo_at = models.DateTimeField(help_text="when its last photo was taken")
    joined_at = models.DateTimeField(db_default=Now(), help_text="when a photo last came in")
    created_at = models.DateTimeField(db_default=Now())
    finalized_at = models.DateTimeField(null=True, blank=True)

    objects = GatheringQuerySet.as_manager()

    class Meta:
        constraints = on_earth("gathering")
        indexes = [
            # What a photo may join: by place, then by time.
            models.Index(
                fields=["cell", "last_photo_at"],
                name="gathering_near",
                condition=Q(state="ACTIVE"),
            ),
            # What the sweeper finalizes: the longest idle first.
            models.Index(fields=["joined_at"], name="gathering_idle", condition=Q(state="ACTIVE")),
            models.Index(fields=["state", "-last_photo_at"], name="gathering_latest"),
        ]

    def __str__(self) -> str:
        return f"gathering {self.pk}"
