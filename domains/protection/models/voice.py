from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from tailrace.domains.protection.models.stored_file import StoredFile


class UploadedVoice(models.Model):
    """The columns of uploaded WAV files."""

    content_hash = models.TextField(
        default="",
        db_default="",
        editable=False,
        help_text="SHA-256 of the file: a file that is sent again is the same",
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        abstract = True


class VoiceEnrolment(UploadedVoice):
    """A sample of a person's own voice, with which recordings are compared."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="voice_enrolments", db_index=False
    )
    file = models.OneToOneField(StoredFile, models.PROTECT, related_name="voice_enrolment")
    seconds = models.FloatField()

    class Meta:
        indexes = [models.Index(fields=["user", "id"], name="tailrace_enrolment_user")]

    def __str__(self) -> str:
        return f"enrolment {self.pk}"

    @property
    def file_name(self) -> str:
        return f"voice-{self.pk}.wav"


class RecordingState(models.TextChoices):
    """
    pending ─► matched | different
       ├─────► unknown   no voice is enrolled; pending again after an enrolment
       └─────► broken    the file cannot be compared; `reason` says why
    """

    PENDING = "pending"
    MATCHED = "matched"
    DIFFERENT = "different"
    UNKNOWN = "unknown"
    BROKEN = "broken"


class Recording(UploadedVoice):
    """A recording that is compared with the enrolled voices of its user."""

    State: ClassVar[type[RecordingState]] = RecordingState

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="recordings", db_index=False
    )
    file = models.OneToOneField(StoredFile, models.PROTECT, related_name="recording")
    name = models.TextField(help_text="of the file, as it was sent")
    state = models.TextField(choices=RecordingState.choices, default=RecordingState.PENDING)
    reason = models.TextField(default="", blank=True, help_text="why it is broken or unknown")
    score = models.FloatField(null=True, blank=True, help_text="of the most similar voice, to 1")
    model_name = models.TextField(default="", blank=True, help_text="what gave the score")
    model_version = models.TextField(default="", blank=True)
    compared_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["user", "-id"], name="tailrace_recording_user"),
            models.Index(
                fields=["user", "id"],
                name="tailrace_recording_pending",
                condition=Q(state="pending"),
            ),
        ]

    def __str__(self) -> str:
        return f"recording {self.pk}"

    @property
    def file_name(self) -> str:
        return self.name or f"recording-{self.pk}.wav"
