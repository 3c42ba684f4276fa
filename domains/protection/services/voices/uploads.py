"""Enrol voices, store recordings, and delete both, within the limits of an account.

A file that the account has already is not stored again.
"""

import hashlib
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User

from tailrace.domains.protection.files import storage
from tailrace.domains.protection.models import Recording, VoiceEnrolment
from tailrace.domains.protection.models.voice import RecordingState
from tailrace.domains.protection.services.voices.wav import MOST_BYTES, RATE, BrokenFile, read_wav
from tailrace.events.publishing.validation import clean
from tailrace.jobs.enqueue import enqueue
from tailrace.web.accounts.user_lock import locked
from tailrace.web.uploads.errors import QuotaExceeded, StorageUnavailable, UploadRejected
from tailrace.web.uploads.limits import megabytes

HANDLER = "protection.voiceprint_batch"
FOLDER = "voices"
MOST_VOICES = 3
MOST_NAME = 200
DOWNLOAD_COST = 2


def enrol(user: User, content: bytes) -> VoiceEnrolment:
    """Store a sample of the user's own voice. Raises UploadRejected or StorageUnavailable.

    Recordings that wait for a voice are compared with it.
    """
    try:
        seconds = len(read_wav(content)) / RATE
    except BrokenFile as error:
        raise UploadRejected(("file", str(error))) from None
    rows = VoiceEnrolment.objects.filter(user=user)
    row: VoiceEnrolment = _store(rows, user, content, MOST_VOICES, "voices", seconds=seconds)
    return row


def record(user: User, content: bytes, name: str) -> Recording:
    """Store a recording and enqueue its comparison. Raises UploadRejected or StorageUnavailable."""
    if len(content) > MOST_BYTES:
        message = f"the file has {megabytes(len(content))}; the limit is 1 MB"
        raise UploadRejected(("file", message))
    rows, name = Recording.objects.filter(user=user), clean(name)[0][:MOST_NAME]
    most = settings.PROTECTION_MAX_RECORDINGS_PER_USER
    row: Recording = _store(rows, user, content, most, "recordings", name=name)
    return row


def _store(rows: Any, user: User, content: bytes, most: int, label: str, **columns: Any) -> Any:
    """Return the row of the new file, or the account's existing row with the same content."""
    content_hash = hashlib.sha256(content).hexdigest()
    if (same := rows.filter(content_hash=content_hash).first()) is not None:
        return same
    try:
        file = storage.write(FOLDER, content, ".wav")
    except OSError as error:
        raise StorageUnavailable(error) from error
    with locked(user):
        row = rows.filter(content_hash=content_hash).first()
        if row is None and rows.count() < most:
            row = rows.create(user=user, file=file, content_hash=content_hash, **columns)
            _enqueue_comparison_of(user, row)
        else:
            storage.release([file.pk])
    if row is None:
        raise QuotaExceeded(("file", f"you have {most} {label}, the maximum: delete one first"))
    return row


def _enqueue_comparison_of(user: User, row: VoiceEnrolment | Recording) -> None:
    """Enqueue the comparison of a new recording, or of those that wait for the new voice."""
    if isinstance(row, VoiceEnrolment):
        waiting = Recording.objects.filter(user=user, state=RecordingState.UNKNOWN)
        if not waiting.update(state=RecordingState.PENDING, reason="", compared_at=None):
            return
    enqueue(HANDLER, {"account": user.pk}, unique_key=str(user.pk))
