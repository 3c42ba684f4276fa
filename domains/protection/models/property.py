from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from tailrace.domains.protection.models.alert import AlertFinding, Severity


class Borough(models.IntegerChoices):
    """The boroughs of New York City, by the numbers that its records use."""

    MANHATTAN = 1, "Manhattan"
    BRONX = 2, "Bronx"
    BROOKLYN = 3, "Brooklyn"
    QUEENS = 4, "Queens"
    STATEN_ISLAND = 5, "Staten Island"


class WatchedProperty(models.Model):
    """A lot or an address whose public records are watched. `services.properties.watch` adds and
    removes it.

    It has either block and lot, or street number and street name, with or without a unit.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.CASCADE,
        related_name="watched_properties",
        db_index=False,
    )
    source = models.TextField(help_text="whose public records they are")
    borough = models.PositiveSmallIntegerField(choices=Borough.choices)
    block = models.PositiveIntegerField(null=True, blank=True)
    lot = models.PositiveIntegerField(null=True, blank=True)
    street_number = models.TextField(default="", blank=True)
    street_name = models.TextField(default="", blank=True)
    unit = models.TextField(default="", blank=True)
    key = models.TextField(help_text="the lot or address, normalised")
    place_key = models.TextField(help_text="the same without the unit: change feeds name that")
    scanned_at = models.DateTimeField(null=True, blank=True)
    scanned_by = models.BigIntegerField(
        null=True, blank=True, help_text="the job that began the run that scanned it last"
    )
    concerned_at = models.DateTimeField(
        null=True, blank=True, help_text="since when a change feed names it and no scan has read it"
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name_plural = "watched properties"
        constraints = [
            models.UniqueConstraint(
                fields=["user", "source", "key"], name="tailrace_protection_property_once"
            ),
            models.CheckConstraint(
                condition=Q(block__isnull=False, lot__isnull=False, street_name="")
                | Q(block__isnull=True, lot__isnull=True) & ~Q(street_name=""),
                name="tailrace_protection_property_place",
            ),
        ]
        indexes = [
            models.Index(fields=["user", "id"], name="tailrace_property_user"),
            models.Index(fields=["place_key"], name="tailrace_property_place_key"),
            models.Index(
                fields=["user", "id"],
                name="tailrace_property_concerned",
                condition=Q(concerned_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"property {self.pk}"

    @property
    def title(self) -> str:
        borough = Borough(self.borough).label
        if self.block is not None:
            return f"{borough}, block {self.block}, lot {self.lot}"
        unit = f", unit {self.unit}" if self.unit else ""
        return f"{self.street_number} {self.street_name.title()}{unit}, {borough}"


class PropertySnapshot(models.Model):
    """The public records of a property as they were last read. Scans compare the records with it.

    `documents` has the fields of `services.properties.documents.Document` by document id.
    """

    property = models.OneToOneField(
        WatchedProperty, models.CASCADE, related_name="snapshot", primary_key=True
    )
    documents = models.JSONField(default=dict)
    hash = models.TextField(help_text="of the documents, with names as they are compared")
    watermark = models.TextField(default="", help_text="until when the records are complete")
    complete = models.BooleanField(
        default=True, help_text="no: it has more documents than are watched"
    )
    read_at = models.DateTimeField(help_text="when reading the records began")

    def __str__(self) -> str:
        return f"snapshot of property {self.pk}"


class ChangeKind(models.TextChoices):
    OWNERSHIP_TRANSFER = "ownership_transfer", "ownership transfer"
    LIEN_FILING = "lien_filing", "lien"
    DEED_CHANGE = "deed_change", "deed change"
    TAX_CHANGE = "tax_change", "tax document"


class PropertyChange(AlertFinding):
    """A new or changed document in the records of a property, once per document and kind."""

    property = models.ForeignKey(
        WatchedProperty, models.CASCADE, related_name="changes", db_index=False
    )
    document_id = models.TextField()
    kind = models.TextField(choices=ChangeKind.choices)
    severity = models.SmallIntegerField(choices=Severity.choices)
    details = models.JSONField(default=dict, help_text="type, dates, amount and names")
    fingerprint = models.TextField(help_text="a hash of the document, to notice a correction of it")
    noticed_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["property", "document_id", "kind"], name="tailrace_protection_change_once"
            )
        ]
        indexes = [
            models.Index(fields=["property", "-id"], name="tailrace_change_property"),
            models.Index(
                fields=["alert"],
                name="tailrace_change_unannounced",
                condition=Q(announced_at__isnull=True),
            ),
        ]

    def __str__(self) -> str:
        return f"change {self.pk}"


class DeedFeed(models.Model):
    """How far the change feed of a source's dataset was read."""

    name = models.TextField(primary_key=True, help_text="source and dataset")
    position = models.JSONField(default=dict, help_text="as the source describes it")
    read_at = models.DateTimeField(help_text="when it was last read to its end")

    def __str__(self) -> str:
        return self.name
