"""The API of photos: uploads with and without a picture, and who may see what."""

import threading
from datetime import timedelta
from io import BytesIO

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection, transaction
from PIL import Image

from tailrace.domains.photos.invariants import (
    ActiveGatheringsGrow,
    GatheringsAreTheirPhotos,
    PhotosGather,
)
from tailrace.domains.photos.models import Gathering, Photo, Upload
from tailrace.events.models import Event
from tests import forks
from tests.kit import PATIENCE, ROOT, at_once
from tests.photos.pictures import (
    BERLIN,
    exif,
    make_gathering,
    make_photo,
    picture,
    recent,
    utc,
)
from tests.web.program import Program, problem, program

pytestmark = pytest.mark.django_db

AT = recent()


@pytest.fixture
def ann() -> Program:
    return program("ann")


def send(who: Program, file: bytes | None, name: str = "a.jpg", key: str = "", **fields: object):
    """POST a picture as a form."""
    headers = {"Idempotency-Key": key} if key else {}
    extra = {} if file is None else {"file": SimpleUploadedFile(name, file, "image/jpeg")}
    return who.client.post("/api/photos", {**fields, **extra}, headers=headers)


def photo_json(number: int = 1, **fields: object) -> dict[str, object]:
    reply = {"storage_key": f"bucket/{number}.jpg", "lat": BERLIN[0], "lon": BERLIN[1]}
    return {**reply, "taken_at": AT.isoformat(), **fields}


def test_place_and_time_are_read_from_exif(ann: Program, storage_folder) -> None:
    at = recent()
    answer = send(ann, picture(exif(*BERLIN, at)), caption="At the lake")
    assert answer.status_code == 201, answer.content
    reply = answer.json()
    assert reply["read"] == ["lat", "lon", "taken_at"]
    assert (reply["lat"], reply["lon"]) == pytest.approx(BERLIN, abs=1e-6)
    assert (reply["caption"], reply["state"], reply["user"]) == ("At the lake", "new", "ann")
    photo = Photo.objects.get()
    assert (photo.taken_at, photo.user) == (at, ann.user)
    assert reply["url"].endswith(f"/api/photos/{photo.pk}")
    files = sorted(path.name for path in storage_folder.rglob("*") if path.is_file())
    assert files == [photo.storage_key.split("/")[-1] + end for end in ("", ".small.jpg")]
    assert not photo.storage_key.endswith("/a.jpg")
    event = Event.objects.get(type="photos.uploaded")
    assert event.payload["storage_key"] == photo.storage_key
    assert not Upload.objects.exists()


@pytest.mark.parametrize("form", ["PNG", "WEBP"])
def test_other_formats_are_accepted(ann: Program, form: str) -> None:
    answer = send(ann, picture(exif(-33.86, -151.2, recent()), form=form), name=f"a.{form}")
    assert answer.status_code == 201, answer.content
    assert (answer.json()["lat"], answer.json()["lon"]) == pytest.approx((-33.86, -151.2), abs=1e-6)


def test_fields_replace_exif_values(ann: Program) -> None:
    reply = send(ann, picture(exif(*BERLIN, recent())), lat="48.1", taken_at="2026-10-01T12:00:00Z")
    assert reply.status_code == 201, reply.content
    photo = Photo.objects.get()
    assert (photo.lat, photo.lon) == pytest.approx((48.1, BERLIN[1]))
    assert photo.taken_at == utc(2026, 10, 1, 12)
    assert reply.json()["read"] == ["lon"]


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


def test_json_without_a_picture_is_idempotent(ann: Program) -> None:
    first, second = ann.post("/photos", photo_json()), ann.post("/photos", photo_json())
    assert (first.status_code, second.status_code) == (201, 200), second.content
    assert first.json() == second.json()
    assert first.json()["image"] is None
    assert Event.objects.filter(type="photos.uploaded").count() == 1


