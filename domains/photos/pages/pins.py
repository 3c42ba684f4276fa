"""The pins of a user's own photos, for maps of other apps."""

from django.http import HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET

from tailrace.domains.photos.models import Photo
from tailrace.domains.photos.uploads.pictures import storage
from tailrace.web.pages.frame import PersonRequest, for_person
from tailrace.web.pages.map_layers import Pin, period_of, pins_response

MOST_READ, MOST_PINS = 20_000, 200
"""Maximum number of photos, the latest uploads first, that are searched, and of pins."""


@require_GET
@for_person
def pins(request: PersonRequest) -> HttpResponse:
    """Return the user's own photos with a location that were taken from `start` to `end`."""
    start, end = period_of(request)
    latest = Photo.objects.filter(user=request.user).order_by("-uploaded_at").values("pk")
    photos = Photo.objects.filter(
        pk__in=latest[:MOST_READ], taken_at__gte=start, taken_at__lt=end, lat__isnull=False
    )
    return pins_response([_pin(photo) for photo in photos.order_by("taken_at", "pk")[:MOST_PINS]])


def _pin(photo: Photo) -> Pin:
    is_here = storage.is_stored_here(photo.storage_key)
    return Pin(
        lat=photo.lat or 0.0,
        lon=photo.lon or 0.0,
        title=photo.caption[:200] or f"Photo {photo.pk}",
        text=f"{timezone.localtime(photo.taken_at):%Y-%m-%d %H:%M:%S %Z}",
        href=_page_of(photo),
        picture=reverse("photos:image", args=[photo.pk]) if is_here else "",
    )


def _page_of(photo: Photo) -> str:
    if photo.gathering_id:
        return reverse("photos:gathering", args=[photo.gathering_id])
    return reverse("photos:mine")
