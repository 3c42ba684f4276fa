"""The page of watched values: add, remove, pause and resume a value."""

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.db.models import Max
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_http_methods, require_POST

from tailrace.domains.protection.models import Kind, WatchlistItem
from tailrace.domains.protection.pages.frame import show_page
from tailrace.domains.protection.services.watchlist import items
from tailrace.domains.protection.services.watchlist.values import MAX_LENGTH, InvalidValue
from tailrace.web.pages.forms import PageForm
from tailrace.web.pages.frame import PersonRequest, for_person
from tailrace.web.pages.lists import list_page

ACTIONS = {
    "remove": "The value is no longer watched, and its stored data is deleted.",
    "pause": "Scans skip the value until you resume it.",
    "resume": "Scans look the value up again.",
}


class ItemForm(PageForm, forms.Form):
    kind = forms.ChoiceField(choices=Kind.choices, label="Kind of value")
    value = forms.CharField(
        max_length=MAX_LENGTH,
        label="Value",
        help_text="The value is stored encrypted, and shown only in part.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )


@sensitive_post_parameters("value")
@require_http_methods(["GET", "HEAD", "POST"])
@for_person
def watchlist(request: PersonRequest) -> HttpResponse:
    """GET: the form and the watched values. POST: watch another value."""
    if request.method != "POST":
        return _show(request, ItemForm())
    form = ItemForm(request.POST)
    if form.is_valid() and _add(request.user, form):
        messages.success(request, "The value is watched.")
        return redirect("protection:watchlist")
    form.data = {"kind": request.POST.get("kind", "")}  # the value is not sent back
    return _show(request, form, status=422)


@require_POST
@for_person
def change_item(request: PersonRequest, id: int, action: str) -> HttpResponse:
    if action not in ACTIONS:
        raise Http404
    item = get_object_or_404(WatchlistItem, user=request.user, pk=id)
    if action == "remove":
        items.remove(request.user.pk, item.pk)
    else:
        items.set_active(request.user.pk, item.pk, action == "resume")
    messages.success(request, ACTIONS[action])
    return redirect("protection:watchlist")


@sensitive_variables()
def _add(user: User, form: ItemForm) -> bool:
    """Add the form's value and return True, or add the error to the form and return False."""
    try:
        items.add(user.pk, form.cleaned_data["kind"], form.cleaned_data["value"])
    except InvalidValue as error:
        form.add_error("value", str(error))
    except items.TooManyItems as error:
        form.add_error(None, str(error))
    return form.is_valid()


def _show(request: PersonRequest, form: ItemForm, status: int = 200) -> HttpResponse:
    rows = WatchlistItem.objects.filter(user=request.user)
    page, older = list_page(request, rows.annotate(scanned_at=Max("scans__scanned_at")))
    context = {"form": form, "items": page, "older": older}
    return show_page(request, "tailrace/protection/watchlist.html", context, status)
