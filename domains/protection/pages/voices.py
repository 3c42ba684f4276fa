"""The voices of a customer: enrol a voice, upload recordings, see the results, delete both."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import FileResponse, Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST, require_safe

from tailrace.domains.protection.files import storage
from tailrace.domains.protection.models import Recording, VoiceEnrolment
from tailrace.domains.protection.pages.frame import live_part, show_page
from tailrace.domains.protection.services.voices import uploads
from tailrace.domains.protection.services.voices.uploads import MOST_VOICES
from tailrace.domains.protection.services.voices.wav import MOST_SECONDS
from tailrace.domains.protection.upload_paths import VOICES
from tailrace.web.accounts import budget
from tailrace.web.pages.forms import PageForm
from tailrace.web.pages.frame import PersonRequest, for_person, within_budget
from tailrace.web.pages.lists import list_page, live_response
from tailrace.web.uploads.limits import UPLOAD_COST
from tailrace.web.uploads.page import errors_in, upload_page

TOO_LARGE = f"The file is too large: {MOST_SECONDS} s of 16 kHz mono PCM are less than 1 MB."
KINDS: dict[str, Any] = {"voices": VoiceEnrolment, "recordings": Recording}


class VoiceForm(PageForm, forms.Form):
    """A WAV file, and whether it is a recording or the user's own voice."""

    file = forms.FileField(
        label="WAV file",
        widget=forms.FileInput({"accept": "audio/wav,.wav"}),
        allow_empty_file=True,
        help_text=f"16 kHz, mono, 16-bit PCM, at most {MOST_SECONDS} seconds.",
    )
    purpose = forms.ChoiceField(
        label="Kind of recording",
        choices=[("recording", "A recording to compare"), ("voice", "My own voice")],
    )


def _too_large(request: PersonRequest) -> HttpResponse:
    return _show(request, VoiceForm(), status=413, too_large=TOO_LARGE)


@upload_page(VOICES, _too_large)
def voices(request: PersonRequest) -> HttpResponse:
    """GET: the form and the lists. POST: a file."""
    if request.method != "POST":
        return _show(request, VoiceForm())
    budget.spend(request.user.pk, cost=UPLOAD_COST)
    form = VoiceForm(request.POST, request.FILES)
    if form.is_valid():
        file = form.cleaned_data["file"]
        with errors_in(form):
            if form.cleaned_data["purpose"] == "voice":
                uploads.enrol(request.user, file.read())
                message = "Your voice is enrolled."
            else:
                uploads.record(request.user, file.read(), file.name)
                message = "The recording is being compared."
            messages.success(request, message)
            return redirect("protection:voices")
    return _show(request, form, status=422)


@require_safe
@for_person
def recordings_list(request: PersonRequest) -> HttpResponse:
    return live_response(request, _recordings(request))


@require_safe
@within_budget(uploads.DOWNLOAD_COST)
def download(request: PersonRequest, kind: str, id: int) -> FileResponse:
    """Return the file of one of the user's own voices or recordings, as it was sent."""
    if kind not in KINDS:
        raise Http404
    row = get_object_or_404(KINDS[kind].objects.select_related("file"), pk=id, user=request.user)
    return storage.download(row, Http404())


@require_POST
@for_person
def delete(request: PersonRequest, kind: str, id: int) -> HttpResponse:
    if kind not in KINDS or not storage.delete_owners(
        KINDS[kind].objects.filter(user=request.user, pk=id)
    ):
        raise Http404
    messages.success(request, "The file is deleted.")
    return redirect("protection:voices")


def _recordings(request: PersonRequest) -> str:
    user_recordings = Recording.objects.filter(user=request.user)
    rows, older = list_page(request, user_recordings)
    under_way = user_recordings.filter(state=Recording.State.PENDING).exists()
    context = {"recordings": rows, "older": older}
    template = "tailrace/protection/recordings_list.html"
    return live_part(request, template, context, "recordings_list", under_way=under_way)


def _show(
    request: PersonRequest, form: VoiceForm, status: int = 200, too_large: str = ""
) -> HttpResponse:
    context = {
        "form": form,
        "too_large": too_large,
        "voices": VoiceEnrolment.objects.filter(user=request.user).order_by("pk"),
        "most_voices": MOST_VOICES,
        "recordings": _recordings(request),
    }
    return show_page(request, "tailrace/protection/voices.html", context, status)
