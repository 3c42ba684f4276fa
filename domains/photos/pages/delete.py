"""The page that deletes selected or all photos, after a confirmation."""

from django.contrib import messages
from django.http import HttpResponse, HttpResponseBadRequest
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from tailrace.domains.photos.handlers.deletion import delete_all
from tailrace.domains.photos.models import Photo
from tailrace.domains.photos.uploads.deletion.delete_photos import MAX_PHOTOS, delete_photos
from tailrace.web.pages.frame import PersonRequest, for_person, show


@require_POST
@for_person
def delete(request: PersonRequest) -> HttpResponse:
    """Delete the photos with the ids in `id`, or all photos if `all` is set. Without `sure`, show a
    confirmation page."""
    everything = "all" in request.POST
    photos = Photo.objects.filter(user=request.user)
    if not everything:
        try:
            ids = [int(id) for id in request.POST.getlist("id")]
            photos = photos.filter(pk__in=ids)
            chosen = list(photos.values_list("pk", flat=True)[: MAX_PHOTOS + 1])
        except ValueError:
            return HttpResponseBadRequest("Each id must be a number.")
        if not chosen:
            messages.error(request, "Select the photos to delete.")
            return redirect("photos:mine")
        if len(chosen) > MAX_PHOTOS:
            return HttpResponseBadRequest(f"You can delete at most {MAX_PHOTOS} photos at once.")
    if "sure" not in request.POST:
        context = {"ids": [] if everything else chosen, "all": everything, "count": photos.count()}
        return show(request, "tailrace/photos/delete.html", context)
    if everything:
        delete_all(request.user)
        messages.success(request, "Your photos are being deleted.")
    else:
        count = len(delete_photos(chosen, request.user.pk))
        messages.success(request, f"{count} photo{'' if count == 1 else 's'} deleted.")
    return redirect("photos:mine")
