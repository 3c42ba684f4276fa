"""The API of photos: what comes in by file or by words, and what may be seen of it."""

import subprocess
import sys
import threading
from datetime import timedelta
from io import BytesIO

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection, transaction
from PIL import Image

from domains.photos.invariants import (
    ActiveGatheringsGrow,
    GatheringsAreTheirPhotos,
    PhotosGather,
)
from domains.photos.models import Gathering, Photo, Upload
from events.models import Event
from tests.kit import ROOT, at_once
from tests.photos.scene import BERLIN, exif, gather, keep, noon, picture, utc
from tests.subscriptions.api.kit import Program, problem, program

pytestmark = pytest.mark.django_db

AT = noon()


@pytest.fixture
def ann() -> Program:
    return program("ann")


def send(who: Program, file: bytes | None, name: str = "a.jpg", key: str = "", **fields: object):
    """POST a picture as a form."""
    headers = {"Idempotency-Key": key} if key else {}
    extra = {} if file is None else {"file": SimpleUploadedFile(name, file, "image/jpeg")}
    return who.client.post("/api/photos", {**fields, **extra}, headers=headers)


def words(number: int = 1, **fields: object) -> dict[str, object]:
    said = {"storage_key": f"bucket/{number}.jpg", "lat": BERLIN[0], "lon": BERLIN[1]}
    return {**said, "taken_at": AT.isoformat(), **fields}


def test_a_picture_says_itself_where_and_when(ann: Program, shelf_folder) -> None:
    at = noon()
    answer = send(ann, picture(exif(*BERLIN, at)), caption="At the lake")
    assert answer.status_code == 201, answer.content
    said = answer.json()
    assert said["read"] == ["lat", "lon", "taken_at"]
    assert (said["lat"], said["lon"]) == pytest.approx(BERLIN, abs=1e-6)
    assert (said["caption"], said["state"], said["user"]) == ("At the lake", "new", "ann")
    photo = Photo.objects.get()
    assert (photo.taken_at, photo.user) == (at, ann.user)
    assert said["url"].endswith(f"/api/photos/{photo.pk}")
    files = sorted(one.name for one in shelf_folder.rglob("*") if one.is_file())
    assert files == [photo.storage_key.split("/")[-1] + end for end in ("", ".small.jpg")]
    assert not photo.storage_key.endswith("/a.jpg")
    event = Event.objects.get(type="photos.uploaded")
    assert event.payload["storage_key"] == photo.storage_key
    assert not Upload.objects.exists()


@pytest.mark.parametrize("form", ["PNG", "WEBP"])
def test_other_forms_are_taken_too(ann: Program, form: str) -> None:
    answer = send(ann, picture(exif(-33.86, -151.2, noon()), form=form), name=f"a.{form}")
    assert answer.status_code == 201, answer.content
    assert (answer.json()["lat"], answer.json()["lon"]) == pytest.approx((-33.86, -151.2), abs=1e-6)


def test_what_is_given_wins_over_the_picture(ann: Program) -> None:
    said = send(ann, picture(exif(*BERLIN, noon())), lat="48.1", taken_at="2026-10-01T12:00:00Z")
    assert said.status_code == 201, said.content
    photo = Photo.objects.get()
    assert (photo.lat, photo.lon) == pytest.approx((48.1, BERLIN[1]))
    assert photo.taken_at == utc(2026, 10, 1, 12)
    assert said.json()["read"] == ["lon"]


@pytest.mark.parametrize(
    ("clock", "offset", "gps_at", "taken_at"),
    [
        ("2026:10:01 14:00:00", "+02:00", None, utc(2026, 10, 1, 12)),
        ("2026:10:01 14:00:00", "", utc(2026, 10, 1, 11, 57, 3), utc(2026, 10, 1, 12)),
        ("2026:10:01 14:00:00", "", None, utc(2026, 10, 1, 12)),  # of the user's zone
        ("0000:00:00 00:00:00", "", utc(2026, 10, 1, 12, 0, 9), utc(2026, 10, 1, 12, 0, 9)),
    ],
)
def test_the_zone_of_a_cameras_clock(ann: Program, clock, offset, gps_at, taken_at) -> None:
    ann.patch("/preferences", {"time_zone": "Europe/Berlin"})
    answer = send(ann, picture(exif(*BERLIN, clock, offset, gps_at)))
    assert answer.status_code == 201, answer.content
    assert Photo.objects.get().taken_at == taken_at


