"""Gatherings: a map and a list, and each with its photos."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.http import require_GET

from domains.photos.models import Gathering, Photo
from domains.photos.pages.common import anew, live, map_context, page_along, with_tiles
from subscriptions.pages.person import PersonRequest, for_person, show_framed

ACTIVE_SHOWN = 200
FINALIZED_SHOWN = 30


@require_GET
@for_person
def gatherings(request: PersonRequest) -> HttpResponse:
    """Those that go on, and a page of those that are over, on a map and as a list."""
    context = {"list": _list(request), **map_context()}
    return with_tiles(show_framed(request, "photos/gatherings.html", context))


@require_GET
@for_person
def gatherings_list(request: PersonRequest) -> HttpResponse:
    """The list as it stands now; 204 if it is as the page has it."""
    return anew(request, _list(request))


@require_GET
@for_person
def gathering(request: PersonRequest, id: int) -> HttpResponse:
    """One gathering, where it is, and its photos."""
    found = get_object_or_404(Gathering, pk=id)
    context = {"gathering": found, "photos": _photos(request, found), **map_context()}
    return with_tiles(show_framed(request, "photos/gathering.html", context))


@require_GET
@for_person
def gathering_photos(request: PersonRequest, id: int) -> HttpResponse:
    """A gathering's facts and photos as they stand now; 204 if they are as the page has them."""
    return anew(request, _photos(request, get_object_or_404(Gathering, pk=id)))


def _list(request: PersonRequest) -> str:
    after = request.GET.get("after", "")
    over, older = page_along(
        Gathering.objects.finalized(), "last_photo_at", after, size=FINALIZED_SHOWN
    )
    active = Gathering.objects.active().order_by("-last_photo_at")[:ACTIVE_SHOWN]
    context: dict[str, Any] = {
        "active": [] if after else list(active), "over": over, "older": older, "after": after,
    }  # fmt: skip
    address = reverse("photos:list")
    return live(request, "photos/gatherings_list.html", context, _after(address, after))


def _photos(request: PersonRequest, found: Gathering) -> str:
    after = request.GET.get("after", "")
    rows = Photo.objects.filter(gathering=found).select_related("user")
    photos, older = page_along(rows, "taken_at", after)
    context = {"gathering": found, "photos": photos, "older": older, "after": after}
    address = reverse("photos:gathering_photos", args=[found.pk])
    return live(request, "photos/gathering_photos.html", context, _after(address, after))


def _after(address: str, after: str) -> str:
    return f"{address}?after={after}&" if after else f"{address}?"
