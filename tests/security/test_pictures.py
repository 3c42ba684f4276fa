"""Pictures made to keep the server busy: what an attacker got before is in the tests' names."""

import os
import signal
import threading
import time
from collections.abc import Iterator, Set
from contextlib import contextmanager
from io import BytesIO

import psutil
import pytest
from django.test import Client

from tailrace.domains.photos.models import Photo
from tailrace.domains.photos.uploads.pictures import picture as picture_module
from tailrace.domains.photos.uploads.pictures.decoder import InvalidPicture
from tailrace.domains.photos.uploads.pictures.picture import DecoderBusy, read_picture
from tests import forks
from tests.kit import PATIENCE, ROOT, wait_until
from tests.photos.pictures import BERLIN, exif, picture, recent, utc
from tests.photos.test_api import send
from tests.security.pictures import animation, progressive_jpeg
from tests.web.program import problem, program

UTC_ZONE = utc(2026, 1, 1).tzinfo
ANN, BOB = 1, 2


def read(file: bytes, user: int = ANN) -> picture_module.Picture:
    assert UTC_ZONE is not None
    return read_picture(BytesIO(file), UTC_ZONE, user)


def children() -> list[psutil.Process]:
    return psutil.Process().children(recursive=True)


def decoders() -> list[psutil.Process]:
    found = []
    for child in children():
        try:
            if "tailrace.domains.photos.uploads.pictures.decoder" in " ".join(child.cmdline()):
                found.append(child)
        except psutil.Error:
            continue
    return found


def stopped_decoder(others: Set[psutil.Process] = frozenset()) -> psutil.Process | None:
    """Stop a new decoder once it has set its limits, and return it."""
    for decoder in set(decoders()) - others:
        decoder.suspend()
        if decoder.rlimit(psutil.RLIMIT_AS)[1] != psutil.RLIM_INFINITY:
            return decoder
        decoder.resume()
    return None


@contextmanager
def slow_upload(
    user: int, ends_with: str = "more than 10 s", side: int = 8000
) -> Iterator[psutil.Process]:
    """Upload a picture of seconds and stop its decoder during the block; give the decoder."""
    before, errors = set(decoders()), list[Exception]()

    def upload() -> None:
        try:
            read(progressive_jpeg(side, 40), user)
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=upload)
    thread.start()
    decoder = wait_until(lambda: stopped_decoder(before), what="the decoder")
    try:
        yield decoder
    finally:
        if decoder.is_running():
            decoder.kill()
        thread.join(PATIENCE)
    assert ends_with in str(errors[0])


@pytest.mark.django_db
def test_a_small_jpeg_of_a_thousand_scans_got_33_seconds_of_a_web_thread() -> None:
    ann, file = program("ann"), progressive_jpeg(4000, 1000)
    assert len(file) < 256_000
    started = time.monotonic()
    reply = problem(
        send(ann, file, lat="1", lon="1", taken_at=recent().isoformat()), 422, "invalid"
    )
    assert time.monotonic() - started < 30
    assert "more than 50 scans" in reply["errors"][0]["detail"]
    assert not Photo.objects.exists()


