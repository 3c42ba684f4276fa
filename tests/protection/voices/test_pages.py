"""The customer's page of voices, as a browser without scripts sees it."""

import pytest
from django.contrib.auth.models import User
from django.core.files.storage import storages
from django.core.files.uploadedfile import SimpleUploadedFile

from tailrace.domains.protection.models import Recording, VoiceEnrolment
from tailrace.domains.protection.services.voices.uploads import HANDLER
from tests.protection.kit import again
from tests.protection.voices.sounds import LOW, speech, wav
from tests.subscriptions.sample_domain import person
from tests.web.visitor import Visitor, words

pytestmark = pytest.mark.django_db
PAGE = "/protection/voices"


@pytest.fixture
def ann() -> User:
    return person("ann")


def send(browser: Visitor, content: bytes, purpose: str, name: str = "call.wav"):
    return browser.post(PAGE, {"file": SimpleUploadedFile(name, content), "purpose": purpose})


def test_enrol_upload_verdict_delete(ann, run_jobs) -> None:
    browser = Visitor(ann)
    assert "No voice is enrolled yet" in browser.text(PAGE)
    assert send(browser, wav(speech(LOW)), "voice").status_code == 302
    assert send(browser, wav(speech(LOW, seed=4)), "recording", "<b>call.wav").status_code == 302
    assert send(browser, b"", "recording", "empty.wav").status_code == 302
    address = again(browser.get(PAGE))
    assert browser.get(address).status_code == 204, "as it was"
    run_jobs(HANDLER)
    part = browser.get(address)
    assert "matched" in words(part)
    assert b"hx-get" not in part.content, "nothing is under way"
    page = browser.get(PAGE)
    assert "matched" in words(page)
    assert "by spectral baseline (no speaker model) 1" in words(page)
    assert "the file is empty" in words(page)
    assert b"<b>call" not in page.content
    recording = Recording.objects.earliest("pk")
    others = Visitor(person("bob"))
    address = f"{PAGE}/recordings/{recording.pk}/delete"
    assert others.post(address).status_code == 404
    assert browser.post(address).status_code == 302
    voice = VoiceEnrolment.objects.get()
    assert browser.post(f"{PAGE}/voices/{voice.pk}/delete").status_code == 302
    assert Recording.objects.count() == 1
    assert not VoiceEnrolment.objects.exists()


def test_what_cannot_be_enrolled_says_why(ann) -> None:
    browser = Visitor(ann)
    answer = send(browser, b"hello, I am no sound", "voice")
    assert answer.status_code == 422
    assert "This is not a WAV file; save it as WAV: 16 kHz, mono, 16-bit PCM." in words(answer)
    large = send(browser, bytes(3_000_000), "recording")
    assert large.status_code == 413
    assert "The file is too large" in words(large)
    assert not VoiceEnrolment.objects.exists()
    assert not Recording.objects.exists()


def test_a_user_downloads_their_own_files_alone(ann) -> None:
    browser, bob = Visitor(ann), Visitor(person("bob"))
    sound, call = wav(speech(LOW)), b"hello, I am no sound"
    send(browser, sound, "voice")
    send(browser, call, "recording", 'Klic "nujno" ž.wav')
    voice, recording = VoiceEnrolment.objects.get(), Recording.objects.get()
    for kind, row, content in (("voices", voice, sound), ("recordings", recording, call)):
        address = f"{PAGE}/{kind}/{row.pk}/file"
        assert f'href="{address}" download' in browser.get(PAGE).content.decode()
        file = browser.get(address)
        assert file.getvalue() == content
        assert file["Content-Type"] == "application/octet-stream"
        assert file["Cache-Control"] == "private, no-store"
        assert bob.get(address).status_code == 404
        assert Visitor(None).get(address).status_code == 302
    assert file["Content-Disposition"] == (
        "attachment; filename*=utf-8''Klic%20%22nujno%22%20%C5%BE.wav"
    )
    assert browser.get(f"{PAGE}/files/{recording.pk}/file").status_code == 404
    storages["protection"].delete(recording.file.key)
    assert browser.get(address).status_code == 404
