from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from tailrace.domains.timeline.models.device import Device


class State(models.TextChoices):
    """
    receiving ─► queued ◄► parsing ─► grace ─► promoting ─► enriching ─► completed
                   │          │ │       │ ▲                     │            │
                   │          │ └► needs decision               └─► undoing ◄┘
                   │          ▼         │                              │
                   └────► cancelled ◄───┘ (also from grace)            └─► undone

    An import ends as `failed` if its file has no usable points. If a crash of the database loses
    the staged points, the import is queued again, from grace or from promoting.
    """

    RECEIVING = "receiving"
    QUEUED = "queued"
    PARSING = "parsing"
    NEEDS_DECISION = "needs_decision", "needs a decision"
    GRACE = "grace", "ready"
    PROMOTING = "promoting"
    ENRICHING = "enriching"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    FAILED = "failed"
    UNDOING = "undoing"
    UNDONE = "undone"


CANCELLABLE = (State.QUEUED, State.PARSING, State.NEEDS_DECISION, State.GRACE)
"""States in which no point has reached the timeline."""
UNFINISHED = (State.RECEIVING, *CANCELLABLE, State.PROMOTING)
PROMOTED = (State.ENRICHING, State.COMPLETED)
WITHOUT_POINTS = (State.CANCELLED, State.FAILED, State.UNDONE)
"""States of ended imports that are a source of no point."""
ENDED = (State.COMPLETED, *WITHOUT_POINTS)
STAGED = (State.PARSING, State.NEEDS_DECISION, State.GRACE, State.PROMOTING)
"""States in which the import has a partition of staged points."""


class ImportQuerySet(models.QuerySet["Import"]):
    def unfinished(self) -> "ImportQuerySet":
        """Imports that are not promoted yet, and have not ended."""
        return self.filter(state__in=UNFINISHED)

    def hidden(self) -> "ImportQuerySet":
        """Imports whose points readers do not see: the promotion is not finished, or was undone."""
        return self.filter(visible=False)

    def in_between(self) -> "ImportQuerySet":
        """Imports that may have hidden points in the timeline: promoted in part, in whatever state,
        or being undone."""
        return self.hidden().exclude(promotion_began_at=None).exclude(state__in=ENDED)


class Import(models.Model):
    """The import of a file of points into the timeline of its user.

    staged + rejected = points read so far. After the promotion, inserted + duplicates = staged.
    A point that an undo of another import leaves to this import moves from duplicates to inserted.
    """

    State: ClassVar[type[State]] = State

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="timeline_imports", db_index=False
    )
    device = models.ForeignKey(
        Device,
        models.CASCADE,
        null=True,
        blank=True,
        related_name="imports",
        help_text="empty: the import has ended, and brought nothing",
    )
    device_name = models.TextField(
        db_default="", default="", blank=True, help_text="of the former device"
    )
    one_device = models.BooleanField(
        db_default=False,
        default=False,
        help_text="all points are of its device, even if the file tells several devices apart",
    )
    tags = models.JSONField(
        default=dict,
        db_default=models.Value({}, models.JSONField()),
        blank=True,
        help_text="which points of the file it has, by the tag of the device; empty: all",
    )
    part_of = models.ForeignKey(
        "self",
        models.DO_NOTHING,
        null=True,
        blank=True,
        db_constraint=False,
        db_index=False,
        related_name="parts",
        help_text="the import of the same file with the points of another device",
    )
    state = models.TextField(choices=State.choices, default=State.RECEIVING)
    visible = models.BooleanField(
        db_default=False, help_text="readers see its points; set with the promotion's end"
    )
    file_name = models.TextField()
    storage_key = models.TextField(help_text="where the file is stored; empty: it was deleted")
    size = models.BigIntegerField(help_text="bytes of the file")
    formats = models.TextField(default="", blank=True)
    created_at = models.DateTimeField(db_default=Now())
    job_id = models.BigIntegerField(null=True, blank=True, help_text="the job of the present step")

    run = models.TextField(
        default="", blank=True, help_text="the claim of the worker that stages or promotes it"
    )
    parsing_since = models.DateTimeField(null=True, blank=True)
    bytes_read = models.BigIntegerField(default=0)
    staged = models.BigIntegerField(default=0, help_text="points read and accepted")
    rejected = models.BigIntegerField(default=0, help_text="points read and not accepted")
    tally = models.JSONField(default=dict, blank=True, help_text="why, with the first of them")
    expected_duplicates = models.BigIntegerField(null=True, blank=True)
    first_at = models.DateTimeField(null=True, blank=True, help_text="the first point")
    last_at = models.DateTimeField(null=True, blank=True, help_text="the last point")
    days = models.JSONField(
        default=dict, blank=True, help_text="how many days have points, and the latest of them"
    )
    error = models.TextField(default="", blank=True, help_text="what is wrong with the file, where")
    accepts_part = models.BooleanField(
        default=False, help_text="the owner wants the part before the error"
    )
    times_lost = models.PositiveIntegerField(
        default=0, help_text="how often its staged points were lost in a crash of the database"
    )

    promote_at = models.DateTimeField(null=True, blank=True, help_text="the end of the grace")
    promotion_began_at = models.DateTimeField(
        null=True, blank=True, help_text="from then on, points of it may be in the timeline"
    )
    promoted_blocks = models.BigIntegerField(default=0, help_text="of the partition: the cursor")
    inserted = models.BigIntegerField(default=0, help_text="points whose first source it is")
    duplicates = models.BigIntegerField(default=0)
    shared = models.BigIntegerField(
        default=0, db_default=0, help_text="points with it as a further source"
    )
    promoted_at = models.DateTimeField(null=True, blank=True)
    undo_until = models.DateTimeField(null=True, blank=True, help_text="the end of its undo")

    undo_cursor = models.DateTimeField(null=True, blank=True)
    removed = models.BigIntegerField(default=0, help_text="points that undoing has removed")
    ended_at = models.DateTimeField(null=True, blank=True)

    objects = ImportQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["user", "-id"], name="tailrace_import_of_user"),
            models.Index(
                fields=["user"], name="tailrace_import_hidden", condition=Q(visible=False)
            ),
            models.Index(
                fields=["state", "created_at"],
                name="tailrace_timeline_import_open",
                condition=~Q(state__in=ENDED),
            ),
            # Imports with a stored file, for the deletion of expired files.
            models.Index(
                fields=["ended_at"],
                name="tailrace_timeline_import_file",
                condition=~Q(storage_key=""),
            ),
            models.Index(
                fields=["ended_at"],
                name="tailrace_timeline_import_ended",
                condition=Q(visible=False),
            ),
            models.Index(fields=["storage_key"], name="tailrace_timeline_import_key"),
        ]

    def __str__(self) -> str:
        return f"import {self.pk}"

    @property
    def read(self) -> int:
        """Points read so far, accepted or not."""
        return self.staged + self.rejected

    @property
    def device_label(self) -> str:
        return self.device_name if self.device is None else self.device.label