def test_words_alone_are_taken_and_known_again(ann: Program) -> None:
    first, second = ann.post("/photos", words()), ann.post("/photos", words())
    assert (first.status_code, second.status_code) == (201, 200), second.content
    assert first.json() == second.json()
    assert first.json()["image"] is None
    assert Event.objects.filter(type="photos.uploaded").count() == 1


def test_a_storage_key_stands_for_one_photo(ann: Program) -> None:
    ann.post("/photos", words())
    told = problem(ann.post("/photos", words(lat=1.0)), 409, "exists")
    assert told["errors"][0]["pointer"] == "#/storage_key"
    assert "with another place" in told["detail"]
    bob = program("bob")
    told = problem(bob.post("/photos", words()), 409, "exists")
    assert told["detail"] == "storage_key: 'bucket/1.jpg' is taken by another photo"
    assert "image" not in problem(
        ann.post("/photos", words(storage_key="uploads/x")), 422, "invalid"
    )
    assert Photo.objects.count() == 1


def test_the_same_key_is_the_same_upload(ann: Program, shelf_folder) -> None:
    file = picture(exif(*BERLIN, noon()))
    answers = [send(ann, file, key="k-1") for _ in range(3)]
    assert [one.status_code for one in answers] == [201, 200, 200]
    assert len({one.json()["id"] for one in answers}) == 1
    told = problem(
        send(ann, picture(exif(*BERLIN, noon()), colour="red"), key="k-1"), 422, "invalid"
    )
    assert told["errors"][0]["header"] == "Idempotency-Key"
    assert send(program("bob"), file, key="k-1").status_code == 201
    assert Photo.objects.count() == 2
    assert sum(one.is_file() for one in shelf_folder.rglob("*")) == 4


@pytest.mark.django_db(transaction=True)
def test_the_same_key_at_once_makes_one_photo(ann: Program, shelf_folder, settings) -> None:
    settings.API_BURST = 1000
    file = picture(exif(*BERLIN, noon()))
    barrier = threading.Barrier(6)

    def once(number: int) -> int:
        barrier.wait(20)
        return send(Program(ann.user), file, key="k-1").status_code

    assert sorted(at_once(6, once)) == [200] * 5 + [201]
    assert Photo.objects.count() == Upload.objects.count() == 1
    assert sum(one.is_file() for one in shelf_folder.rglob("*")) == 2


UPLOAD = """
import sys, time, django
django.setup()
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
token, path = sys.argv[1:]
client = Client(headers={"Authorization": f"Bearer {token}", "Host": "127.0.0.1"})
client.get("/api/photos")
began = time.monotonic()
file = SimpleUploadedFile("a.jpg", open(path, "rb").read())
print("answered", client.post("/api/photos", {"file": file}).status_code)
print("took", time.monotonic() - began)
"""


