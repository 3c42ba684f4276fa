"""Upload: a page on which pictures are dropped. Without scripts it is a plain form."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.csrf import csrf_exempt, csrf_protect
from django.views.decorators.http import require_http_methods

from domains.photos import intake
from domains.photos.api import FORM_BYTES
from domains.photos.upload import CAPTION_LIMIT
from subscriptions.pages.parts import Plain
from subscriptions.pages.person import PersonRequest, for_person, show_framed, zone_of


class UploadForm(Plain, forms.Form):
    """One picture, and what its EXIF may not say."""

    file = forms.FileField(
        label="Picture",
        widget=forms.FileInput({"accept": "image/jpeg,image/png,image/webp"}),
        help_text="JPEG, PNG or WebP.",
    )
    lat = forms.FloatField(label="Latitude", required=False, min_value=-90, max_value=90)
    lon = forms.FloatField(label="Longitude", required=False, min_value=-180, max_value=180)
    taken_at = forms.DateTimeField(
        label="Taken at",
        required=False,
        widget=forms.DateTimeInput({"type": "datetime-local", "step": "1"}),
    )
    caption = forms.CharField(required=False, max_length=CAPTION_LIMIT)


@csrf_exempt  # what is too long is refused before anything reads it; then the token is asked for
@require_http_methods(["GET", "HEAD", "POST"])
@for_person
def upload(request: PersonRequest) -> HttpResponse:
    """GET: the page. POST: one picture, as browsers without scripts send it."""
    if int(request.META.get("CONTENT_LENGTH") or 0) > intake.largest() + FORM_BYTES:
        return _show(request, UploadForm(), too_large=True, status=413)
    answer: HttpResponse = _upload(request)
    return answer


@csrf_protect
def _upload(request: PersonRequest) -> HttpResponse:
    if request.method != "POST":
        return _show(request, UploadForm())
    form = UploadForm(request.POST, request.FILES)
    if form.is_valid():
        said = dict(form.cleaned_data)
        file = said.pop("file")
        try:
            stored = intake.take(request.user, intake.Given(**said), file, zone_of(request.user))
        except intake.Refused as error:
            for one in error.wrong:
                form.add_error(one.field if one.field in form.fields else None, one.message)
        except intake.NotKept as error:
            form.add_error(None, f"{error}. Try again later.")
        else:
            messages.success(request, f"“{file.name[:80]}” is stored: photo {stored.photo.pk}.")
            return redirect("photos:mine")
    return _show(request, form, status=422)


def _show(
    request: PersonRequest, form: UploadForm, status: int = 200, too_large: bool = False
) -> HttpResponse:
    context: dict[str, Any] = {
        "form": form,
        "plain": form.is_bound or too_large,
        "too_large": too_large,
        "largest": intake.largest(),
        "largest_words": intake.megabytes(intake.largest()),
    }
    return show_framed(request, "photos/upload.html", context, status)
