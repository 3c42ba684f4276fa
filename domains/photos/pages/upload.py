"""The upload page. Users drop pictures on it; without JavaScript it is a form for one picture."""

from datetime import datetime
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect

from tailrace.db.times import in_utc
from tailrace.domains.photos.upload_paths import PICTURES
from tailrace.domains.photos.uploads.ingest import PhotoFields, ingest
from tailrace.domains.photos.uploads.pictures.picture import DecoderBusy
from tailrace.domains.photos.uploads.validation import MAX_CAPTION_LENGTH
from tailrace.web.accounts import budget
from tailrace.web.accounts.time_zones import zone_of
from tailrace.web.pages.forms import PageForm, sentence
from tailrace.web.pages.frame import PersonRequest, show
from tailrace.web.uploads.limits import UPLOAD_COST, megabytes
from tailrace.web.uploads.page import errors_in, upload_page


class UploadForm(PageForm, forms.Form):
    """One picture, and the fields that its EXIF may lack."""

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
    place_from_timeline = forms.BooleanField(
        label="Take the location from my timeline if the picture has none",
        required=False,
        help_text="The photo gets its location as soon as your timeline has points of that time."
        " Other users can see it once it is in a gathering, like any other photo.",
    )
    caption = forms.CharField(required=False, max_length=MAX_CAPTION_LENGTH)

    def clean_taken_at(self) -> datetime | None:
        at: datetime | None = self.cleaned_data["taken_at"]
        try:
            return at and in_utc(at)
        except ValueError as error:
            raise forms.ValidationError(sentence(error)) from None


def _too_large(request: PersonRequest) -> HttpResponse:
    return _show(request, UploadForm(), too_large=True, status=413)


@upload_page(PICTURES, _too_large)
def upload(request: PersonRequest) -> HttpResponse:
    """GET: show the page. POST: store one picture that a browser without JavaScript sends."""
    if request.method != "POST":
        return _show(request, UploadForm())
    budget.spend(request.user.pk, cost=UPLOAD_COST)
    form = UploadForm(request.POST, request.FILES)
    if form.is_valid():
        fields = dict(form.cleaned_data)
        file = fields.pop("file")
        try:
            with errors_in(form):
                zone = zone_of(request.user)
                photo = ingest(request.user, PhotoFields(**fields), file, zone).photo
                messages.success(request, f"“{file.name[:80]}” was stored as photo {photo.pk}.")
                return redirect("photos:mine")
        except DecoderBusy as error:
            form.add_error(None, "Too many pictures are being processed. Try again in a moment.")
            response = _show(request, form, status=503)
            response["Retry-After"] = str(error.retry_seconds)
            return response
    return _show(request, form, status=422)


def _show(
    request: PersonRequest, form: UploadForm, status: int = 200, too_large: bool = False
) -> HttpResponse:
    most = PICTURES.files_bytes
    context: dict[str, Any] = {
        "form": form,
        "plain": form.is_bound or too_large,
        "too_large": too_large,
        "max_bytes": most,
        "max_size": megabytes(most),
    }
    return show(request, "tailrace/photos/upload.html", context, status)
