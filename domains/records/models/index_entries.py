from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models

from tailrace.db.real_field import RealField
from tailrace.domains.records.models.record import Record


class KeywordEntry(models.Model):
    record = models.OneToOneField(
        Record, models.CASCADE, primary_key=True, related_name="keyword_entry"
    )
    version = models.PositiveIntegerField(help_text="of the record when it was indexed")
    language = models.TextField(default="", blank=True, help_text="of the record at that time")
    document = SearchVectorField()

    class Meta:
        verbose_name_plural = "keyword entries"
        indexes = [GinIndex(fields=["document"], name="tailrace_keyword_document")]

    def __str__(self) -> str:
        return f"keywords of record {self.pk}"


class VectorEntry(models.Model):
    """The embedding of a record by one version of an embedding model."""

    record = models.ForeignKey(
        Record, models.CASCADE, related_name="vector_entries", db_index=False
    )
    version = models.PositiveIntegerField(help_text="of the record when it was indexed")
    model = models.TextField(help_text="name of the embedding model")
    model_version = models.TextField()
    dimensions = models.PositiveIntegerField()
    embedding = ArrayField(RealField())

    class Meta:
        verbose_name_plural = "vector entries"
        constraints = [
            models.UniqueConstraint(
                fields=["record", "model", "model_version"],
                name="tailrace_vector_entry_once_per_model",
            )
        ]

    def __str__(self) -> str:
        return f"{self.model} of record {self.record_id}"
