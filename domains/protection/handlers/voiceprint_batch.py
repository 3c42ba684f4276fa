"""Compare an account's pending recordings with its enrolled voices."""

from collections import Counter
from typing import Any

from django.db.models.functions import Now

from tailrace.domains.protection.files import storage
from tailrace.domains.protection.handlers.account_handler import AccountHandler
from tailrace.domains.protection.models import Recording, VoiceEnrolment
from tailrace.domains.protection.models.voice import RecordingState
from tailrace.domains.protection.services.voices.comparing import Comparison, compare
from tailrace.domains.protection.services.voices.uploads import HANDLER
from tailrace.domains.protection.services.voices.wav import ModelUnusable
from tailrace.jobs.handler import ClaimedJob, Permanent, Snooze
from tailrace.web.accounts.user_lock import locked

MOST = 8
"""Recordings per call; then jobs of other accounts run."""


class CompareVoices(AccountHandler):
    """Determine for each pending recording of an account whether one of its enrolled voices speaks
    in it."""

    name = HANDLER
    time_limit = 900

    def handle(self, job: ClaimedJob) -> Any:
        pending = Recording.objects.filter(user=job.payload.account, state=RecordingState.PENDING)
        recordings = list(pending.select_related("file", "user").order_by("pk")[:MOST])
        if not recordings:
            return {"compared": 0}
        voices = VoiceEnrolment.objects.filter(user=job.payload.account).select_related("file")
        try:
            verdicts = compare(
                [storage.read(voice.file) for voice in voices.order_by("pk")],
                [storage.read(recording.file) for recording in recordings],
            )
        except ModelUnusable as error:
            raise Permanent(f"PROTECTION_VOICE_MODEL: {error}") from error
        for recording, verdict in zip(recordings, verdicts, strict=False):
            _settle(recording, verdict)
        if pending.exists():
            raise Snooze("more recordings are pending", seconds=0)
        states = Counter(verdict.state for verdict in verdicts)
        return {"compared": len(verdicts), **states}


def _settle(recording: Recording, verdict: Comparison) -> None:
    """Store the verdict, unless another worker has stored one.

    A recording without a voice to compare with stays pending if a voice has been enrolled since.
    """
    is_unknown = verdict.state == RecordingState.UNKNOWN
    with locked(recording.user):
        voices = VoiceEnrolment.objects.filter(user=recording.user_id)
        if is_unknown and voices.exists():
            return
        Recording.objects.filter(pk=recording.pk, state=RecordingState.PENDING).update(
            state=verdict.state,
            reason="no voice is enrolled" if is_unknown else verdict.reason,
            score=verdict.score,
            model_name=verdict.model_name,
            model_version=verdict.model_version,
            compared_at=Now(),
        )
