"""A user's own photos with their states, and the pictures."""

from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.http import require_GET

from domains.photos.models import Photo
from domains.photos.pages.live_list import list_response, page_after, render_list
from domains.photos.picture_response import picture_response
from domains.photos.visibility import visible_photos
from web.pages.frame import PersonRequest, for_person, show


@require_GET
@for_person
def mine(request: PersonRequest) -> HttpResponse:
    """Show a page of the user's photos, the latest uploads first."""
    return show(request, "photos/mine.html", {"list": _list(request)})


@require_GET
@for_person
def mine_list(request: PersonRequest) -> HttpResponse:
    return list_response(request, _list(request))


@require_GET
def image(request: HttpRequest, id: int) -> HttpResponse:
    """Return the small copy of a photo that the user may see; browsers may cache it."""
    if not isinstance(request.user, User):
        return redirect_to_login(request.get_full_path())
    response = picture_response(get_object_or_404(visible_photos(request.user), pk=id))
    if response is None:
        raise Http404
    return response


def _list(request: PersonRequest) -> str:
    photos = Photo.objects.filter(user=request.user).select_related("gathering")
    context = page_after(request, photos, "uploaded_at")
    return render_list(request, "photos/mine_list.html", context, reverse("photos:mine_list"))
