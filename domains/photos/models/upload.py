from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from tailrace.domains.photos.models.photo import Photo


class Upload(models.Model):
    """An upload that is being stored, or that was sent with an Idempotency-Key.

    The row is written before the files, so that the sweeper knows the files of unfinished uploads.
    The transaction that stores the photo deletes it, or, with an Idempotency-Key, adds the photo.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="photo_uploads", db_index=False
    )
    storage_key = models.TextField(
        default="", blank=True, help_text="where the files are stored; empty: no files"
    )
    idempotency_key = models.TextField(default="", blank=True)
    fingerprint = models.TextField(
        default="", blank=True, help_text="hash of the request with this key"
    )
    started_at = models.DateTimeField(db_default=Now())
    photo = models.ForeignKey(
        Photo, models.CASCADE, null=True, blank=True, related_name="uploads", db_index=False
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user", "idempotency_key"],
                name="tailrace_photo_upload_once",
                condition=Q(photo__isnull=False),
            )
        ]
        indexes = [
            models.Index(fields=["started_at"], name="tailrace_photo_upload_started"),
            models.Index(fields=["photo"], name="tailrace_photo_upload_photo"),
            models.Index(fields=["user"], name="tailrace_photo_upload_user"),
        ]

    def __str__(self) -> str:
        return f"upload {self.pk}"
