"""The pages of watched properties: add one, remove it, and see its changes."""

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.db.models import Count
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from tailrace.domains.protection.models import Borough, PropertyChange, WatchedProperty
from tailrace.domains.protection.pages.frame import show_page
from tailrace.domains.protection.services.properties import watch
from tailrace.domains.protection.services.properties.advice import advice
from tailrace.domains.protection.services.properties.places import InvalidPlace, place_of
from tailrace.domains.protection.services.properties.save import MAX_DOCUMENTS
from tailrace.web.pages.forms import PageForm, sentence
from tailrace.web.pages.frame import PersonRequest, for_person
from tailrace.web.pages.lists import list_page


class PropertyForm(PageForm, forms.Form):
    """A property by its address, or by its block and lot."""

    borough = forms.TypedChoiceField(choices=Borough.choices, coerce=int, label="Borough")
    street_number = forms.CharField(required=False, max_length=20, label="House number")
    street_name = forms.CharField(
        required=False, max_length=80, label="Street", help_text="Such as Wall Street."
    )
    unit = forms.CharField(
        required=False,
        max_length=20,
        label="Unit",
        help_text="The unit of a condominium. Without it the whole building is watched.",
    )
    block = forms.IntegerField(
        required=False,
        label="Block",
        help_text="Block and lot are on the tax bill. They are more exact than an address.",
    )
    lot = forms.IntegerField(required=False, label="Lot")


@require_http_methods(["GET", "HEAD", "POST"])
@for_person
def properties(request: PersonRequest) -> HttpResponse:
    """GET: the form and the watched properties. POST: watch another one."""
    if request.method != "POST":
        return _show(request, PropertyForm())
    form = PropertyForm(request.POST)
    if form.is_valid() and (row := _add(request.user, form)) is not None:
        messages.success(request, f"Watched: {row.title}.")
        return redirect("protection:properties")
    return _show(request, form, status=422)


@require_safe
@for_person
def one_property(request: PersonRequest, id: int) -> HttpResponse:
    """Show the changes of a property, newest first, with advice."""
    row = _find_property(request, id)
    changes, older = list_page(request, PropertyChange.objects.filter(property=row.pk))
    context = {
        "row": row,
        "snapshot": getattr(row, "snapshot", None),
        "changes": [
            {"change": change, "advice": advice(change.kind, change.severity)} for change in changes
        ],
        "older": older,
        "most_documents": MAX_DOCUMENTS,
    }
    return show_page(request, "tailrace/protection/property.html", context)


@require_POST
@for_person
def remove_property(request: PersonRequest, id: int) -> HttpResponse:
    row = _find_property(request, id)
    watch.remove(request.user.pk, row.pk)
    messages.success(request, f"No longer watched: {row.title}. Its history is deleted.")
    return redirect("protection:properties")


def _find_property(request: PersonRequest, id: int) -> WatchedProperty:
    rows = WatchedProperty.objects.filter(user=request.user).select_related("snapshot")
    return get_object_or_404(rows.defer("snapshot__documents"), pk=id)


def _add(user: User, form: PropertyForm) -> WatchedProperty | None:
    """Add and return the form's property, or add the error to the form and return None."""
    try:
        return watch.add(user.pk, place_of(**form.cleaned_data))
    except InvalidPlace as error:
        form.add_error(error.field, sentence(error))
    except watch.TooManyProperties as error:
        form.add_error(None, str(error))
    return None


def _show(request: PersonRequest, form: PropertyForm, status: int = 200) -> HttpResponse:
    rows = WatchedProperty.objects.filter(user=request.user)
    page, older = list_page(request, rows.annotate(change_count=Count("changes")))
    context: dict[str, Any] = {"form": form, "properties": page, "older": older}
    return show_page(request, "tailrace/protection/properties.html", context, status)
