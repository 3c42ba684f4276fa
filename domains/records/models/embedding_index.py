from django.db import models
from django.db.models.functions import Now


class EmbeddingIndexQuerySet(models.QuerySet["EmbeddingIndex"]):
    def complete(self) -> "EmbeddingIndexQuerySet":
        """Return the models that are marked as complete, the latest first."""
        return self.filter(completed_at__isnull=False).order_by("-completed_at", "-pk")


class EmbeddingIndex(models.Model):
    """A version of an embedding model that indexes, or has indexed, records."""

    location = models.TextField(help_text="folder, or hashing:DIMENSIONS")
    model = models.TextField(help_text="name of the embedding model")
    model_version = models.TextField()
    dimensions = models.PositiveIntegerField()
    started_at = models.DateTimeField(db_default=Now())
    completed_at = models.DateTimeField(
        null=True, blank=True, help_text="when it had all records; from then on search uses it"
    )

    objects = EmbeddingIndexQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "embedding indexes"
        constraints = [
            models.UniqueConstraint(
                fields=["model", "model_version"], name="tailrace_embedding_index_once_per_model"
            )
        ]

    def __str__(self) -> str:
        return f"{self.model} {self.model_version}"
