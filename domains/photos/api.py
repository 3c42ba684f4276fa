"""api: photos in, by file or by their words alone; photos and gatherings out."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from ninja import Header, Query, Router, Status
from pydantic import BeforeValidator, Field, ValidationError

from domains.photos import intake, shelf
from domains.photos.models import Gathering, Photo
from domains.photos.pictures import COPY_TYPE
from domains.photos.sight import seen_by, sees_place
from domains.photos.upload import CAPTION_LIMIT, KEY_LIMIT
from subscriptions.api import bodies
from subscriptions.api.gate import Caller, Needs, caller
from subscriptions.api.paging import Page, Paged, decode, encode, newest_first, page_of
from subscriptions.api.problems import Fault, Problem, invalid, not_found
from subscriptions.api.shapes import In, Out
from subscriptions.pages.person import zone_of

MULTIPART, JSON = "multipart/form-data", "application/json"
FORM_BYTES = 65_536
"""Of the fields and borders beside the picture."""


def _most() -> tuple[int, str]:
    return intake.largest() + FORM_BYTES, "PHOTOS_MAX_MEGABYTES"


READ, WRITE = Needs("photos:read"), Needs("photos:write", files=_most)
photos, gatherings = Router(), Router()
routers = {"/photos": photos, "/gatherings": gatherings}


def _time(value: Any) -> Any:
    try:
        at = datetime.fromisoformat(value) if isinstance(value, str) else None
        at and at.timestamp()  # the ends of the calendar have no time in UTC
    except (ValueError, OverflowError):
        at = None
    if at is None or at.tzinfo is None:
        raise ValueError(f"{str(value)[:60]!r} is no time with its zone: {EXAMPLE}")
    return at


EXAMPLE = "send one such as 2026-10-01T12:00:00Z or 2026-10-01T14:00:00+02:00"
Latitude = Annotated[float, Field(ge=-90, le=90, description="degrees, north above 0")]
Longitude = Annotated[float, Field(ge=-180, le=180, description="degrees, east above 0")]
TakenAt = Annotated[
    datetime, BeforeValidator(_time), Field(description="with its zone, by RFC 3339")
]
Caption = Annotated[str, Field(max_length=CAPTION_LIMIT)]


class PhotoIn(In):
    """A photo whose picture is kept elsewhere."""

    storage_key: Annotated[str, Field(min_length=1, max_length=KEY_LIMIT)]
    """Where. Sent again, it is the same photo."""
    lat: Latitude
    lon: Longitude
    taken_at: TakenAt
    caption: Caption = ""


class PictureIn(In):
    """What may stand beside a picture; what is given wins over what its EXIF says."""

    lat: Latitude | None = None
    lon: Longitude | None = None
    taken_at: TakenAt | None = None
    caption: Caption = ""


class PhotoOut(Out):
    id: int
    url: str
    image: str | None
    """A small copy of the picture, a JPEG that says nothing of place and time; null: not here."""
    user: str | None
    caption: str
    lat: float | None
    """Degrees; null for photos of others: their gathering says where."""
    lon: float | None
    taken_at: datetime
    uploaded_at: datetime
    storage_key: str | None
    """Null for photos of others."""
    state: Literal["new", "clustered", "unclusterable"]
    reason: str
    """Why it is unclusterable."""
    gathering: int | None


class PhotoMade(PhotoOut):
    read: list[str]
    """Which of `lat`, `lon` and `taken_at` were read in the picture."""


class GatheringOut(Out):
    id: int
    url: str
    state: Literal["ACTIVE", "FINALIZED"]
    lat: float
    """Of the centroid of its photos, degrees."""
    lon: float
    radius: float
    """Metres from there to the farthest photo."""
    photo_count: int
    first_photo_at: datetime
    last_photo_at: datetime


class PhotosAsked(Paged):
    gathering: Annotated[
        int | None, Field(ge=1, le=2**63 - 1, description="those of it, of everybody")
    ] = None


class GatheringsAsked(Paged):
    state: Annotated[
        Literal["ACTIVE", "FINALIZED"] | None, Field(description="only those in it")
    ] = None


def _body() -> dict[str, Any]:
    picture = PictureIn.model_json_schema()
    picture["properties"] = {
        "file": {
            "type": "string",
            "format": "binary",
            "description": "the picture: JPEG, PNG or WebP, PHOTOS_MAX_MEGABYTES at most",
        },
        **picture["properties"],
    }
    picture["required"] = ["file"]
    content = {MULTIPART: {"schema": picture}, JSON: {"schema": PhotoIn.model_json_schema()}}
    return {"requestBody": {"required": True, "content": content}}


@photos.post(
    "",
    auth=WRITE,
    response={200: PhotoMade, 201: PhotoMade},
    summary="Upload a photo, or what is known of one",
    openapi_extra=_body(),
)
def upload_photo(
    request: HttpRequest,
    idempotency_key: Annotated[
        str | None,
        Header(
            alias="Idempotency-Key",
            max_length=intake.KEY_LENGTH,
            description="the same for each try of one upload, so that it makes one photo",
        ),
    ] = None,
) -> Status[PhotoMade]:
    """A picture as `multipart/form-data`, or its place and time alone as JSON.

    Place and time are read in the picture's EXIF, if they are not given; what neither says is
    asked for by a problem that names the fields. 201 with the photo; 200 if it was sent before,
    by the same `Idempotency-Key` (for a week) or the same `storage_key`.
    """
    who = caller(request)
    given, file = _read(request)
    try:
        stored = intake.take(who.user, given, file, zone_of(who.user), idempotency_key or "")
    except intake.Taken as error:
        raise _problem(error, 409, "exists") from None
    except intake.TooLarge as error:
        raise _problem(error, 413) from None
    except intake.Refused as error:
        raise _problem(error, 422, "invalid") from None
    except intake.NotKept as error:
        raise Problem(503, str(error), headers={"Retry-After": "60"}) from None
    shown = _photo(who, stored.photo).model_dump()
    return Status(201 if stored.new else 200, PhotoMade(**shown, read=sorted(stored.read)))


@photos.get("", auth=READ, response=Page[PhotoOut], summary="One's photos, or a gathering's")
def list_photos(request: HttpRequest, asked: Query[PhotosAsked]) -> Page[PhotoOut]:
    """One's own, as they were uploaded; those of a gathering, as they were taken. Newest first."""
    who = caller(request)
    rows = Photo.objects.select_related("user")
    if asked.gathering is None:
        rows, column = rows.filter(user=who.user), "uploaded_at"
    else:
        if not Gathering.objects.filter(pk=asked.gathering).exists():
            raise not_found("gathering")
        rows, column = rows.filter(gathering=asked.gathering), "taken_at"
    if asked.cursor is not None:
        micros, id = decode(asked.cursor, int, int)
        at = _at(micros)
        rows = rows.filter(Q(**{f"{column}__lt": at}) | Q(pk__lt=id), **{f"{column}__lte": at})
    found = list(rows.order_by(f"-{column}", "-pk")[: asked.limit + 1])
    return page_of(
        found,
        asked,
        lambda photo: _photo(who, photo),
        lambda photo: encode(_micros(getattr(photo, column)), photo.pk),
    )


