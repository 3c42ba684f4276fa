"""intake: what somebody sends becomes a photo, once, or nothing of it is kept.

The files are written between two transactions: the first notes their key (Upload), the second
stores the photo and ends the note. Whoever dies between them leaves the note, by which the sweeper
removes the files.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import IO, Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.files.uploadedfile import UploadedFile
from django.db import DatabaseError, IntegrityError, InterfaceError, OperationalError, transaction
from django.db.models import Q

from domains.photos import pictures, shelf, upload
from domains.photos.models import Photo, Upload
from events import clock

LEFT_BEHIND = timedelta(hours=1)
"""An upload that is not done by then never will be."""
REMEMBERED = timedelta(days=7)
"""How long an Idempotency-Key stands for the photo that was made with it."""
KEY_LENGTH = 200
NEEDED = {
    "lat": "degrees, north above 0, -90 to 90",
    "lon": "degrees, east above 0, -180 to 180",
    "taken_at": "the time with its zone, such as 2026-10-01T12:00:00Z",
}


@dataclass(frozen=True, slots=True)
class Wrong:
    """What is wrong with a field, and what to do."""

    field: str
    message: str
    missing: bool = False


class Refused(ValueError):
    """It is no photo as it was sent. Nothing was kept."""

    def __init__(self, wrong: Sequence[Wrong]) -> None:
        super().__init__("; ".join(f"{one.field}: {one.message}" for one in wrong))
        self.wrong = list(wrong)


class TooLarge(Refused):
    pass


class NotKept(OSError):
    """The place of the pictures takes none now. Nothing was kept."""


class Taken(Refused):
    """There is another photo by this key."""


@dataclass(frozen=True, slots=True)
class Given:
    """What is said of a photo beside its picture."""

    lat: float | None = None
    lon: float | None = None
    taken_at: datetime | None = None
    caption: str = ""
    storage_key: str = ""
    """Where a picture is kept that does not come along."""

    def place_and_time(self) -> dict[str, Any]:
        found = {"lat": self.lat, "lon": self.lon, "taken_at": self.taken_at}
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Stored:
    photo: Photo
    new: bool
    """False: it was sent before."""
    read: frozenset[str] = frozenset()
    """Which of lat, lon and taken_at were read in the picture."""


def largest() -> int:
    """Return how many bytes a picture may have."""
    return int(settings.PHOTOS_MAX_MEGABYTES * 1_000_000)


def take(
    user: User, given: Given, file: UploadedFile | None, zone: tzinfo, key: str = ""
) -> Stored:
    """Store a photo: a picture with what is given beside it, or what is given alone.

    Raises Refused, which names the fields. With a `key` that the user has sent before, the photo
    of that time is given back.
    """
    if len(key) > KEY_LENGTH or "\0" in key:
        raise Refused([Wrong("Idempotency-Key", f"takes {KEY_LENGTH} characters at most")])
    print_ = _fingerprint(given, file) if key else ""
    if key and (known := _known(user, key, print_)):
        return known
    row = Upload(user=user, idempotency_key=key, fingerprint=print_)
    if file is None:
        return _take_words(row, given)
    if file.size is not None and file.size > largest():
        message = f"has {megabytes(file.size)}, and at most {megabytes(largest())} are taken"
        raise TooLarge([Wrong("file", f"{message} (PHOTOS_MAX_MEGABYTES)")])
    return _take_picture(row, given, file, zone)


def megabytes(count: int) -> str:
    return f"{count / 1e6:.1f} MB"


def _take_words(row: Upload, given: Given) -> Stored:
    """Store what is given alone. The same again, under the same storage key, is the same photo."""
    wanted = _whole(given.place_and_time(), {}, "is missing; send it")
    if given.storage_key.startswith(shelf.OURS) or not given.storage_key:
        message = f"say where the picture is kept; what begins with {shelf.OURS} is kept here"
        raise Refused([Wrong("storage_key", message)])
    _check(wanted, given.storage_key, given.caption)
    known = Photo.objects.filter(storage_key=given.storage_key).first()
    if known is None:
        try:
            return _finish(row, wanted, given.storage_key, given.caption)
        except upload.InvalidPhoto:  # somebody was quicker
            known = Photo.objects.get(storage_key=given.storage_key)
        except IntegrityError:
            return _sent_before(row)
    same = all(getattr(known, name) == value for name, value in wanted.items())
    if known.user_id != row.user_id or not same or known.caption != given.caption:
        message = f"{given.storage_key!r} is taken by another photo"
        if known.user_id == row.user_id:
            message += f" of yours: photo {known.pk}, with another place, time or caption"
        raise Taken([Wrong("storage_key", message)])
    return Stored(known, new=False)


def _take_picture(row: Upload, given: Given, file: IO[bytes], zone: tzinfo) -> Stored:
    if given.storage_key:
        message = "names a picture that is kept elsewhere: send it as JSON, without a file"
        raise Refused([Wrong("storage_key", message)])
    try:
        picture = pictures.read(file, zone, settings.PHOTOS_MAX_MEGAPIXELS)
    except pictures.NotAPicture as error:
        raise Refused([Wrong("file", str(error))]) from None
    said = {**picture.said, **given.place_and_time()}
    wanted = _whole(said, picture.wrong, "the picture does not say it, so send it")
    row.storage_key = shelf.new_key(picture.suffix)
    _check(wanted, row.storage_key, given.caption, read=picture.said.keys() - _names(given))
    row.save(force_insert=True)
    try:
        shelf.put(row.storage_key, file, picture.copy)
        stored = _finish(row, wanted, row.storage_key, given.caption)
    except (OperationalError, InterfaceError):
        raise  # whether it was committed is not known: the sweeper looks
    except BaseException as error:
        _undo(row)
        if isinstance(error, OSError):
            raise NotKept(f"pictures cannot be kept now: {error.strerror or error}") from error
        if isinstance(error, IntegrityError) and row.idempotency_key:
            return _sent_before(row)
        raise
    return Stored(stored.photo, new=True, read=frozenset(wanted.keys() - _names(given)))


def _names(given: Given) -> set[str]:
    return set(given.place_and_time())


def _whole(said: Mapping[str, Any], wrong: Mapping[str, str], absent: str) -> dict[str, Any]:
    """Return place and time; Refused names all of them that are missing or cannot be."""
    faults = []
    for name, form in NEEDED.items():
        if name not in said:
            why = f"{wrong[name]}; send the right one" if name in wrong else absent
            faults.append(Wrong(name, f"{why} as {name}: {form}", missing=True))
    if faults:
        raise Refused(faults)
    return {name: said[name] for name in NEEDED}


def _check(
    wanted: Mapping[str, Any],
    key: str,
    caption: str,
    read: "set[str] | frozenset[str]" = frozenset(),
) -> None:
    try:
        upload.check(**wanted, storage_key=key, caption=caption)
    except upload.InvalidPhoto as error:
        message = str(error).removeprefix(f"{error.field}: ")
        if error.field in read:
            message = f"the picture's EXIF says so: {message}; send the right one as {error.field}"
        raise Refused([Wrong(error.field, message, missing=error.field in read)]) from None


def _finish(row: Upload, wanted: Mapping[str, Any], key: str, caption: str) -> Stored:
    """Store the photo and end the upload, in one transaction."""
    with transaction.atomic():
        photo = upload.store(row.user, **wanted, storage_key=key, caption=caption)
        if row.pk and not Upload.objects.select_for_update().filter(pk=row.pk).exists():
            raise DatabaseError("the upload took so long that its files were removed")
        if row.idempotency_key:
            row.photo = photo
            row.save()
        elif row.pk:
            row.delete()
    return Stored(photo, new=True)


def _undo(row: Upload) -> None:
    if shelf.remove(row.storage_key):
        Upload.objects.filter(pk=row.pk, photo=None).delete()


def _known(user: User, key: str, print_: str) -> Stored | None:
    row = (
        Upload.objects.filter(user=user, idempotency_key=key, photo__isnull=False)
        .select_related("photo")
        .first()
    )
    if row is None or row.photo is None:
        return None
    if row.fingerprint != print_:
        message = f"was sent before with something else (photo {row.photo_id}); take a new one"
        raise Refused([Wrong("Idempotency-Key", message)])
    return Stored(row.photo, new=False)


def _sent_before(row: Upload) -> Stored:
    """Return the photo of the same request that was quicker."""
    known = _known(row.user, row.idempotency_key, row.fingerprint)
    if known is None:
        raise DatabaseError("a photo is there twice, and not by its Idempotency-Key")
    return known


def _fingerprint(given: Given, file: UploadedFile | None) -> str:
    words = [given.lat, given.lon, str(given.taken_at), given.caption, given.storage_key]
    digest = hashlib.sha256(json.dumps(words).encode())
    if file is not None:
        for part in file.chunks():
            digest.update(part)
    return digest.hexdigest()


def left_behind(limit: int) -> list[int]:
    """Return uploads that nobody will finish, and those whose keys need not be known any more."""
    now = clock.now()
    over = Q(photo=None, started_at__lt=now - LEFT_BEHIND) | Q(started_at__lt=now - REMEMBERED)
    rows = Upload.objects.filter(over, started_at__lt=now - LEFT_BEHIND)
    return list(rows.order_by("started_at").values_list("pk", flat=True)[:limit])


def clear(ids: Sequence[int]) -> int:
    """Remove these uploads, and the files of those that made no photo; return how many."""
    gone = []
    rows = Upload.objects.select_for_update(skip_locked=True).filter(pk__in=ids)
    for row in rows:
        kept = not row.storage_key or Photo.objects.filter(storage_key=row.storage_key).exists()
        if kept or shelf.remove(row.storage_key):
            gone.append(row.pk)
    return Upload.objects.filter(pk__in=gone).delete()[0]
