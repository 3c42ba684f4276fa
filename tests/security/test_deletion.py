"""A photo that its owner deletes: what others, staff, or a crash still had of it."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from tailrace.domains.photos.handlers.kafka import KafkaUploads
from tailrace.domains.photos.invariants import (
    FilesOfDeletedPhotosAreGone,
    GatheringsAreTheirPhotos,
    OriginalsExpire,
)
from tailrace.domains.photos.models import FileDeletion, Gathering, Photo
from tailrace.domains.photos.uploads.deletion.delete_photos import delete_photos
from tailrace.events.models import Event
from tailrace.jobs.models import Job
from tests.kit import at_once
from tests.photos.kit import SQUARE, assert_consistent, away, upload_photo, upload_photos
from tests.photos.pictures import BERLIN, exif, make_gathering, make_photo, picture, recent
from tests.security.remains import files_in, rows_with
from tests.subscriptions.sample_domain import person
from tests.web.program import Program, problem, program
from tests.web.visitor import Visitor, words

pytestmark = pytest.mark.django_db
PLACE = (52.51234567, 13.41234567)
TRACES = ("52.51234567", "13.41234567", "uploads/", "a secret caption")


def upload(who: Program) -> int:
    """Upload a picture with its place by the API; return the photo's id."""
    body = {"lat": PLACE[0], "lon": PLACE[1], "caption": "a secret caption"}
    file = SimpleUploadedFile("a.jpg", picture(exif(*BERLIN, recent())), "image/jpeg")
    key = f"key-{Photo.objects.count()}"
    answer = who.client.post(
        "/api/photos",
        {**body, "file": file},
        headers={"Idempotency-Key": key},
    )
    assert answer.status_code == 201, answer.content
    return int(answer.json()["id"])


@pytest.fixture
def ann() -> Program:
    return program("ann")


def test_a_deleted_photo_stayed_in_files_jobs_and_events(
    ann: Program,
    run_jobs,
    settings,
    storage_folder: Path,
) -> None:
    settings.PHOTOS_KAFKA_BROKERS = ["127.0.0.1:1"]
    ids = [upload(ann) for _ in range(5)]
    assert len(files_in(storage_folder)) == 10
    assert rows_with(*TRACES)
    run_jobs("photos.cluster")
    assert Gathering.objects.count() == 1
    assert Job.objects.filter(handler=KafkaUploads.name, state="pending").count() == 5
    assert ann.delete(f"/photos/{ids[0]}").status_code == 204
    problem(ann.delete(f"/photos/{ids[0]}"), 404)
    assert ann.post("/photos/delete", {"ids": ids[1:3]}).json() == {"deleted": ids[1:3]}
    assert ann.delete("/photos").status_code == 202
    run_jobs("photos.delete_photos", "photos.delete_files", "photos.cluster")
    assert rows_with(*TRACES) == []
    assert files_in(storage_folder) == []
    assert not Gathering.objects.exists()
    events = Event.objects.filter(type="photos.uploaded")
    assert [event.payload for event in events.order_by("id")] == [{"photo": id} for id in ids]
    assert {event.actor for event in events} == {""}
    assert set(Job.objects.filter(event__in=events).values_list("state", flat=True)) <= {
        "cancelled",
        "completed",
    }


def test_a_stranger_deleted_the_photos_of_others(ann: Program) -> None:
    bob = program("bob")
    theirs = make_gathering(bob.user).photos.get()
    problem(ann.delete(f"/photos/{theirs.pk}"), 404)
    assert ann.post("/photos/delete", {"ids": [theirs.pk]}).json() == {"deleted": []}
    assert ann.delete("/photos").status_code == 202
    Visitor(ann.user).post("/photos/mine/delete", {"id": theirs.pk, "sure": 1})
    reader = Program(bob.user, "photos:read", "photos:write")
    problem(reader.delete(f"/photos/{theirs.pk}"), 403, "scope-missing")
    problem(reader.delete("/photos"), 403, "scope-missing")
    assert Photo.objects.get() == theirs


def test_the_page_deleted_without_asking(ann: Program) -> None:
    visitor, photos = Visitor(ann.user), [make_photo(ann.user) for _ in range(3)]
    chosen = {"id": [photos[0].pk, photos[1].pk]}
    asked = visitor.post("/photos/mine/delete", chosen)
    assert "Delete 2 photos?" in words(asked)
    assert "Delete all your photos?" in words(visitor.post("/photos/mine/delete", {"all": 1}))
    assert Photo.objects.count() == 3
    assert visitor.post("/photos/mine/delete", {**chosen, "sure": 1}).status_code == 302
    assert list(Photo.objects.all()) == photos[2:]
    for wrong in ({"id": "x"}, {"id": 2**70, "sure": 1}, {}):
        assert visitor.post("/photos/mine/delete", wrong).status_code in (302, 400)
    assert Photo.objects.count() == 1
    assert visitor.get("/photos/mine").content.decode().count('name="id"') == 1