@photos.get("/{int:id}", auth=READ, response=PhotoOut, summary="One photo")
def get_photo(request: HttpRequest, id: int) -> PhotoOut:
    """One's own, or one that is in a gathering."""
    who = caller(request)
    return _photo(who, _find(who, id))


@photos.get(
    "/{int:id}/image",
    auth=READ,
    summary="A small copy of its picture",
    openapi_extra={
        "responses": {
            200: {
                "description": "a JPEG that says nothing of place and time",
                "content": {COPY_TYPE: {"schema": {"type": "string", "format": "binary"}}},
            }
        }
    },
)
def get_image(request: HttpRequest, id: int) -> HttpResponse:
    answer = image_of(_find(caller(request), id))
    if answer is None:
        raise Problem(404, "the picture of this photo is not kept here")
    return answer


@gatherings.get("", auth=READ, response=Page[GatheringOut], summary="Gatherings")
def list_gatherings(request: HttpRequest, asked: Query[GatheringsAsked]) -> Page[GatheringOut]:
    """Newest first."""
    rows = Gathering.objects.all()
    if asked.state:
        rows = rows.filter(state=asked.state)
    return newest_first(rows, asked, _gathering)


@gatherings.get("/{int:id}", auth=READ, response=GatheringOut, summary="One gathering")
def get_gathering(request: HttpRequest, id: int) -> GatheringOut:
    found = Gathering.objects.filter(pk=id).first()
    if found is None:
        raise not_found("gathering")
    return _gathering(found)


