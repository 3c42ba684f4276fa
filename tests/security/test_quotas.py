"""What one user may store: what an attacker got before is in the tests' names."""

from io import BytesIO
from pathlib import Path

import pytest
from django.db.models.functions import Now

from tailrace.domains.photos.models import Photo, Upload
from tailrace.domains.photos.uploads.deletion.delete_photos import delete_photos
from tailrace.domains.photos.uploads.quotas import usage_of
from tests.kit import at_once
from tests.photos.pictures import BERLIN, exif, picture, recent
from tests.photos.test_api import photo_json, send
from tests.web.program import Program, problem, program
from tests.web.visitor import Visitor, words

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def ann(settings) -> Program:
    settings.PHOTOS_DECODERS = 20
    return program("ann")


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_user_got_any_number_of_photos(ann: Program, settings) -> None:
    settings.PHOTOS_MAX_PER_USER = 2
    file = picture(exif(*BERLIN, recent()))
    assert send(ann, file, key="first").status_code == 201
    assert ann.post("/photos", photo_json(1)).status_code == 201
    for answer, field in (
        (send(ann, file), "file"),
        (ann.post("/photos", photo_json(2)), "storage_key"),
    ):
        (error,) = problem(answer, 409, "too-many")["errors"]
        assert error == {
            "pointer": f"#/{field}",
            "detail": "the maximum number of photos is 2 (PHOTOS_MAX_PER_USER); delete some first",
        }
    page = Visitor(ann.user).post("/photos/upload", {"file": BytesIO(file)})
    assert "The maximum number of photos is 2 (PHOTOS_MAX_PER_USER)" in words(page)
    assert "You have 2 of 2 photos." in Visitor(ann.user).text("/photos/mine")
    assert send(ann, file, key="first").status_code == 200, "it is no new photo"
    assert ann.post("/photos", photo_json(1)).status_code == 200
    assert send(program("bob"), file).status_code == 201
    delete_photos([Photo.objects.filter(user=ann.user).first().pk], ann.user.pk)
    assert send(ann, file).status_code == 201


def test_a_user_got_the_whole_disk(ann: Program, settings, storage_folder: Path) -> None:
    file = picture(exif(*BERLIN, recent()), size=(900, 700))
    assert send(ann, file).status_code == 201
    stored = sum(path.stat().st_size for path in files_in(storage_folder))
    assert usage_of(ann.user).bytes == stored
    settings.PHOTOS_MAX_GIGABYTES_PER_USER = (2 * stored - 1) / 1e9
    for _ in range(2):
        (error,) = problem(send(ann, file), 409, "too-many")["errors"]
        assert "(PHOTOS_MAX_GIGABYTES_PER_USER); delete some first" in error["detail"]
    assert len(files_in(storage_folder)) == 2, "nothing of it is kept"
    assert not Upload.objects.exists()
    settings.PHOTOS_MAX_GIGABYTES_PER_USER = 2 * stored / 1e9
    assert send(ann, file).status_code == 201
    problem(send(ann, file), 409, "too-many")
    Photo.objects.update(original_deleted_at=Now())
    assert send(ann, file).status_code == 201, "the copies alone take space"


def test_uploads_at_once_all_got_the_last_place(
    ann: Program,
    settings,
    storage_folder: Path,
) -> None:
    settings.PHOTOS_MAX_PER_USER = 1
    file = picture(exif(*BERLIN, recent()))
    programs = [Program(ann.user) for _ in range(6)]
    statuses = at_once(6, lambda number: send(programs[number], file).status_code)
    assert sorted(statuses) == [201] + [409] * 5
    assert Photo.objects.count() == 1
    assert len(files_in(storage_folder)) == 2
