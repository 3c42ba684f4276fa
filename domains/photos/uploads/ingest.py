"""Store a user's upload as one photo, or store nothing.

The files are written between two transactions: the first stores their key in an Upload row, the
second stores the photo and ends the upload. The sweeper deletes the files of uploads that stay.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import IO, Any

from django.contrib.auth.models import User
from django.core.files.uploadedfile import UploadedFile
from django.db import DatabaseError, IntegrityError, InterfaceError, OperationalError

from tailrace.domains.photos.models import Photo, Upload
from tailrace.domains.photos.uploads import quotas
from tailrace.domains.photos.uploads.create_photo import create_photo
from tailrace.domains.photos.uploads.pictures import storage
from tailrace.domains.photos.uploads.pictures.decoder import InvalidPicture
from tailrace.domains.photos.uploads.pictures.picture import read_picture
from tailrace.domains.photos.uploads.validation import InvalidPhoto, validate
from tailrace.jobs.platform.requests.errors import KeyReused
from tailrace.web.accounts.user_lock import locked
from tailrace.web.uploads.errors import StorageUnavailable, UploadRejected
from tailrace.web.uploads.limits import check_size

FORMATS = {
    "lat": "degrees from -90 to 90, north is positive",
    "lon": "degrees from -180 to 180, east is positive",
    "taken_at": "a time with its zone, such as 2026-10-01T12:00:00Z",
}


class StorageKeyTaken(UploadRejected):
    """Another photo has this storage key."""

    status, kind = 409, "exists"


@dataclass(frozen=True, slots=True)
class PhotoFields:
    """The fields of an upload, with or without a picture."""

    lat: float | None = None
    lon: float | None = None
    taken_at: datetime | None = None
    caption: str = ""
    storage_key: str = ""
    """Where the picture is stored, if the upload contains no picture."""
    place_from_timeline: bool = False
    """Whether a picture without a location waits for a location from its owner's timeline."""

    def place_and_time(self) -> dict[str, Any]:
        values = {"lat": self.lat, "lon": self.lon, "taken_at": self.taken_at}
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True)
class IngestedPhoto:
    photo: Photo
    new: bool
    """False if the photo was uploaded before."""
    from_exif: Set[str] = frozenset()
    """The names among lat, lon and taken_at whose values come from the picture's EXIF."""


def ingest(
    user: User, fields: PhotoFields, file: UploadedFile | None, zone: tzinfo, key: str = ""
) -> IngestedPhoto:
    """Store a photo: a picture with its fields, or only fields if `file` is None. A `taken_at` of
    EXIF without a time zone is in `zone`. `key` is the Idempotency-Key: a second upload with the
    same key returns the photo of the first.

    Raises UploadRejected, which names the fields, KeyReused, DecoderBusy or StorageUnavailable.
    """
    fingerprint = _fingerprint(fields, file) if key else ""
    if key and (photo := _previous_photo(user, key, fingerprint)):
        return IngestedPhoto(photo, new=False)
    upload = Upload(user=user, idempotency_key=key, fingerprint=fingerprint)
    try:
        if file is None:
            return _ingest_fields(upload, fields)
        return _ingest_picture(upload, fields, file, zone)
    except IntegrityError:  # perhaps a concurrent request with the same key was faster
        if key and (photo := _previous_photo(user, key, fingerprint)):
            return IngestedPhoto(photo, new=False)
        raise


def _fingerprint(fields: PhotoFields, file: UploadedFile | None) -> str:
    """Return a hash of the fields and the file, to recognise them with an Idempotency-Key."""
    values = [fields.lat, fields.lon, str(fields.taken_at), fields.caption, fields.storage_key]
    flags = ["place_from_timeline"] if fields.place_from_timeline else []
    digest = hashlib.sha256(json.dumps(values + flags).encode())
    for chunk in () if file is None else file.chunks():
        digest.update(chunk)
    return digest.hexdigest()


def _previous_photo(user: User, key: str, fingerprint: str) -> Photo | None:
    """Return the photo that the user uploaded with this key, or None. Raises KeyReused if it had
    another picture or other fields."""
    uploads = Upload.objects.filter(user=user, idempotency_key=key, photo__isnull=False)
    upload = uploads.select_related("photo").first()
    if upload and upload.fingerprint != fingerprint:
        raise KeyReused(key, f"photo {upload.photo_id}")
    return upload.photo if upload else None


