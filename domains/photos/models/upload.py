from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from domains.photos.models.photo import Photo


class Upload(models.Model):
    """A picture that is being stored, or was under a caller's Idempotency-Key.

    The row is written before the files and ends with the photo's transaction, so that files that
    nobody finished are known by it.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="photo_uploads", db_index=False
    )
    storage_key = models.TextField(default="", blank=True, help_text="of the files; empty: none")
    idempotency_key = models.TextField(default="", blank=True)
    fingerprint = models.TextField(default="", blank=True, help_text="of what was sent with it")
    started_at = models.DateTimeField(db_default=Now())
    photo = models.ForeignKey(
        Photo, models.CASCADE, null=True, blank=True, related_name="uploads", db_index=False
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user", "idempotency_key"],
                name="photo_upload_once",
                condition=Q(photo__isnull=False),
            )
        ]
        indexes = [
            models.Index(fields=["started_at"], name="photo_upload_started"),
            models.Index(fields=["photo"], name="photo_upload_photo"),
            models.Index(fields=["user"], name="photo_upload_user"),
        ]

    def __str__(self) -> str:
        return f"upload {self.pk}"
