"""Photos in the API: upload, list, show, delete."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Status

from tailrace.domains.photos.api import schemas
from tailrace.domains.photos.api.schemas import DeletedPhotos, PhotoOut, UploadedPhoto
from tailrace.domains.photos.api.upload_request import body_of_upload, read_upload
from tailrace.domains.photos.handlers.deletion import delete_all
from tailrace.domains.photos.models import Gathering, Photo
from tailrace.domains.photos.models.visibility import may_see_location, visible_photos
from tailrace.domains.photos.upload_paths import PICTURES
from tailrace.domains.photos.uploads.deletion.delete_photos import delete_photos
from tailrace.domains.photos.uploads.ingest import ingest
from tailrace.domains.photos.uploads.pictures import storage
from tailrace.domains.photos.uploads.pictures.picture import COPY_TYPE, DecoderBusy
from tailrace.domains.photos.uploads.pictures.picture_response import picture_response
from tailrace.web.accounts.time_zones import zone_of
from tailrace.web.api.auth import Caller, Needs, caller
from tailrace.web.api.idempotency import KeyHeader, key_problems
from tailrace.web.api.pagination import Page, newest_first
from tailrace.web.api.problems import Problem, not_found
from tailrace.web.uploads.api import upload_problems
from tailrace.web.uploads.limits import UPLOAD_COST

READ = Needs("photos:read")
WRITE = Needs(
    "photos:write",
    files=PICTURES,
    cost=UPLOAD_COST,
)
DELETE = Needs("photos:delete")
router = Router()


_UPLOADED = {200: UploadedPhoto, 201: UploadedPhoto}


@router.post(
    "", auth=WRITE, response=_UPLOADED, summary="Upload a photo", openapi_extra=body_of_upload()
)
def upload_photo(request: HttpRequest, idempotency_key: KeyHeader = None) -> Status[UploadedPhoto]:
    """Send a picture as `multipart/form-data`, or only its location and time as JSON.

    Location and time are read from the picture's EXIF unless you send them. If they are missing,
    the problem names the fields to send. Returns 201 with the new photo, or 200 with the existing
    photo if the same `Idempotency-Key` (within a week) or `storage_key` was sent before.
    """
    who = caller(request)
    fields, file = read_upload(request)
    try:
        with upload_problems(), key_problems():
            result = ingest(who.user, fields, file, zone_of(who.user), idempotency_key or "")
    except DecoderBusy as error:
        headers = {"Retry-After": str(error.retry_seconds)}
        raise Problem(503, f"{error}; try again", kind="busy", headers=headers) from None
    photo = _photo(who, result.photo).model_dump()
    return Status(201 if result.new else 200, UploadedPhoto(**photo, read=sorted(result.from_exif)))


@router.get("", auth=READ, response=Page[PhotoOut], summary="List photos")
def list_photos(request: HttpRequest, query: Query[schemas.PhotoFilter]) -> Page[PhotoOut]:
    """Your own photos by upload time, or the photos of a gathering by the time they were taken.

    Newest first.
    """
    who = caller(request)
    photos = Photo.objects.select_related("user")
    if query.gathering is None:
        photos, column = photos.filter(user=who.user), "uploaded_at"
    else:
        if not Gathering.objects.filter(pk=query.gathering).exists():
            raise not_found("gathering")
        photos, column = photos.filter(gathering=query.gathering), "taken_at"
    return newest_first(photos, query, lambda photo: _photo(who, photo), time_column=column)


@router.delete("", auth=DELETE, response={202: None}, summary="Delete all your photos")
def delete_all_photos(request: HttpRequest) -> Status[None]:
    """A job deletes all photos that you have now, a hundred at a time."""
    delete_all(caller(request).user)
    return Status(202, None)


@router.post("/delete", auth=DELETE, response=DeletedPhotos, summary="Delete several photos")
def delete_several_photos(request: HttpRequest, body: schemas.PhotosToDelete) -> DeletedPhotos:
    """Deletes the photos that are yours, and ignores the ids of other photos."""
    return DeletedPhotos(deleted=delete_photos(body.ids, caller(request).user.pk))


@router.delete("/{int:id}", auth=DELETE, response={204: None}, summary="Delete one photo")
def delete_photo(request: HttpRequest, id: int) -> Status[None]:
    """Deletes your photo with its picture, location and time, and removes it from its gathering.

    A gathering with too few photos left is dissolved.
    """
    if not delete_photos([id], caller(request).user.pk):
        raise not_found("photo")
    return Status(204, None)


@router.get("/{int:id}", auth=READ, response=PhotoOut, summary="Get one photo")
def get_photo(request: HttpRequest, id: int) -> PhotoOut:
    """Your own photo, or any photo that is in a gathering."""
    who = caller(request)
    return _photo(who, _visible_photo(who, id))


_JPEG = {
    "description": "a JPEG without metadata",
    "content": {COPY_TYPE: {"schema": {"type": "string", "format": "binary"}}},
}


@router.get(
    "/{int:id}/image",
    auth=READ,
    summary="Get a small copy of a photo's picture",
    openapi_extra={"responses": {200: _JPEG}},
)
def get_image(request: HttpRequest, id: int) -> HttpResponse:
    response = picture_response(_visible_photo(caller(request), id))
    if response is None:
        raise Problem(404, "the picture of this photo is stored elsewhere")
    return response


def _visible_photo(who: Caller, id: int) -> Photo:
    photo = visible_photos(who.user).select_related("user").filter(pk=id).first()
    if photo is None:
        raise not_found("photo")
    return photo


def _photo(who: Caller, photo: Photo) -> PhotoOut:
    hidden: Mapping[str, Any] = {}
    if not may_see_location(who.user, photo):
        hidden = {"lat": None, "lon": None, "storage_key": None, "reason": ""}
    url = f"{settings.PUBLIC_URL}/api/photos/{photo.pk}"
    values = {
        "id": photo.pk,
        "url": url,
        "image": f"{url}/image" if storage.is_stored_here(photo.storage_key) else None,
        "user": photo.user.get_username() if photo.user else None,
        "gathering": photo.gathering_id,
    }
    own = {name: getattr(photo, name) for name in PhotoOut.model_fields if name not in values}
    return PhotoOut(**{**values, **own, **hidden})