def image_of(photo: Photo) -> HttpResponse | None:
    """Return the answer with its small copy, which nothing makes a browser take for a page."""
    copy = shelf.copy_of(photo.storage_key)
    if copy is None:
        return None
    return HttpResponse(
        copy,
        content_type=COPY_TYPE,
        headers={
            "X-Content-Type-Options": "nosniff",
            "Content-Security-Policy": "default-src 'none'; sandbox",
            "Content-Disposition": f'inline; filename="photo-{photo.pk}.jpg"',
            "Cache-Control": "private, max-age=3600",
        },
    )


def _read(request: HttpRequest) -> tuple[intake.Given, UploadedFile | None]:
    """Return what is sent; its JSON is read whole, its file is not."""
    if request.content_type == MULTIPART:
        files = request.FILES.getlist("file")
        count = sum(len(some) for _, some in request.FILES.lists())
        if len(files) != 1 or count != 1:
            raise _wrong("file", f"send one picture as `file`; there are {count} files")
        form = request.POST.dict()
        form.pop("csrfmiddlewaretoken", None)
        bodies.check_storable(form)
        words = {name: _number(name, text) for name, text in form.items() if text.strip()}
        return _given(PictureIn, words), files[0]
    bodies.check_type(request, JSON, MULTIPART)
    bodies.check_size(request)
    return _given(PhotoIn, bodies.parse(request.body)), None


def _number(name: str, text: str) -> Any:
    try:
        return float(text) if name in ("lat", "lon") else text
    except ValueError:
        return text


def _given(shape: type[PhotoIn] | type[PictureIn], said: Any) -> intake.Given:
    try:
        return intake.Given(**shape.model_validate(said).model_dump())
    except ValidationError as error:
        faults = [
            Fault(
                detail=one["msg"].removeprefix("Value error, "),
                pointer="#" + "".join(f"/{part}" for part in one["loc"]),
            )
            for one in error.errors(include_url=False, include_input=False, include_context=False)
        ]
        words = (f"{(one.pointer or '')[2:]}: {one.detail}".lstrip(": ") for one in faults[:5])
        raise invalid("; ".join(words), faults) from None


def _problem(error: intake.Refused, status: int, kind: str = "") -> Problem:
    faults = [
        Fault(detail=one.message, header=one.field)
        if one.field == "Idempotency-Key"
        else Fault(detail=one.message, pointer=f"#/{one.field}")
        for one in error.wrong
    ]
    return Problem(status, str(error), kind=kind, errors=faults)


def _wrong(field: str, message: str) -> Problem:
    return _problem(intake.Refused([intake.Wrong(field, message)]), 422, "invalid")


def _find(who: Caller, id: int) -> Photo:
    photo = seen_by(who.user).select_related("user").filter(pk=id).first()
    if photo is None:
        raise not_found("photo")
    return photo


def _photo(who: Caller, photo: Photo) -> PhotoOut:
    hidden: Mapping[str, Any] = {}
    if not sees_place(who.user, photo):
        hidden = {"lat": None, "lon": None, "storage_key": None, "reason": ""}
    url = f"{settings.PUBLIC_URL}/api/photos/{photo.pk}"
    shown = {
        "id": photo.pk,
        "url": url,
        "image": f"{url}/image" if photo.storage_key.startswith(shelf.OURS) else None,
        "user": photo.user.get_username() if photo.user else None,
        "gathering": photo.gathering_id,
    }
    for name in PhotoOut.model_fields.keys() - shown.keys():
        shown[name] = getattr(photo, name)
    return PhotoOut(**{**shown, **hidden})


def _gathering(found: Gathering) -> GatheringOut:
    shown = {name: getattr(found, name) for name in GatheringOut.model_fields if name != "url"}
    return GatheringOut(url=f"{settings.PUBLIC_URL}/api/gatherings/{found.pk}", **shown)


_BEGIN = datetime.fromisoformat("1970-01-01T00:00:00Z")


def _micros(at: datetime) -> int:
    return (at - _BEGIN) // timedelta(microseconds=1)


def _at(micros: int) -> datetime:
    try:
        return _BEGIN + timedelta(microseconds=micros)
    except OverflowError:
        return _BEGIN
