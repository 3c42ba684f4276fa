"""Photos without a place get one from their owner's timeline."""

from collections.abc import Callable

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from tailrace.domains.photos.models import Gathering, Photo
from tailrace.events.models import Event
from tailrace.jobs.models import Job
from tests.across.kit import PLACES, add_points, minutes, send_points, upload_unplaced
from tests.photos.pictures import exif, picture, recent
from tests.timeline.kit import gpx, upload
from tests.web.program import Program, problem, program

pytestmark = pytest.mark.django_db
LAKE = (46.28, 13.88)


@pytest.fixture(autouse=True)
def _folders(storage_folder, import_folder) -> None:
    """Pictures and imported files of this test."""


@pytest.fixture
def ana() -> Program:
    scopes = {"photos:read", "photos:write", "photos:delete", "timeline:points", "timeline:import"}
    return program("ana", *scopes)


def test_a_picture_without_a_place_is_refused_unless_it_may_wait(ana: Program) -> None:
    at = recent()
    file = SimpleUploadedFile("a.jpg", picture(exif(taken_at=at)), "image/jpeg")
    answer = ana.client.post("/api/photos", {"file": file})
    problem(answer, 422, "invalid")
    assert "not in the picture's EXIF" in answer.content.decode()
    file.seek(0)
    half = {"file": file, "lat": "46.28", "place_from_timeline": "true"}
    assert (
        "lon"
        in problem(ana.client.post("/api/photos", half), 422, "invalid")["errors"][0]["pointer"]
    )
    photo = upload_unplaced(ana, at)
    assert (photo.state, photo.lat, photo.lon, photo.taken_at) == ("unplaced", None, None, at)
    assert not Event.objects.filter(type="photos.uploaded").exists()


def test_points_that_come_later_give_a_photo_its_place(
    ana: Program, run_jobs: Callable[..., int]
) -> None:
    at = recent()
    photo = upload_unplaced(ana, at)
    run_jobs(*PLACES)
    photo.refresh_from_db()
    assert photo.state == "unplaced"
    send_points(ana, [(at - minutes(4), *LAKE), (at + minutes(4), LAKE[0] + 0.002, LAKE[1])])
    run_jobs(*PLACES)
    photo.refresh_from_db()
    assert photo.state == "new"
    assert (photo.lat, photo.lon) == (pytest.approx(LAKE[0] + 0.001), pytest.approx(LAKE[1]))
    uploaded = Event.objects.get(type="photos.uploaded")
    causes = []
    while uploaded.cause is not None:
        uploaded = uploaded.cause
        causes.append(uploaded.type)
    assert causes == ["timeline.places_known", "photos.places_requested", "timeline.points_added"]


def test_points_that_are_there_give_it_its_place_at_once(
    ana: Program, run_jobs: Callable[..., int]
) -> None:
    at = recent()
    add_points(ana.user, [(at, *LAKE)])
    photo = upload_unplaced(ana, at)
    run_jobs(*PLACES)
    photo.refresh_from_db()
    assert (photo.state, photo.lat, photo.lon) == ("new", *LAKE)
    assert photo.placed_at is not None


def test_an_import_places_photos_so_that_they_gather(
    ana: Program, run_jobs: Callable[..., int], settings
) -> None:
    settings.IMPORT_GRACE_SECONDS = 0
    start = recent()
    for n in range(5):
        upload_unplaced(ana, start + minutes(n))
    upload(ana.user, gpx([(start + minutes(n), *LAKE) for n in range(5)]))
    run_jobs()
    gathering = Gathering.objects.get()
    assert gathering.photo_count == 5
    assert set(Photo.objects.values_list("gathering", flat=True)) == {gathering.pk}


def test_requests_and_answers_keep_no_times_and_places(
    ana: Program, run_jobs: Callable[..., int]
) -> None:
    at = recent()
    add_points(ana.user, [(at, *LAKE)])
    upload_unplaced(ana, at)
    run_jobs(*PLACES)
    types = ["photos.places_requested", "timeline.places_known"]
    payloads = list(Event.objects.filter(type__in=types).values_list("payload", flat=True))
    assert payloads == [{"user_id": ana.user.pk}] * 2


def test_an_upload_that_is_sent_twice_is_one_photo(ana: Program) -> None:
    at = recent()
    first = upload_unplaced(ana, at, key="once")
    assert upload_unplaced(ana, at, key="once") == first


def test_an_unplaced_photo_can_be_deleted(ana: Program, run_jobs: Callable[..., int]) -> None:
    photo = upload_unplaced(ana, recent())
    assert ana.client.delete(f"/api/photos/{photo.pk}").status_code == 204
    add_points(ana.user, [(photo.taken_at, *LAKE)])
    run_jobs(*PLACES)
    assert not Photo.objects.exists()
    assert not Job.objects.failed().exists()


def test_places_of_many_photos_are_requested_by_the_hundred(
    ana: Program, run_jobs: Callable[..., int]
) -> None:
    start = recent()
    Photo.objects.bulk_create(
        Photo(
            user=ana.user,
            storage_key=f"test/{n}",
            taken_at=start + minutes(n / 1000),
            state="unplaced",
        )
        for n in range(500)
    )
    send_points(ana, [(start, *LAKE)])
    run_jobs("photos.request_places")
    requests = Event.objects.filter(type="photos.places_requested")
    assert [len(each.payload["photos"]) for each in requests] == [100] * 5
    assert len({photo["photo"] for each in requests for photo in each.payload["photos"]}) == 500
    run_jobs(*PLACES)
    assert not Photo.objects.filter(state="unplaced").exists()