def test_a_picture_that_never_ends_got_a_thread_until_the_web_was_restarted(
    settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit is of CPU time, which on a busy machine takes long."""
    settings.PHOTOS_DECODE_SECONDS = 1
    monkeypatch.setattr(picture_module, "WAIT_SECONDS", 2 * PATIENCE)
    file = progressive_jpeg(8000, 40)  # few enough scans to be decoded
    with pytest.raises(InvalidPicture, match=r"takes more than 1 s \(PHOTOS_DECODE_SECONDS\)"):
        read(file)
    assert decoders() == []


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP"])
def test_a_huge_picture_got_decoded_before_its_size_was_known(settings, form: str) -> None:
    settings.PHOTOS_MAX_MEGAPIXELS = 1
    with pytest.raises(InvalidPicture, match="1200 × 900 pixels; the limit is 1 million"):
        read(picture(form=form, size=(1200, 900)))


@pytest.mark.parametrize("form", ["PNG", "WEBP"])
def test_an_animation_got_all_its_frames_decoded(form: str) -> None:
    with pytest.raises(InvalidPicture, match="an animation of 3 pictures; send a single picture"):
        read(animation(form))


@pytest.mark.parametrize("form", ["GIF", "TIFF", "BMP", "PPM", "ICO", "TGA"])
def test_a_rare_format_got_its_decoder_run(form: str) -> None:
    with pytest.raises(InvalidPicture, match="send JPEG, PNG or WebP"):
        read(picture(form=form))


def test_two_slow_pictures_got_all_further_uploads_to_wait(settings) -> None:
    """Others are refused at once, and each user has at most half of the slots."""
    settings.PHOTOS_DECODERS = 2
    good = picture(exif(*BERLIN, recent()))
    with slow_upload(ANN):
        with pytest.raises(DecoderBusy, match="1 of your pictures"):
            read(good, ANN)
        assert read(good, BOB).suffix == ".jpg"
        with slow_upload(BOB):
            started = time.monotonic()
            with pytest.raises(DecoderBusy, match="too many pictures"):
                read(good, user=3)
            assert time.monotonic() - started < settings.PHOTOS_DECODE_SECONDS / 2
    assert read(good, ANN).suffix == ".jpg"  # the slots are free again


@pytest.mark.django_db(transaction=True)
def test_uploads_while_the_decoder_is_full_are_told_when_to_come_back(settings) -> None:
    settings.PHOTOS_DECODERS = 2
    ann, file = program("ann"), picture(exif(*BERLIN, recent()))
    browser = Client()
    browser.force_login(ann.user)
    with picture_module._slots.take(ann.user.pk):
        reply = send(ann, file)
        page = browser.post("/photos/upload", {"file": BytesIO(file)})
    problem(reply, 503, "busy")
    assert reply["Retry-After"] == "2"
    assert (page.status_code, page["Retry-After"]) == (503, "2")
    assert b"Try again in a moment" in page.content
    assert not Photo.objects.exists()
    assert send(ann, file).status_code == 201


@pytest.mark.slow
def test_a_killed_web_process_left_its_decoders_running(tmp_path) -> None:
    """They end with the process that started them."""
    (tmp_path / "slow.jpg").write_bytes(progressive_jpeg(8000, 40))
    code = (
        "import datetime, sys; import django; django.setup()\n"
        "from tailrace.domains.photos.uploads.pictures.picture import read_picture\n"
        "read_picture(open(sys.argv[1], 'rb'), datetime.UTC, 1)\n"
    )
    with forks.Fork(
        ["-c", code, str(tmp_path / "slow.jpg")],
        cwd=ROOT,
        env={**os.environ, "PHOTOS_DECODE_SECONDS": "100"},
    ) as web:
        decoder = wait_until(stopped_decoder, what="the decoder")
        web.send_signal(signal.SIGKILL)
        web.wait(PATIENCE)
        assert psutil.wait_procs([decoder], timeout=3)[0], "the decoder lives on"


def test_a_broken_decoder_got_the_keys_and_all_memory_of_the_machine(
    monkeypatch: pytest.MonkeyPatch, settings
) -> None:
    monkeypatch.setenv("SECRET_KEY", "hush")
    settings.PHOTOS_MAX_MEGAPIXELS = 10
    with slow_upload(ANN, side=3000) as decoder:
        assert not {"SECRET_KEY", "DATABASE_URL", "BROKER_URL"} & decoder.environ().keys()
        assert decoder.rlimit(psutil.RLIMIT_AS)[1] < 500_000_000
        assert decoder.rlimit(psutil.RLIMIT_CPU) == (10, 11)
        assert decoder.rlimit(psutil.RLIMIT_FSIZE) == (0, 0)


def test_a_crashed_decoder_got_a_500() -> None:
    with slow_upload(ANN, "the picture cannot be decoded") as decoder:
        decoder.send_signal(signal.SIGSEGV)
        decoder.resume()
        wait_until(lambda: not decoder.is_running())
