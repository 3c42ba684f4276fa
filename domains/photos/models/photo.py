from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from tailrace.domains.photos.models.gathering import Gathering
from tailrace.domains.photos.models.location import cell_column, valid_coordinates, vector_column


class PhotoQuerySet(models.QuerySet["Photo"]):
    def unclusterable(self) -> "PhotoQuerySet":
        """Photos that had no gathering when their lookback ended."""
        return self.filter(state=Photo.State.UNCLUSTERABLE)


class Photo(models.Model):
    """A photo's location and time, and the gathering it belongs to.

        unplaced ──── its location comes from the owner's timeline ──► new

        new ──── joins or starts a gathering ──► clustered
         │ ▲                                        ▲
         │ └── a neighbour arrives ──┐              │
         └──── lookback ended ──► unclusterable ────┘

    The sweeper requeues a new photo at its `next_try_at`.
    """

    class State(models.TextChoices):
        UNPLACED = "unplaced"
        NEW = "new"
        CLUSTERED = "clustered"
        UNCLUSTERABLE = "unclusterable"

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="photos",
        db_index=False,
    )
    storage_key = models.TextField(unique=True, help_text="where the picture is stored")
    caption = models.TextField(default="", blank=True)
    lat = models.FloatField(
        null=True, blank=True, help_text="degrees, north is positive; empty: not known yet"
    )
    lon = models.FloatField(null=True, blank=True, help_text="degrees, east is positive")
    cell = cell_column()
    x = vector_column("x")
    y = vector_column("y")
    z = vector_column("z")
    taken_at = models.DateTimeField()
    uploaded_at = models.DateTimeField(db_default=Now())
    original_bytes = models.BigIntegerField(
        db_default=0, help_text="of the picture; 0: stored elsewhere"
    )
    copy_bytes = models.BigIntegerField(
        db_default=0, help_text="of its small copy; 0: stored elsewhere"
    )
    original_deleted_at = models.DateTimeField(
        null=True, blank=True, help_text="when the picture was deleted; its copy stays"
    )
    gathering = models.ForeignKey(
        Gathering, models.PROTECT, null=True, blank=True, related_name="photos", db_index=False
    )
    state = models.TextField(choices=State.choices, default=State.NEW)
    cluster_attempts = models.PositiveIntegerField(
        default=0, help_text="how often the sweeper has retried it"
    )
    next_try_at = models.DateTimeField(null=True, blank=True, db_default=Now())
    opened_at = models.DateTimeField(
        db_default=Now(), help_text="start of the lookback: the upload, or a new neighbour"
    )
    placed_at = models.DateTimeField(
        null=True, blank=True, help_text="when the owner's timeline gave its place"
    )
    given_up_at = models.DateTimeField(null=True, blank=True)
    reason = models.TextField(default="", blank=True, help_text="why it has no gathering")

    objects = PhotoQuerySet.as_manager()

    class Meta:
        constraints = [
            valid_coordinates("photo"),
            # A photo is clustered if and only if it has a gathering.
            models.CheckConstraint(
                condition=Q(state="clustered", gathering__isnull=False)
                | (~Q(state="clustered") & Q(gathering=None)),
                name="tailrace_photo_clustered_has_gathering",
            ),
            models.CheckConstraint(
                condition=~Q(state="new") | Q(next_try_at__isnull=False),
                name="tailrace_photo_new_has_next_try",
            ),
            models.CheckConstraint(
                condition=Q(state="unplaced", lat__isnull=True, lon__isnull=True)
                | (~Q(state="unplaced") & Q(lat__isnull=False, lon__isnull=False)),
                name="tailrace_photo_has_a_place",
            ),
        ]
        indexes = [
            # Photos that may start a gathering: by cell, then by time.
            models.Index(
                fields=["cell", "taken_at"], name="tailrace_photo_near", condition=Q(gathering=None)
            ),
            # Photos that the sweeper requeues: the fewest tries first.
            models.Index(
                fields=["cluster_attempts", "next_try_at", "id"],
                name="tailrace_photo_waiting",
                condition=Q(state="new"),
            ),
            models.Index(
                fields=["gathering", "taken_at"],
                name="tailrace_photo_of_gathering",
                condition=Q(gathering__isnull=False),
            ),
            models.Index(
                fields=["-given_up_at"],
                name="tailrace_photo_unclusterable",
                condition=Q(state="unclusterable"),
            ),
            models.Index(fields=["user", "-uploaded_at"], name="tailrace_photo_of_user"),
            # Photos that wait for a location from their owner's timeline.
            models.Index(
                fields=["user", "taken_at", "id"],
                name="tailrace_photo_unplaced",
                condition=Q(state="unplaced"),
            ),
            # Photos whose originals the sweeper deletes: the oldest first.
            models.Index(
                fields=["uploaded_at"],
                name="tailrace_photo_with_original",
                condition=Q(original_deleted_at=None),
            ),
        ]

    def __str__(self) -> str:
        return f"photo {self.pk}"