@pytest.mark.slow
def test_it_answers_while_the_broker_is_away(process_env, tmp_path) -> None:
    ann = program("ann")
    path = tmp_path / "a.jpg"
    path.write_bytes(picture(exif(*BERLIN, AT)))
    away = {"BROKER_URL": "redis://127.0.0.1:1/0", "PHOTOS_FOLDER": str(tmp_path / "kept")}
    done = subprocess.run(
        [sys.executable, "-c", UPLOAD, ann.text, str(path)],
        cwd=ROOT, env=process_env | away, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert "answered 201" in done.stdout, done.stderr
    assert "wake.not_sent" in done.stdout + done.stderr
    assert float(done.stdout.split("took ")[1].split()[0]) < 2
    assert Photo.objects.get().user == ann.user
    assert Event.objects.filter(type="photos.uploaded").count() == 1


@pytest.mark.django_db(transaction=True)
def test_it_answers_while_a_sweep_hangs(ann: Program) -> None:
    """A sweep that has found and requeued what it could, holds all rows, and does not end."""
    gather(ann.user)
    keep(ann.user)
    hangs, over = threading.Event(), threading.Event()

    def sweep() -> None:
        try:
            with transaction.atomic():
                for one in (PhotosGather(), ActiveGatheringsGrow(), GatheringsAreTheirPhotos()):
                    one.repair(one.find())
                list(Photo.objects.select_for_update())
                list(Gathering.objects.select_for_update())
                hangs.set()
                over.wait(30)
        finally:
            connection.close()

    thread = threading.Thread(target=sweep)
    thread.start()
    try:
        assert hangs.wait(10)
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '3s'")
        assert send(ann, picture(exif(*BERLIN, noon())), key="k").status_code == 201
        assert ann.post("/photos", words()).status_code == 201
    finally:
        over.set()
        thread.join()
        with connection.cursor() as cursor:
            cursor.execute("RESET lock_timeout")


def test_the_image_is_small_and_says_nothing(ann: Program) -> None:
    file = picture(exif(*BERLIN, noon()), size=(3000, 2000))
    said = send(ann, file).json()
    answer = ann.get(f"/photos/{said['id']}/image")
    assert (answer.status_code, answer["Content-Type"]) == (200, "image/jpeg")
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert "private" in answer["Cache-Control"]
    with Image.open(BytesIO(answer.content)) as copy:
        assert max(copy.size) == 1280
        assert not copy.getexif()
        assert set(copy.info) <= {"jfif", "jfif_version", "jfif_unit", "jfif_density"}
    assert b"Exif" not in answer.content


def test_a_turned_picture_is_shown_upright(ann: Program) -> None:
    said = exif(*BERLIN, noon())
    said[0x0112] = 6
    id = send(ann, picture(said, size=(400, 200))).json()["id"]
    with Image.open(BytesIO(ann.get(f"/photos/{id}/image").content)) as copy:
        assert copy.size == (200, 400)


def test_others_see_what_is_in_a_gathering_and_not_where(ann: Program) -> None:
    bob = program("bob")
    alone, together = keep(ann.user), gather(ann.user).photos.get()
    problem(bob.get(f"/photos/{alone.pk}"), 404)
    problem(bob.get(f"/photos/{alone.pk}/image"), 404)
    seen = bob.get(f"/photos/{together.pk}").json()
    assert (seen["lat"], seen["lon"], seen["storage_key"]) == (None, None, None)
    assert seen["user"] == "ann"
    assert bob.get(f"/photos/{together.pk}/image").status_code == 200
    assert ann.get(f"/photos/{alone.pk}").json()["lat"] == BERLIN[0]
    assert bob.all("/photos") == []
    operator = program("op", may=("photos.view_photo",))
    assert operator.get(f"/photos/{alone.pk}").json()["lat"] == BERLIN[0]


def test_lists_go_page_by_page(ann: Program) -> None:
    others = program("bob").user
    found = gather(*[ann.user, others] * 4)
    keep(ann.user)
    mine = [one["id"] for one in ann.all("/photos", limit=2)]
    assert mine == list(
        Photo.objects.filter(user=ann.user)
        .order_by("-uploaded_at", "-pk")
        .values_list("pk", flat=True)
    )
    assert len(mine) == 5
    all_of = [one["taken_at"] for one in ann.all("/photos", limit=3, gathering=found.pk)]
    assert len(all_of) == 8
    assert all_of == sorted(all_of, reverse=True)
    problem(ann.get("/photos", gathering=found.pk + 1), 404)
    problem(ann.get("/photos", cursor="x"), 422, "invalid")
    over = gather(ann.user, state="FINALIZED", at=noon() - timedelta(days=1))
    assert [one["id"] for one in ann.all("/gatherings", limit=1)] == [over.pk, found.pk]
    assert [one["id"] for one in ann.all("/gatherings", state="ACTIVE")] == [found.pk]
    one = ann.get(f"/gatherings/{found.pk}").json()
    assert (one["state"], one["photo_count"], one["radius"]) == ("ACTIVE", 8, 23.4)
    problem(ann.get(f"/gatherings/{over.pk + 1}"), 404)


def test_each_scope_opens_its_own() -> None:
    reader, writer = program("ann", "photos:read"), program("bob", "photos:write")
    problem(reader.post("/photos", words()), 403, "scope-missing")
    problem(writer.get("/photos"), 403, "scope-missing")
    assert writer.post("/photos", words()).status_code == 201
    assert reader.get("/photos").status_code == 200
