"""My photos: what became of each; and the pictures themselves."""

from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.http import require_GET

from domains.photos.api import image_of
from domains.photos.models import Photo
from domains.photos.pages.common import anew, live, page_along
from domains.photos.sight import seen_by
from subscriptions.pages.person import PersonRequest, for_person, show_framed


@require_GET
@for_person
def mine(request: PersonRequest) -> HttpResponse:
    """A page of one's photos, the latest uploads first."""
    return show_framed(request, "photos/mine.html", {"list": _list(request)})


@require_GET
@for_person
def mine_list(request: PersonRequest) -> HttpResponse:
    """The same as it stands now; 204 if it is as the page has it."""
    return anew(request, _list(request))


@require_GET
def image(request: HttpRequest, id: int) -> HttpResponse:
    """The small copy of a photo that one may see, which a browser may keep for a while."""
    if not isinstance(request.user, User):
        return redirect_to_login(request.get_full_path())
    answer = image_of(get_object_or_404(seen_by(request.user), pk=id))
    if answer is None:
        raise Http404
    return answer


def _list(request: PersonRequest) -> str:
    after = request.GET.get("after", "")
    rows = Photo.objects.filter(user=request.user).select_related("gathering")
    photos, older = page_along(rows, "uploaded_at", after)
    address = reverse("photos:mine_list") + (f"?after={after}&" if after else "?")
    context = {"photos": photos, "older": older, "after": after}
    return live(request, "photos/mine_list.html", context, address)