def test_a_storage_key_conflict_is_a_409(ann: Program) -> None:
    ann.post("/photos", photo_json())
    reply = problem(ann.post("/photos", photo_json(lat=1.0)), 409, "exists")
    assert reply["errors"][0]["pointer"] == "#/storage_key"
    assert "with another location" in reply["detail"]
    bob = program("bob")
    reply = problem(bob.post("/photos", photo_json()), 409, "exists")
    assert reply["detail"] == "storage_key: 'bucket/1.jpg' belongs to another photo"
    assert "image" not in problem(
        ann.post("/photos", photo_json(storage_key="uploads/x")), 422, "invalid"
    )
    assert Photo.objects.count() == 1


def test_an_idempotency_key_makes_one_photo(ann: Program, storage_folder) -> None:
    file = picture(exif(*BERLIN, recent()))
    answers = [send(ann, file, key="k-1") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [201, 200, 200]
    assert len({answer.json()["id"] for answer in answers}) == 1
    reply = problem(
        send(ann, picture(exif(*BERLIN, recent()), colour="red"), key="k-1"), 422, "key-reused"
    )
    assert reply["errors"][0]["header"] == "Idempotency-Key"
    assert send(program("bob"), file, key="k-1").status_code == 201
    assert Photo.objects.count() == 2
    assert sum(path.is_file() for path in storage_folder.rglob("*")) == 4


@pytest.mark.django_db(transaction=True)
def test_concurrent_uploads_with_one_key_make_one_photo(
    ann: Program, storage_folder, settings
) -> None:
    settings.API_BURST = 1000
    settings.PHOTOS_DECODERS = 12
    file = picture(exif(*BERLIN, recent()))
    barrier = threading.Barrier(6)

    def once(number: int) -> int:
        barrier.wait(PATIENCE)
        return send(Program(ann.user), file, key="k-1").status_code

    assert sorted(at_once(6, once)) == [200] * 5 + [201]
    assert Photo.objects.count() == Upload.objects.count() == 1
    assert sum(path.is_file() for path in storage_folder.rglob("*")) == 2


UPLOAD = """
import sys, time, django
django.setup()
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from tailrace.jobs.engine.waking import wake
token, path = sys.argv[1:]
client = Client(headers={"Authorization": f"Bearer {token}", "Host": "127.0.0.1"})
client.get("/api/photos")
began = time.monotonic()
file = SimpleUploadedFile("a.jpg", open(path, "rb").read())
print("answered", client.post("/api/photos", {"file": file}).status_code)
print("took", time.monotonic() - began)
assert wake.waker.flush(seconds=240)
"""


@pytest.mark.long
def test_uploads_work_without_the_broker(process_env, tmp_path) -> None:
    ann = program("ann")
    path = tmp_path / "a.jpg"
    path.write_bytes(picture(exif(*BERLIN, AT)))
    away = {"BROKER_URL": "redis://127.0.0.1:1/0", "PHOTOS_FOLDER": str(tmp_path / "kept")}
    done = forks.run(
        ["-c", UPLOAD, ann.text, str(path)],
        cwd=ROOT, env=process_env | away, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert "answered 201" in done.stdout, done.stderr
    assert "wake.not_sent" in done.stdout + done.stderr
    assert float(done.stdout.split("took ")[1].split()[0]) < 60
    assert Photo.objects.get().user == ann.user
    assert Event.objects.filter(type="photos.uploaded").count() == 1


@pytest.mark.django_db(transaction=True)
def test_uploads_work_while_a_sweep_hangs(ann: Program) -> None:
    """A sweep that has found and requeued what it could, holds all rows, and does not end."""
    make_gathering(ann.user)
    make_photo(ann.user)
    hangs, over = threading.Event(), threading.Event()

    def sweep() -> None:
        try:
            with transaction.atomic():
                for invariant in (
                    PhotosGather(),
                    ActiveGatheringsGrow(),
                    GatheringsAreTheirPhotos(),
                ):
                    invariant.repair(invariant.find())
                list(Photo.objects.select_for_update())
                list(Gathering.objects.select_for_update())
                hangs.set()
                over.wait(PATIENCE)
        finally:
            connection.close()

    thread = threading.Thread(target=sweep)
    thread.start()
    try:
        assert hangs.wait(PATIENCE)
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '3s'")
        assert send(ann, picture(exif(*BERLIN, recent())), key="k").status_code == 201
        assert ann.post("/photos", photo_json()).status_code == 201
    finally:
        over.set()
        thread.join()
        with connection.cursor() as cursor:
            cursor.execute("RESET lock_timeout")


def test_the_image_is_small_and_has_no_metadata(ann: Program) -> None:
    file = picture(exif(*BERLIN, recent()), size=(3000, 2000))
    reply = send(ann, file).json()
    answer = ann.get(f"/photos/{reply['id']}/image")
    assert (answer.status_code, answer["Content-Type"]) == (200, "image/jpeg")
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert "private" in answer["Cache-Control"]
    with Image.open(BytesIO(answer.content)) as copy:
        assert max(copy.size) == 1280
        assert not copy.getexif()
        assert set(copy.info) <= {"jfif", "jfif_version", "jfif_unit", "jfif_density"}
    assert b"Exif" not in answer.content


def test_a_turned_picture_is_shown_upright(ann: Program) -> None:
    reply = exif(*BERLIN, recent())
    reply[0x0112] = 6
    id = send(ann, picture(reply, size=(400, 200))).json()["id"]
    with Image.open(BytesIO(ann.get(f"/photos/{id}/image").content)) as copy:
        assert copy.size == (200, 400)


def test_others_see_gathered_photos_without_their_place(ann: Program) -> None:
    bob = program("bob")
    alone, together = make_photo(ann.user), make_gathering(ann.user).photos.get()
    problem(bob.get(f"/photos/{alone.pk}"), 404)
    problem(bob.get(f"/photos/{alone.pk}/image"), 404)
    seen = bob.get(f"/photos/{together.pk}").json()
    assert (seen["lat"], seen["lon"], seen["storage_key"]) == (None, None, None)
    assert seen["user"] == "ann"
    assert bob.get(f"/photos/{together.pk}/image").status_code == 200
    assert ann.get(f"/photos/{alone.pk}").json()["lat"] == BERLIN[0]
    assert bob.all("/photos") == []
    operator = program("op", may=("tailrace_photos.view_photo",))
    assert operator.get(f"/photos/{alone.pk}").json()["lat"] == BERLIN[0]


def test_lists_go_page_by_page(ann: Program) -> None:
    others = program("bob").user
    gathering = make_gathering(*[ann.user, others] * 4)
    make_photo(ann.user)
    mine = [row["id"] for row in ann.all("/photos", limit=2)]
    assert mine == list(
        Photo.objects.filter(user=ann.user)
        .order_by("-uploaded_at", "-pk")
        .values_list("pk", flat=True)
    )
    assert len(mine) == 5
    all_of = [row["taken_at"] for row in ann.all("/photos", limit=3, gathering=gathering.pk)]
    assert len(all_of) == 8
    assert all_of == sorted(all_of, reverse=True)
    problem(ann.get("/photos", gathering=gathering.pk + 1), 404)
    problem(ann.get("/photos", cursor="x"), 422, "invalid")
    over = make_gathering(ann.user, state="FINALIZED", at=recent() - timedelta(days=1))
    assert [row["id"] for row in ann.all("/gatherings", limit=1)] == [over.pk, gathering.pk]
    assert [row["id"] for row in ann.all("/gatherings", state="ACTIVE")] == [gathering.pk]
    body = ann.get(f"/gatherings/{gathering.pk}").json()
    assert (body["state"], body["photo_count"], body["radius"]) == ("ACTIVE", 8, 100.0)
    problem(ann.get(f"/gatherings/{over.pk + 1}"), 404)


def test_each_scope_allows_its_own_calls() -> None:
    reader, writer = program("ann", "photos:read"), program("bob", "photos:write")
    problem(reader.post("/photos", photo_json()), 403, "scope-missing")
    problem(writer.get("/photos"), 403, "scope-missing")
    assert writer.post("/photos", photo_json()).status_code == 201
    assert reader.get("/photos").status_code == 200
