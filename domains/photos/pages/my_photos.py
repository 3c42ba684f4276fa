"""The page of a user's own photos with their states, and the pictures of photos."""

from django.conf import settings
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.http import require_GET

from tailrace.domains.photos.models import Photo
from tailrace.domains.photos.models.visibility import visible_photos
from tailrace.domains.photos.uploads.pictures.picture_response import picture_response
from tailrace.domains.photos.uploads.quotas import usage_of
from tailrace.web.pages.frame import PersonRequest, for_person, show, within_budget
from tailrace.web.pages.lists import list_page, live_address, live_response, render_live

PAGE_SIZE = 60
IMAGE_COST = 0.1
"""Requests that a picture counts as. A page shows sixty pictures."""


@require_GET
@for_person
def mine(request: PersonRequest) -> HttpResponse:
    """Show a page of the user's photos, the latest uploads first."""
    context = {
        "list": _list(request),
        "usage": usage_of(request.user),
        "max_photos": settings.PHOTOS_MAX_PER_USER,
        "max_gigabytes": settings.PHOTOS_MAX_GIGABYTES_PER_USER,
    }
    return show(request, "tailrace/photos/mine.html", context)


@require_GET
@for_person
def mine_list(request: PersonRequest) -> HttpResponse:
    return live_response(request, _list(request))


@require_GET
@within_budget(IMAGE_COST)
def image(request: PersonRequest, id: int) -> HttpResponse:
    """Return the small copy of a picture that the user may see. Browsers may cache it."""
    response = picture_response(get_object_or_404(visible_photos(request.user), pk=id))
    if response is None:
        raise Http404
    return response


def _list(request: PersonRequest) -> str:
    photos = Photo.objects.filter(user=request.user).select_related("gathering")
    rows, older = list_page(request, photos, PAGE_SIZE, time_column="uploaded_at")
    context = {"rows": rows, "older": older}
    address = live_address(request, reverse("photos:mine_list"))
    return render_live(request, "tailrace/photos/mine_list.html", context, address)
