from django.db import models
from django.db.models.functions import Now


class FileDeletion(models.Model):
    """The files of a deleted photo, until they are deleted. Then the row is deleted."""

    storage_key = models.TextField(help_text="where the files are stored")
    requested_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"files of a deleted photo {self.pk}"
