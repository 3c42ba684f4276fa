from django.db import models
from django.db.models.functions import Now


class StoredFile(models.Model):
    """A file in the storage `protection`. Its row is written before the file, and deleted after it.

    The owner of a file refers to it by a `OneToOneField`. A row without an owner is left over from
    a writer that failed, or from a deleted owner: the invariant `protection.files_have_owners`
    deletes it with its file.
    """

    key = models.TextField(unique=True, help_text="where the file is stored")
    size = models.BigIntegerField(help_text="bytes")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [models.Index(fields=["created_at"], name="tailrace_file_created")]

    def __str__(self) -> str:
        return f"file {self.pk}"
