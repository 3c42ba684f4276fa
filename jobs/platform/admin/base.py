"""The base class of our admin pages.

Only declared filters are accepted in a query string. Read-only fields are shown as a list of names
and values. An action on several rows first shows how many rows it changes.
"""

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any

from django.contrib.admin import FieldListFilter
from django.contrib.admin.utils import get_fields_from_path
from django.http import HttpRequest, HttpResponse
from django.utils.text import capfirst
from unfold.admin import ModelAdmin as UnfoldModelAdmin

from tailrace.jobs.platform.admin.lists.several import counted_first

DELETE = "delete_selected"
"""Django's own action, which has a confirmation page of its own."""


class ModelAdmin(UnfoldModelAdmin):
    """The base class of our admin pages.

    By default Django accepts lookups of any column in a query string, so that users can guess the
    values of columns that they may not see. This class refuses lookups that no filter declares,
    with the status 400.
    """

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest) -> bool:
        key = f"_declared_by_{id(self)}"
        if key not in request.__dict__:
            request.__dict__[key] = frozenset(self._declared(request))
        return lookup in request.__dict__[key]

    def _declared(self, request: HttpRequest) -> Iterator[str]:
        """Yield the query parameters of the declared filters, as Django's change list does."""
        model: Any = self.model
        filters: Any = self.get_list_filter(request)
        for item in filters:
            if callable(item):
                yield from item(request, {}, model, self).expected_parameters()
                continue
            path, create = item if isinstance(item, list | tuple) else (item, None)
            field = get_fields_from_path(model, path)[-1]
            make: Any = create or FieldListFilter.create
            yield from make(field, request, {}, model, self, field_path=path).expected_parameters()

    previews_all = False
    """Whether its actions have their own preview for all matching rows."""

    def get_actions(self, request: HttpRequest) -> Any:
        """Return the actions that the user may perform, each with a confirmation page."""
        actions = super().get_actions(request)
        return {
            name: action if name == DELETE else (counted_first(action[0], action[2]), *action[1:])
            for name, action in actions.items()
        }

    def to_field_allowed(self, request: HttpRequest, to_field: str) -> bool:
        """Allow only primary keys, so that no other column can be looked up."""
        return bool(to_field == self.opts.pk.name)

    change_form_template: Any = "tailrace/jobs/admin/detail.html"
    add_form_template: Any = "admin/change_form.html"

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Any = None,
    ) -> HttpResponse:
        """Show read-only fields as a list of names and values, and the other fields as a form."""
        if change:
            context["details"] = details_of(context["adminform"])
            context["adminform"] = _editable(context["adminform"])
        response: HttpResponse = super().render_change_form(
            request, context, add=add, change=change, form_url=form_url, obj=obj
        )
        return response


EMPTY = frozenset({"", "-", "–", "None"})
"""Contents of fields without a value: these fields are left out of the page."""


@dataclass(frozen=True, slots=True)
class Detail:
    """A read-only field of an object."""

    label: str
    value: str
    help: str = ""


@dataclass(frozen=True, slots=True)
class Details:
    """The read-only fields of one fieldset that have a value."""

    title: str | None
    fields: list[Detail]


def details_of(form: Any) -> list[Details]:
    """Return the read-only fields of an admin form by fieldset, without empty fields."""
    groups = (Details(fieldset.name, list(_details(fieldset))) for fieldset in form)
    return [group for group in groups if group.fields]


def _details(fieldset: Any) -> Iterator[Detail]:
    for field in (field for line in fieldset for field in line if field.is_readonly):
        value = field.contents()
        if str(value).strip() not in EMPTY:
            label = capfirst(str(field.field["label"]))
            yield Detail(label, value, field.field.get("help_text", ""))


def _editable(form: Any) -> Any:
    """Return a copy of an admin form with only its editable fields."""
    editable = copy(form)
    editable.fieldsets = []
    for name, options in form.fieldsets:
        lines = [
            [name for name in _names(line) if name not in form.readonly_fields]
            for line in options["fields"]
        ]
        if lines := [line for line in lines if line]:
            editable.fieldsets.append((name, {**options, "fields": lines}))
    return editable


def _names(line: Any) -> list[Any]:
    return list(line) if isinstance(line, list | tuple) else [line]
