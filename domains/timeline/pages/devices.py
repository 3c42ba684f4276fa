"""The pages of devices: their list, and a page on which to rename, merge or delete one."""

from collections.abc import Callable

from django import forms
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from tailrace.domains.timeline.devices import decisions
from tailrace.domains.timeline.models import Device
from tailrace.domains.timeline.models.device import MAX_NAME
from tailrace.web.pages.forms import PageForm, sentence
from tailrace.web.pages.frame import PersonRequest, for_person, show
from tailrace.web.uploads.page import errors_in


class NameForm(PageForm, forms.Form):
    name = forms.CharField(max_length=MAX_NAME)


class MergeForm(PageForm, forms.Form):
    """The device that takes the points."""

    def __init__(self, others: list[Device], data: object = None) -> None:
        super().__init__(data)
        choices = [("", "Choose a device"), *((other.pk, other.name) for other in others)]
        self.fields["into"] = forms.TypedChoiceField(
            label="Merge into", coerce=int, choices=choices
        )


@require_GET
@for_person
def devices(request: PersonRequest) -> HttpResponse:
    rows = Device.objects.with_counts().filter(user=request.user).select_related("into")
    return show(request, "tailrace/timeline/devices.html", {"rows": rows.removed_last()})


@require_http_methods(["GET", "HEAD", "POST"])
@for_person
def device(request: PersonRequest, id: int) -> HttpResponse:
    """GET: show the forms. POST: rename the device."""
    row = _own_device(request, id)
    form = NameForm(request.POST if request.method == "POST" else None, initial={"name": row.name})
    if form.is_valid():
        try:
            with errors_in(form, device="name"):
                decisions.rename(request.user, id, form.cleaned_data["name"])
        except (decisions.NotNow, decisions.DeviceNotFound) as error:
            form.add_error("name", sentence(error))
        if not form.errors:
            messages.success(request, "The device was renamed.")
            return redirect("timeline:device", id)
    others = _others(request, id)
    context = {"row": row, "form": form, "merge": MergeForm(others) if others else None}
    return show(request, "tailrace/timeline/device.html", context, 422 if form.errors else 200)


@require_POST
@for_person
def merge(request: PersonRequest, id: int) -> HttpResponse:
    row = _own_device(request, id)
    if not request.POST.get("into"):
        messages.error(request, f"Choose the device into which {row.name} is merged.")
        return redirect("timeline:device", id)
    form = MergeForm(_others(request, id), request.POST)
    if not form.is_valid():
        raise Http404
    into = form.cleaned_data["into"]
    return _decide(
        request, id, "The device is being merged.",
        lambda: decisions.merge(request.user, id, into),
    )  # fmt: skip


@require_http_methods(["GET", "HEAD", "POST"])
@for_person
def delete(request: PersonRequest, id: int) -> HttpResponse:
    """GET: show what would be deleted. POST: delete the device."""
    row = _own_device(request, id)
    if request.method != "POST":
        return show(request, "tailrace/timeline/delete_device.html", {"row": row})
    return _decide(
        request, id, "The device is being deleted. Its points are already hidden.",
        lambda: decisions.delete(request.user, id, with_points=True),
    )  # fmt: skip


def _decide(
    request: PersonRequest, id: int, done: str, decide: Callable[[], Device]
) -> HttpResponse:
    try:
        decide()
    except decisions.DeviceNotFound:
        raise Http404 from None
    except decisions.NotNow as error:
        messages.error(request, sentence(error))
        return redirect("timeline:device", id)
    messages.success(request, done)
    return redirect("timeline:devices")


def _own_device(request: PersonRequest, id: int) -> Device:
    devices = Device.objects.present().with_counts().filter(user=request.user)
    return get_object_or_404(devices, pk=id)


def _others(request: PersonRequest, id: int) -> list[Device]:
    others = Device.objects.present().filter(user=request.user).exclude(pk=id)
    return list(others.order_by("name"))
