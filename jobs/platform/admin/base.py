"""The base class of our admin pages."""

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Any, NamedTuple

from django.contrib import messages
from django.contrib.admin import FieldListFilter
from django.contrib.admin.utils import get_fields_from_path, unquote
from django.db.models import Model, QuerySet
from django.forms import Media
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path, reverse
from django.utils.text import capfirst

from tailrace.db import row_wait
from tailrace.db.locks import Blocked
from tailrace.jobs.platform.admin import theme
from tailrace.jobs.platform.admin.lists.several import counted_first
from tailrace.net.url_secrets import json_without_url_secrets

DELETE = "delete_selected"
"""Django's own action, which has a confirmation page of its own."""


class ModelAdmin(theme.ModelAdmin):
    """Read-only fields are shown as a list; an action on several rows is confirmed first.

    By default Django accepts lookups of any column in a query string, so that users can guess the
    values of columns that they may not see. This class refuses lookups that no filter declares,
    with the status 400. Only users who may change a row see the secrets in its URLs.
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
            name, create = item if isinstance(item, list | tuple) else (item, None)
            field = get_fields_from_path(model, name)[-1]
            make: Any = create or FieldListFilter.create
            yield from make(field, request, {}, model, self, field_path=name).expected_parameters()

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

    find: Any = None
    """Set by subclasses: a method that takes request, rows and term, and returns the rows of a
    search, instead of Django's search."""

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        if self.find is None:
            return super().get_search_results(request, queryset, search_term)
        term = search_term.strip()
        return self.find(request, queryset, term) if term else queryset, False

    def route(self, address: str, view: Callable[..., Any], name: str, /, **kwargs: Any) -> Any:
        """Return the URL pattern `APP_MODEL_name` of a view of the admin, for `get_urls`."""
        return path(address, self.admin_site.admin_view(view), kwargs, self._url_name(name))

    def address(self, name: str, *args: str | int) -> str:
        """Return the address of the view with the URL pattern `APP_MODEL_name`."""
        return reverse(f"{self.admin_site.name}:{self._url_name(name)}", args=args)

    def _url_name(self, name: str) -> str:
        return f"{self.opts.app_label}_{self.opts.model_name}_{name}"

    def get_object(self, request: HttpRequest, object_id: str, from_field: Any = None) -> Any:
        row = super().get_object(request, object_id, from_field)
        if row is not None:
            self.complete_page(request, row)
            if not self.has_change_permission(request, row):
                hide_url_secrets(row)
        return row

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        changelist = super().get_changelist_instance(request)
        for row in changelist.result_list:
            hide_url_secrets(row)
            row.is_listed = True
        changelist.quick_filters = [
            {"title": spec.title, "choices": list(spec.choices(changelist))}
            for spec in changelist.filter_specs
            if getattr(spec, "parameter_name", "") in self.quick_filters
        ]
        return changelist

    def complete_page(self, request: HttpRequest, row: Any) -> None:
        """Add data that the fields need to the row of a page."""

    def page_context(self, request: HttpRequest, object_id: str) -> dict[str, Any]:
        """Return what the templates of a row's page need in addition to Django's context."""
        return {}

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Show the row. A change of the row waits for a bounded time if another transaction holds
        it; then the page names the session that does."""
        context = self.page_context(request, object_id) | (extra_context or {})
        if request.method != "POST":
            return super().change_view(request, object_id, form_url, context)
        try:
            with row_wait.bounded(self.model, **{self.opts.pk.name: unquote(object_id)}):
                return super().change_view(request, object_id, form_url, context)
        except Blocked as error:
            messages.error(request, f"Nothing was changed: {error}.")
            return redirect(request.path)

    change_form_template: Any = theme.template("detail")
    add_form_template: Any = "admin/change_form.html"
    change_list_template: Any = None if theme.HAS_UNFOLD else theme.template("list")
    list_before_template: Any = "tailrace/jobs/admin/lists/before.html"
    search_terms: Sequence[str] = ()
    """What a search may contain, as shown above the list."""
    quick_filters: Sequence[str] = ()
    """The parameters of the filters whose choices are links above the list."""

    @property
    def media(self) -> Media:
        media: Media = super().media + theme.media
        return media

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
            groups = [Details(each.name, _details(each)) for each in context["adminform"]]
            context["details"] = [group for group in groups if group.fields]
            context["adminform"] = _editable(context["adminform"])
        response: HttpResponse = super().render_change_form(
            request, context, add=add, change=change, form_url=form_url, obj=obj
        )
        return response


def hide_url_secrets(row: Model) -> None:
    """Replace the secrets in the URLs of the row's columns with ***, without saving it. Columns
    that are not loaded are left out: pages show payloads only with a permission."""
    loaded = {field.attname for field in row._meta.concrete_fields if not field.primary_key}
    for name in loaded & row.__dict__.keys():
        row.__dict__[name] = json_without_url_secrets(row.__dict__[name])


EMPTY = frozenset({"", "-", "–", "None"})
"""Contents of fields without a value: these fields are left out of the page."""


class Detail(NamedTuple):
    label: str
    value: str
    help: str


class Details(NamedTuple):
    """The read-only fields of one fieldset that have a value."""

    title: str | None
    fields: list[Detail]


def _details(fieldset: Any) -> list[Detail]:
    fields = ((field, field.contents()) for line in fieldset for field in line if field.is_readonly)
    return [
        Detail(capfirst(str(field.field["label"])), value, field.field.get("help_text", ""))
        for field, value in fields
        if str(value).strip() not in EMPTY
    ]


def _editable(form: Any) -> Any:
    """Return a copy of an admin form with only its editable fields."""
    editable = copy(form)
    editable.fieldsets = []
    for name, options in form.fieldsets:
        lines = (line if isinstance(line, list | tuple) else [line] for line in options["fields"])
        kept = ([name for name in line if name not in form.readonly_fields] for line in lines)
        if fields := [line for line in kept if line]:
            editable.fieldsets.append((name, {**options, "fields": fields}))
    return editable