def _ingest_fields(upload: Upload, fields: PhotoFields) -> IngestedPhoto:
    """Store a photo whose picture is stored elsewhere, unless the same fields were sent before."""
    key = fields.storage_key
    values = _complete(fields.place_and_time(), {}, "missing")
    if storage.is_stored_here(key) or not key:
        message = f"must state where the picture is stored, and not begin with {storage.PREFIX}"
        raise UploadRejected(("storage_key", message))
    _validate(values, key, fields.caption)
    existing = Photo.objects.filter(storage_key=key).first()
    if existing is None:
        try:
            return IngestedPhoto(_store(upload, values, key, fields.caption), new=True)
        except InvalidPhoto:  # another request has just stored it
            existing = Photo.objects.get(storage_key=key)
    same = all(getattr(existing, name) == value for name, value in values.items())
    if existing.user_id != upload.user_id or not same or existing.caption != fields.caption:
        message = f"{key!r} belongs to another photo"
        if existing.user_id == upload.user_id:
            message += f" of yours: photo {existing.pk}, with another location, time or caption"
        raise StorageKeyTaken(("storage_key", message))
    return IngestedPhoto(existing, new=False)


def _ingest_picture(
    upload: Upload, fields: PhotoFields, file: UploadedFile, zone: tzinfo
) -> IngestedPhoto:
    check_size("file", file.size or 0, "PHOTOS_MAX_MEGABYTES")
    if fields.storage_key:
        message = "is only for pictures that are stored elsewhere: send JSON without a file"
        raise UploadRejected(("storage_key", message))
    quotas.check(upload.user, file.size or 0, "file")  # _store checks again under a lock
    try:
        picture = read_picture(file, zone, upload.user_id)
    except InvalidPicture as error:
        raise UploadRejected(("file", str(error))) from None
    exif, from_fields = picture.exif, fields.place_and_time()
    known = {**exif.values, **from_fields}
    place = {"lat", "lon"}
    if fields.place_from_timeline and not (place <= known.keys() or place & from_fields.keys()):
        known |= dict.fromkeys(place)
    values = _complete(known, exif.errors, "not in the picture's EXIF")
    from_exif = {
        name for name in exif.values.keys() - from_fields.keys() if values[name] is not None
    }
    upload.storage_key = storage.new_key(picture.suffix)
    _validate(values, upload.storage_key, fields.caption, from_exif)
    try:
        with _files(upload, file, picture.copy):
            photo = _store(
                upload, values, upload.storage_key, fields.caption,
                original_bytes=file.size or 0, copy_bytes=len(picture.copy),
            )  # fmt: skip
    except OSError as error:
        raise StorageUnavailable(error) from error
    return IngestedPhoto(photo, new=True, from_exif=frozenset(from_exif))


@contextmanager
def _files(upload: Upload, file: IO[bytes], copy: bytes) -> Iterator[None]:
    """Write the picture's files before the block, and delete them if the block fails. If the
    database connection breaks, it is unknown whether the photo was committed: the files stay."""
    upload.save(force_insert=True)
    try:
        storage.save(upload.storage_key, file, copy)
        yield
    except (OperationalError, InterfaceError):
        raise
    except BaseException:
        if storage.delete(upload.storage_key):
            Upload.objects.filter(pk=upload.pk, photo=None).delete()
        raise


def _complete(values: Mapping[str, Any], errors: Mapping[str, str], missing: str) -> dict[str, Any]:
    """Return location and time. Raises UploadRejected with all `missing` and unusable fields."""
    faults = [
        (name, f"{errors.get(name, missing)}; send {name}: {form}")
        for name, form in FORMATS.items()
        if name not in values
    ]
    if faults:
        raise UploadRejected(*faults)
    return {name: values[name] for name in FORMATS}


def _validate(
    values: Mapping[str, Any], key: str, caption: str, from_exif: Set[str] = frozenset()
) -> None:
    try:
        validate(**values, storage_key=key, caption=caption, unplaced=True)
    except InvalidPhoto as error:
        message = error.message
        if error.field in from_exif:
            message = f"in the picture's EXIF {message}; send {error.field}: {FORMATS[error.field]}"
        raise UploadRejected((error.field, message)) from None


def _store(
    upload: Upload, values: Mapping[str, Any], key: str, caption: str, **sizes: int
) -> Photo:
    """Store the photo, with its files' sizes, within the user's quota, and end the upload."""
    field = "file" if storage.is_stored_here(key) else "storage_key"
    with locked(upload.user):
        quotas.check(upload.user, sum(sizes.values()), field)
        photo = create_photo(upload.user, storage_key=key, caption=caption, **{**values, **sizes})
        if upload.pk and not Upload.objects.select_for_update().filter(pk=upload.pk).exists():
            raise DatabaseError("the upload took too long: the sweeper has deleted its files")
        if upload.idempotency_key:
            upload.photo = photo
            upload.save()
        elif upload.pk:
            upload.delete()
    return photo
