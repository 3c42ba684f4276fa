"""Enrol a voice, store a recording, and delete them: within what an account may have."""

from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction

from domains.protection.files import storage
from domains.protection.models import Recording, StoredFile, VoiceEnrolment
from domains.protection.models.voice import RecordingState
from domains.protection.voices.wav import MOST_BYTES, RATE, BrokenFile, read_wav
from events.validation import clean
from jobs.enqueue import enqueue
from web.user_lock import locked

HANDLER = "protection.voiceprint_batch"
FOLDER = "voices"
MOST_VOICES = 3
MOST_NAME = 200


class VoiceRejected(Exception):
    """The file is not stored; the message says why."""


def enrol(user: User, content: bytes) -> VoiceEnrolment:
    """Store a sample of the user's own voice. Raises VoiceRejected, or OSError.

    Recordings that wait for a voice are compared with it.
    """
    try:
        seconds = len(read_wav(content)) / RATE
    except BrokenFile as error:
        raise VoiceRejected(str(error)) from None
    file = storage.write(FOLDER, content, ".wav")
    with locked(user):
        if VoiceEnrolment.objects.filter(user=user).count() >= MOST_VOICES:
            storage.release([file.pk])
            refused = True
        else:
            refused = False
            row = VoiceEnrolment.objects.create(user=user, file=file, seconds=seconds)
            unknown = Recording.objects.filter(user=user, state=RecordingState.UNKNOWN)
            if unknown.update(state=RecordingState.PENDING, reason="", compared_at=None):
                enqueue_comparison(user)
    if refused:
        raise VoiceRejected(f"you have {MOST_VOICES} voices, the maximum: delete one first")
    return row


def record(user: User, content: bytes, name: str) -> Recording:
    """Store a recording, which a job compares. Raises VoiceRejected, or OSError."""
    if len(content) > MOST_BYTES:
        raise VoiceRejected(f"it has {len(content) / 1e6:.1f} MB; a recording has at most 1 MB")
    file = storage.write(FOLDER, content, ".wav")
    with locked(user):
        full = Recording.objects.filter(user=user).count() >= most_recordings()
        if full:
            storage.release([file.pk])
        else:
            row = Recording.objects.create(user=user, file=file, name=clean(name)[0][:MOST_NAME])
            enqueue_comparison(user)
    if full:
        raise VoiceRejected(
            f"you have {most_recordings()} recordings, the maximum: delete some first"
            " (PROTECTION_MAX_RECORDINGS_PER_USER)"
        )
    return row


def most_recordings() -> int:
    return int(settings.PROTECTION_MAX_RECORDINGS_PER_USER)


def enqueue_comparison(user: User) -> None:
    enqueue(HANDLER, {"account": user.pk}, lane=str(user.pk), unique_key=str(user.pk))


def delete(model: type[VoiceEnrolment] | type[Recording], user_id: int, ids: list[int]) -> int:
    """Delete these rows of the user with their files; return how many."""
    with transaction.atomic():
        rows: list[Any] = list(
            model._default_manager.filter(user=user_id, pk__in=ids).select_for_update()
        )
        storage.release([row.file_id for row in rows])
        model._default_manager.filter(pk__in=[row.pk for row in rows]).delete()
    return len(rows)


def content_of(file: StoredFile) -> bytes:
    """Return the file's content; empty if it is gone. Raises OSError."""
    try:
        return storage.read(file)
    except FileNotFoundError:
        return b""