def test_a_deleted_photo_still_counted_in_the_figures(ann: Program, run_jobs) -> None:
    mine = upload_photo(away(SQUARE, 60), user=ann.user)
    upload_photos(6, away(SQUARE, 30), spread=20)
    run_jobs("photos.cluster")
    gathering = Gathering.objects.get()
    assert gathering.photo_count == 7
    delete_photos([mine.pk], ann.user.pk)
    gathering.refresh_from_db()
    assert gathering.photo_count == 6
    assert_consistent(gathering)
    assert GatheringsAreTheirPhotos().find() == []


@pytest.mark.parametrize("state", ["ACTIVE", "FINALIZED"])
def test_a_gathering_of_too_few_showed_the_last_photos(ann: Program, run_jobs, state: str) -> None:
    mine = upload_photo(user=ann.user)
    others = upload_photos(4)
    run_jobs("photos.cluster")
    gathering = Gathering.objects.get()
    Gathering.objects.update(state=state)
    delete_photos([mine.pk], ann.user.pk)
    assert not Gathering.objects.exists()
    states = {photo.state for photo in Photo.objects.filter(pk__in=[p.pk for p in others])}
    assert states == {"new"}
    problem(ann.get(f"/photos/{others[0].pk}"), 404)
    problem(ann.get(f"/gatherings/{gathering.pk}"), 404)
    upload_photo()
    run_jobs("photos.cluster")
    assert Gathering.objects.get().photo_count == 5, "they form another one with a new photo"


def test_a_photo_deleted_by_hand_left_its_gathering(run_jobs) -> None:
    photos = upload_photos(5)
    run_jobs("photos.cluster")
    Photo.objects.filter(pk=photos[0].pk).delete()
    invariant = GatheringsAreTheirPhotos()
    assert invariant.repair(invariant.find()) == 1
    assert not Gathering.objects.exists()
    assert invariant.find() == []


def test_a_storage_that_failed_kept_the_files(
    ann: Program,
    run_jobs,
    clock,
    storage_folder: Path,
) -> None:
    photo = Photo.objects.get(pk=upload(ann))
    path = storage_folder / photo.storage_key
    path.unlink()
    (path / "in the way").mkdir(parents=True)  # a folder cannot be deleted as a file
    delete_photos([photo.pk], ann.user.pk)
    run_jobs("photos.delete_files")
    job = Job.objects.get(handler="photos.delete_files")
    assert (job.state, job.attempt) == ("pending", 0)
    (path / "in the way").rmdir()
    path.rmdir()
    clock.step(301)
    run_jobs("photos.delete_files")
    assert files_in(storage_folder) == []
    assert not FileDeletion.objects.exists()


def test_a_lost_job_kept_the_files(ann: Program, run_jobs, clock, storage_folder: Path) -> None:
    delete_photos([upload(ann)], ann.user.pk)
    Job.objects.all().delete()
    invariant = FilesOfDeletedPhotosAreGone()
    assert invariant.find() == [], "not at once: the job may be on its way"
    FileDeletion.objects.update(requested_at=recent() - timedelta(hours=1))
    assert invariant.repair(invariant.find()) == 1
    assert invariant.find() == []
    run_jobs("photos.delete_files")
    assert files_in(storage_folder) == []
    assert not FileDeletion.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_deleting_while_others_joined_broke_the_figures(run_jobs) -> None:
    owner = person("ann")
    mine = [upload_photo(away(SQUARE, 10, 36 * n), user=owner).pk for n in range(10)]
    upload_photos(10, spread=20)
    run_jobs("photos.cluster")
    upload_photos(10, spread=15)

    def work(number: int) -> Any:
        if number % 2:
            return run_jobs("photos.cluster")
        return delete_photos(mine[number::4], owner.pk)

    at_once(4, work)
    run_jobs("photos.cluster")
    assert_consistent(Gathering.objects.get())
    assert GatheringsAreTheirPhotos().find() == []
    assert Gathering.objects.get().photo_count == Photo.objects.count() == 25


def test_originals_were_kept_for_ever(
    ann: Program,
    settings,
    storage_folder: Path,
) -> None:
    old, new = (Photo.objects.get(pk=upload(ann)) for _ in range(2))
    elsewhere = upload_photo(user=ann.user)
    long_ago = recent() - timedelta(days=31)
    Photo.objects.filter(pk__in=[old.pk, elsewhere.pk]).update(uploaded_at=long_ago)
    invariant = OriginalsExpire()
    assert invariant.find() == []
    settings.PHOTOS_ORIGINALS_RETENTION_DAYS = 30
    assert invariant.repair(invariant.find()) == 2
    assert invariant.find() == []
    left = {str(path.relative_to(storage_folder)) for path in files_in(storage_folder)}
    assert left == {f"{old.storage_key}.small.jpg", new.storage_key, f"{new.storage_key}.small.jpg"}
    assert ann.get(f"/photos/{old.pk}/image").status_code == 200
