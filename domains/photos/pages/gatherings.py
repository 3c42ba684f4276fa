"""The pages of gatherings: all gatherings on a map and as a list, and one gathering with photos."""

from typing import Any

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.http import require_GET

from tailrace.domains.photos.models import Gathering, Photo
from tailrace.web.pages import frame
from tailrace.web.pages.frame import PersonRequest, for_person
from tailrace.web.pages.lists import list_page, live_address, live_response, render_live

MAX_ACTIVE = 200
FINALIZED_PAGE_SIZE, PHOTOS_PAGE_SIZE = 30, 60


@require_GET
@for_person
def gatherings(request: PersonRequest) -> HttpResponse:
    """Show active gatherings and a page of finalized ones, on a map and as a list."""
    return _show_with_map(request, "gatherings", {"list": _list(request)})


@require_GET
@for_person
def gatherings_list(request: PersonRequest) -> HttpResponse:
    return live_response(request, _list(request))


@require_GET
@for_person
def gathering(request: PersonRequest, id: int) -> HttpResponse:
    """Show one gathering on a map, and its photos."""
    gathering = get_object_or_404(Gathering.objects.placed(), pk=id)
    context = {"gathering": gathering, "photos": _photos(request, gathering)}
    return _show_with_map(request, "gathering", context)


@require_GET
@for_person
def gathering_photos(request: PersonRequest, id: int) -> HttpResponse:
    gathering = get_object_or_404(Gathering.objects.placed(), pk=id)
    return live_response(request, _photos(request, gathering))


def _show_with_map(request: PersonRequest, name: str, context: dict[str, Any]) -> HttpResponse:
    tiles, credit = settings.PHOTOS_TILES_URL, settings.PHOTOS_TILES_CREDIT
    template = f"tailrace/photos/{name}.html"
    return frame.show_with_map(request, template, context, tiles=tiles, credit=credit)


def _list(request: PersonRequest) -> str:
    finalized = Gathering.objects.placed().finalized()
    rows, older = list_page(request, finalized, FINALIZED_PAGE_SIZE, time_column="last_photo_at")
    context: dict[str, Any] = {"rows": rows, "older": older}
    if not request.GET.get("after"):
        active = Gathering.objects.placed().active()
        context["active"] = active.order_by("-last_photo_at")[:MAX_ACTIVE]
    address = live_address(request, reverse("photos:list"))
    return render_live(request, "tailrace/photos/gatherings_list.html", context, address)


def _photos(request: PersonRequest, gathering: Gathering) -> str:
    photos = Photo.objects.filter(gathering=gathering).select_related("user")
    rows, older = list_page(request, photos, PHOTOS_PAGE_SIZE, time_column="taken_at")
    context = {"gathering": gathering, "rows": rows, "older": older}
    address = live_address(request, reverse("photos:gathering_photos", args=[gathering.pk]))
    return render_live(request, "tailrace/photos/gathering_photos.html", context, address)
