"""Voices and recordings in the API."""

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import HttpResponse

from tailrace.domains.protection.models import Recording, StoredFile, VoiceEnrolment
from tailrace.domains.protection.services.voices.uploads import HANDLER
from tailrace.domains.protection.services.voices.wav import MOST_BYTES
from tests.protection.voices.sounds import LOW, speech, wav
from tests.subscriptions.sample_domain import person
from tests.web.program import Program, problem

pytestmark = pytest.mark.django_db
VOICES, RECORDINGS = "/protection/voices", "/protection/recordings"
VOICE, CALL = wav(speech(LOW)), wav(speech(LOW, seed=4))


@pytest.fixture
def ann() -> User:
    return person("ann")


def send(api: Program, path: str, content: bytes, name: str = "call.wav", **more) -> HttpResponse:
    return api.client.post(f"/api{path}", {"file": SimpleUploadedFile(name, content), **more})


def test_enrol_upload_verdict_delete(ann, run_jobs) -> None:
    api = Program(ann, "protection:read", "protection:write")
    voice = send(api, VOICES, VOICE)
    assert voice.status_code == 201
    recording = send(api, RECORDINGS, CALL)
    assert recording.status_code == 202
    assert recording.json()["state"] == "pending"
    for path, content, first in ((VOICES, VOICE, voice), (RECORDINGS, CALL, recording)):
        assert send(api, path, content, "again.wav").json() == first.json(), "the same file"
    assert StoredFile.objects.count() == 2
    run_jobs(HANDLER)
    [row] = api.all(RECORDINGS)
    assert (row["state"], row["model_name"]) == ("matched", "spectral baseline (no speaker model)")
    assert api.get(f"{RECORDINGS}/{row['id']}").json() == row
    assert [each["id"] for each in api.all(VOICES)] == [voice.json()["id"]]
    for path, id, content in ((VOICES, voice.json()["id"], VOICE), (RECORDINGS, row["id"], CALL)):
        file = api.get(f"{path}/{id}/file")
        assert (file.getvalue(), file["Content-Type"]) == (content, "application/octet-stream")
        assert file["Content-Disposition"].startswith("attachment; filename=")
        assert file["X-Content-Type-Options"] == "nosniff"
    for path, id in ((VOICES, voice.json()["id"]), (RECORDINGS, row["id"])):
        assert api.delete(f"{path}/{id}").status_code == 204
        problem(api.delete(f"{path}/{id}"), 404)
    assert not Recording.objects.exists()
    assert not VoiceEnrolment.objects.exists()


def test_what_cannot_be_stored_says_why(ann, settings) -> None:
    api = Program(ann)
    wrong = problem(send(api, VOICES, b"no sound"), 422, "invalid")
    assert wrong["errors"][0]["pointer"] == "#/file"
    assert "this is not a WAV file" in wrong["detail"]
    problem(send(api, RECORDINGS, bytes(MOST_BYTES + 1)), 422, "invalid")
    problem(send(api, RECORDINGS, bytes(3_000_000)), 413)
    two = {"file": [SimpleUploadedFile("a", CALL), SimpleUploadedFile("b", CALL)]}
    problem(api.client.post(f"/api{RECORDINGS}", two), 422, "invalid")
    problem(api.post(RECORDINGS, {"file": "call.wav"}), 422, "invalid")
    settings.PROTECTION_MAX_RECORDINGS_PER_USER = 1
    assert send(api, RECORDINGS, CALL, "a\x00<b>.wav").status_code == 202
    assert "delete one first" in problem(send(api, RECORDINGS, VOICE), 409, "too-many")["detail"]
    assert Recording.objects.count() == 1


def test_another_users_recording_was_read_or_deleted(ann) -> None:
    voice, call = send(Program(ann), VOICES, VOICE), send(Program(ann), RECORDINGS, CALL)
    eve = Program(person("eve"))
    assert eve.all(VOICES) == eve.all(RECORDINGS) == []
    problem(eve.get(f"{RECORDINGS}/{call.json()['id']}"), 404)
    for path, row in ((VOICES, voice), (RECORDINGS, call)):
        problem(eve.get(f"{path}/{row.json()['id']}/file"), 404)
        writer = Program(ann, "protection:write")
        problem(writer.get(f"{path}/{row.json()['id']}/file"), 403, "scope-missing")
    problem(eve.delete(f"{RECORDINGS}/{call.json()['id']}"), 404)
    problem(eve.delete(f"{VOICES}/{voice.json()['id']}"), 404)
    reader = Program(ann, "protection:read")
    problem(send(reader, RECORDINGS, VOICE), 403, "scope-missing")
    problem(reader.delete(f"{RECORDINGS}/{call.json()['id']}"), 403, "scope-missing")
    assert send(eve, RECORDINGS, CALL).json()["id"] != call.json()["id"], "of another account"
    assert Recording.objects.filter(user=ann).count() == 1
