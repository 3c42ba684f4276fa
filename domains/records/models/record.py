from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from tailrace.domains.records.models.deposition import Deposition


class RecordQuerySet(models.QuerySet["Record"]):
    def current(self) -> "RecordQuerySet":
        """Return records that are not withdrawn."""
        return self.filter(is_deleted=False)


class Record(models.Model):
    """The latest published version of the depositions with the same identifier."""

    class Access(models.TextChoices):
        OPEN = "open"
        CLOSED = "closed"

    identifier = models.TextField(unique=True)
    version = models.PositiveIntegerField(default=1, help_text="rises with each publication")
    deposition = models.ForeignKey(
        Deposition,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="records",
        help_text="the version that it shows",
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="records",
        help_text="who deposited it; empty: harvested",
    )
    access = models.TextField(
        choices=Access.choices, default=Access.OPEN, help_text="closed: only the owner reads it"
    )
    title = models.TextField(default="", blank=True)
    description = models.TextField(default="", blank=True)
    creators = ArrayField(models.TextField(), default=list, blank=True)
    keywords = ArrayField(models.TextField(), default=list, blank=True)
    language = models.TextField(default="", blank=True, help_text="ISO 639-1; empty: unknown")
    datestamp = models.DateTimeField(help_text="of its deposition")
    is_deleted = models.BooleanField(default=False, help_text="withdrawn, and in no index")
    published_at = models.DateTimeField(db_default=Now(), help_text="of its latest version")

    objects = RecordQuerySet.as_manager()

    class Meta:
        indexes = [models.Index(fields=["-published_at", "-id"], name="tailrace_record_latest")]

    def __str__(self) -> str:
        return self.title or self.identifier
