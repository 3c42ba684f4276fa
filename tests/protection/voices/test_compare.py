"""Recordings are compared with enrolled voices; a broken file fails its own recording alone."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.contrib.auth.models import User

from tailrace.domains.protection.files import storage
from tailrace.domains.protection.handlers import voiceprint_batch
from tailrace.domains.protection.models import Recording, StoredFile, VoiceEnrolment
from tailrace.domains.protection.services.voices import comparing, spectra, uploads
from tailrace.domains.protection.services.voices.uploads import HANDLER
from tailrace.domains.protection.services.voices.wav import BrokenFile, read_wav
from tailrace.jobs.models import Job
from tailrace.web.accounts.deletion import delete_account, request_deletion
from tailrace.web.uploads.errors import UploadRejected
from tests.protection.voices import onnx_file
from tests.protection.voices.sounds import HIGH, LOW, speech, wav
from tests.security.remains import files_in
from tests.subscriptions.sample_domain import person

pytestmark = pytest.mark.django_db
GOOD = wav(speech(LOW, 2))
MP3 = b"\xff\xfb\x90\x64" + bytes(4000)
HOURS = GOOD[:40] + (3 * 3600 * 32_000).to_bytes(4, "little") + GOOD[44:]
BROKEN = {
    "empty": (b"", "the file is empty"),
    "three hours": (HOURS, "the recording lasts 10,800 s; the limit is 30 s"),
    "cut off": (GOOD[:-20_000], "the file is cut off"),
    "cut header": (GOOD[:30], "the WAV file cannot be read"),
    "mp3": (MP3, "this is an MP3 file; save it as WAV"),
    "ID3": (b"ID3\x04" + bytes(400), "this is an MP3 file"),
    "text": (b"hello, I am no sound", "this is not a WAV file"),
    "silent": (wav(np.zeros(32_000)), "the recording is silent"),
    "stereo": (wav(speech(LOW, 2), channels=2), "the file has 2 channels"),
    "8 kHz": (wav(speech(LOW, 2), rate=8000), "the file has 8,000 samples per second"),
    "8 bit": (wav(speech(LOW, 2), width=1), "the samples have 8 bits"),
    "too short": (wav(speech(LOW, 0.25)), "the recording lasts 0.25 s"),
}


@pytest.fixture
def ann() -> User:
    return person("ann")


def states(user: User) -> list[str]:
    return list(Recording.objects.filter(user=user).order_by("pk").values_list("state", flat=True))


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_file_says_why(kind: str) -> None:
    content, reason = BROKEN[kind]
    with pytest.raises(BrokenFile) as error:
        read_wav(content)
    assert reason in str(error.value)


def test_the_baseline_separates_two_speakers_and_is_named(ann, run_jobs) -> None:
    for seed in (1, 2):
        uploads.enrol(ann, wav(speech(LOW, seed=seed)))
    uploads.record(ann, wav(speech(LOW, seed=8)), "own.wav")
    uploads.record(ann, wav(speech(HIGH, seed=9)), "other.wav")
    run_jobs(HANDLER)
    own, other = Recording.objects.order_by("pk")
    assert (own.state, other.state) == ("matched", "different")
    assert own.score > spectra.THRESHOLD > other.score + 0.1
    assert {own.model_name, other.model_name} == {"spectral baseline (no speaker model)"}
    assert own.model_version == "1"


def test_a_broken_file_fails_alone(ann, run_jobs) -> None:
    uploads.enrol(ann, wav(speech(LOW)))
    uploads.record(ann, MP3, "call.wav")
    uploads.record(ann, wav(speech(LOW, seed=5)), "good.wav")
    uploads.record(ann, b"", "empty.wav")
    run_jobs(HANDLER)
    assert states(ann) == ["broken", "matched", "broken"]
    assert "MP3" in Recording.objects.earliest("pk").reason


def test_without_a_voice_the_verdict_is_unknown_until_one_is_enrolled(ann, run_jobs) -> None:
    uploads.record(ann, wav(speech(LOW, seed=5)), "call.wav")
    run_jobs(HANDLER)
    row = Recording.objects.get()
    assert (row.state, row.reason, row.score) == ("unknown", "no voice is enrolled", None)
    uploads.enrol(ann, wav(speech(LOW)))
    run_jobs(HANDLER)
    assert states(ann) == ["matched"]


def test_a_voice_that_is_enrolled_meanwhile_is_compared_with(
    ann, run_jobs, clock, monkeypatch
) -> None:
    def enrol_meanwhile(*args: Any) -> list[Any]:
        verdicts = comparing.compare(*args)
        uploads.enrol(ann, wav(speech(LOW)))
        return verdicts

    monkeypatch.setattr(voiceprint_batch, "compare", enrol_meanwhile)
    uploads.record(ann, wav(speech(LOW, seed=5)), "call.wav")
    run_jobs(HANDLER)
    assert states(ann) == ["pending"], "not unknown for ever"
    clock.step(5)
    run_jobs(HANDLER)
    assert states(ann) == ["matched"]


def test_many_recordings_leave_the_turn_to_others(ann, run_jobs, clock, monkeypatch) -> None:
    monkeypatch.setattr(voiceprint_batch, "MOST", 2)
    for number in range(3):
        uploads.record(ann, MP3 + bytes([number]), "call.wav")
    run_jobs(HANDLER)
    assert states(ann) == ["broken", "broken", "pending"]
    assert Job.objects.get(handler=HANDLER).attempt == 0, "charged nothing"
    clock.step(5)
    run_jobs(HANDLER)
    assert states(ann) == ["broken"] * 3


def test_a_model_gives_the_score_with_its_name_and_version(
    ann, run_jobs, settings, tmp_path: Path
) -> None:
    pytest.importorskip("onnxruntime")
    path = tmp_path / "tiny.onnx"
    path.write_bytes(onnx_file.model())
    settings.PROTECTION_VOICE_MODEL = str(path)
    settings.PROTECTION_VOICE_THRESHOLD = 0.8
    uploads.enrol(ann, wav(speech(LOW)))
    uploads.record(ann, wav(speech(LOW, seed=8)), "own.wav")
    uploads.record(ann, wav(speech(HIGH, seed=9)), "other.wav")
    run_jobs(HANDLER)
    own, other = Recording.objects.order_by("pk")
    assert (own.state, other.state) == ("matched", "different"), (own.score, other.score)
    assert own.model_name == "tiny"
    assert len(own.model_version) == 12


def test_a_model_that_cannot_be_loaded_is_an_error_that_names_it(
    ann, run_jobs, settings, tmp_path: Path
) -> None:
    pytest.importorskip("onnxruntime")
    path = tmp_path / "nonsense.onnx"
    path.write_bytes(b"no model")
    settings.PROTECTION_VOICE_MODEL = str(path)
    uploads.enrol(ann, GOOD)
    uploads.record(ann, GOOD, "call.wav")
    run_jobs(HANDLER)
    job = Job.objects.get(handler=HANDLER)
    assert job.state == "failed"
    assert f"PROTECTION_VOICE_MODEL: {path} cannot be loaded" in job.error
    assert states(ann) == ["pending"]


def test_a_model_that_never_ends_holds_no_worker(ann, run_jobs, settings, tmp_path, monkeypatch):
    fifo = tmp_path / "slow.onnx"
    os.mkfifo(fifo)  # reading it never ends
    settings.PROTECTION_VOICE_MODEL = str(fifo)
    settings.PROTECTION_VOICE_SECONDS = 1
    monkeypatch.setattr(comparing, "START_SECONDS", 1)
    uploads.enrol(ann, GOOD)
    uploads.record(ann, GOOD, "call.wav")
    run_jobs(HANDLER)
    job = Job.objects.get(handler=HANDLER)
    assert "did not begin in time" in job.error
    assert states(ann) == ["pending"]


def test_an_account_has_three_voices_and_so_many_recordings(ann, settings, run_jobs) -> None:
    settings.PROTECTION_MAX_RECORDINGS_PER_USER = 1
    first, *others, fourth = (wav(speech(LOW, 2, seed)) for seed in range(4))
    for sound in (first, *others, first):
        uploads.enrol(ann, sound)
    with pytest.raises(UploadRejected, match="3 voices, the maximum"):
        uploads.enrol(ann, fourth)
    uploads.record(ann, first, "a.wav")
    with pytest.raises(UploadRejected, match="1 recordings, the maximum"):
        uploads.record(ann, fourth, "b.wav")
    run_jobs(storage.HANDLER)
    assert StoredFile.objects.count() == 4


def test_files_go_with_their_rows_and_the_account(ann, run_jobs, protection_folder: Any) -> None:
    voice = uploads.enrol(ann, GOOD)
    uploads.record(ann, GOOD, "a.wav")
    assert storage.delete_owners(VoiceEnrolment.objects.filter(pk=voice.pk)) == 1
    run_jobs(storage.HANDLER)
    assert len(files_in(protection_folder)) == 1
    request_deletion(ann)
    assert delete_account(ann.pk)
    run_jobs(storage.HANDLER)
    assert files_in(protection_folder) == []
