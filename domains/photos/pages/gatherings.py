"""The pages of gatherings: all gatherings on a map and as a list, and one gathering with photos."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.http import require_GET

from tailrace.domains.photos.models import Gathering, Photo
from tailrace.domains.photos.pages.live_list import page_after, render_list
from tailrace.domains.photos.pages.map import show_with_map
from tailrace.web.pages.frame import PersonRequest, for_person
from tailrace.web.pages.live import live_response

MAX_ACTIVE = 200
FINALIZED_PAGE_SIZE = 30


@require_GET
@for_person
def gatherings(request: PersonRequest) -> HttpResponse:
    """Show active gatherings and a page of finalized ones, on a map and as a list."""
    return show_with_map(request, "tailrace/photos/gatherings.html", {"list": _list(request)})


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
    return show_with_map(request, "tailrace/photos/gathering.html", context)


@require_GET
@for_person
def gathering_photos(request: PersonRequest, id: int) -> HttpResponse:
    return live_response(
        request, _photos(request, get_object_or_404(Gathering.objects.placed(), pk=id))
    )


def _list(request: PersonRequest) -> str:
    context: dict[str, Any] = page_after(
        request, Gathering.objects.placed().finalized(), "last_photo_at", FINALIZED_PAGE_SIZE
    )
    if not request.GET.get("after"):
        active = Gathering.objects.placed().active()
        context["active"] = active.order_by("-last_photo_at")[:MAX_ACTIVE]
    return render_list(
        request, "tailrace/photos/gatherings_list.html", context, reverse("photos:list")
    )


def _photos(request: PersonRequest, gathering: Gathering) -> str:
    photos = Photo.objects.filter(gathering=gathering).select_related("user")
    context = {"gathering": gathering, **page_after(request, photos, "taken_at")}
    address = reverse("photos:gathering_photos", args=[gathering.pk])
    return render_list(request, "tailrace/photos/gathering_photos.html", context, address)
