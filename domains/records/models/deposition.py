from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from tailrace.domains.records.models.source import Source

UNFINISHED = ("submitted", "valid", "approved")
"""States of depositions that a handler or a curator still has to process."""


class DepositionQuerySet(models.QuerySet["Deposition"]):
    def unfinished(self) -> "DepositionQuerySet":
        return self.filter(state__in=UNFINISHED)


class Deposition(models.Model):
    """One submitted version of a record, and its state.

        submitted ──► valid ──► approved ──► published, or superseded if a newer one is published
            │           │
            ▼           ▼ by a curator
         invalid     rejected

    A withdrawal is a deposition with `is_deleted` and without metadata.
    """

    class State(models.TextChoices):
        SUBMITTED = "submitted"
        VALID = "valid"
        INVALID = "invalid"
        APPROVED = "approved"
        PUBLISHED = "published"
        REJECTED = "rejected"
        SUPERSEDED = "superseded"

    identifier = models.TextField(help_text="of the record; its versions have it in common")
    source = models.ForeignKey(
        Source,
        models.PROTECT,
        null=True,
        blank=True,
        related_name="depositions",
        db_index=False,
        help_text="where it was harvested; empty: submitted by a user",
    )
    source_identifier = models.TextField(
        default="", blank=True, help_text="the identifier that the source uses"
    )
    submitted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="depositions",
        db_index=False,
    )
    submitted_at = models.DateTimeField(db_default=Now())
    datestamp = models.DateTimeField(help_text="of this version; the latest is the record's")
    metadata = models.JSONField(default=dict, blank=True)
    digest = models.TextField(help_text="of the metadata and the files")
    is_deleted = models.BooleanField(default=False, help_text="withdraws the record")
    state = models.TextField(choices=State.choices, default=State.SUBMITTED)
    problems = models.JSONField(
        default=list, blank=True, help_text="why it is invalid: fields and messages"
    )
    reason = models.TextField(default="", blank=True, help_text="why it was rejected or withdrawn")
    request_key = models.TextField(
        default="", blank=True, help_text="the Idempotency-Key of its request"
    )

    objects = DepositionQuerySet.as_manager()

    class Meta:
        constraints = [
            # A source may list a version again: that is the same deposition.
            models.UniqueConstraint(
                fields=["identifier", "datestamp", "digest"], name="tailrace_deposition_once"
            ),
            models.UniqueConstraint(
                fields=["submitted_by", "request_key"],
                condition=~Q(request_key=""),
                name="tailrace_deposition_request_once",
            ),
        ]
        indexes = [
            models.Index(fields=["submitted_by", "-id"], name="tailrace_deposition_of_user"),
            models.Index(fields=["source", "-id"], name="tailrace_deposition_of_source"),
            models.Index(fields=["state", "-id"], name="tailrace_deposition_by_state"),
            models.Index(
                fields=["submitted_at"],
                name="tailrace_deposition_unfinished",
                condition=Q(state__in=UNFINISHED),
            ),
        ]
        permissions = [("curate_deposition", "Can approve, reject and withdraw depositions")]

    def __str__(self) -> str:
        return f"deposition {self.pk}"

    @property
    def title(self) -> str:
        """The title in the metadata, or the identifier if an invalid deposition has no title."""
        title = self.metadata.get("title")
        return title if isinstance(title, str) and title.strip() else self.identifier


class DepositionFile(models.Model):
    """A file of a deposition, in the storage `records`."""

    deposition = models.ForeignKey(Deposition, models.CASCADE, related_name="files")
    name = models.TextField(help_text="as the depositor named it")
    media_type = models.TextField()
    size = models.BigIntegerField(help_text="bytes")
    digest = models.TextField(help_text="SHA-256 in hexadecimal digits")
    key = models.TextField(unique=True, help_text="where the file is stored")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["deposition", "name"], name="tailrace_deposition_file_name_once"
            )
        ]

    def __str__(self) -> str:
        return self.name
