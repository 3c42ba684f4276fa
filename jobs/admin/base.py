"""The base class of every page of the admin: a query string answers only declared filters."""

from collections.abc import Iterator
from typing import Any

from django.contrib.admin import FieldListFilter
from django.contrib.admin.utils import get_fields_from_path
from django.http import HttpRequest
from unfold.admin import ModelAdmin as UnfoldModelAdmin


class ModelAdmin(UnfoldModelAdmin):
    """The base class of the project's own pages.

    Django answers any lookup of any column of the model, so whoever may not see a column finds out
    its values letter by letter. What no filter declares is refused here, with the status 400.
    """

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest) -> bool:
        key = f"_declared_by_{id(self)}"
        if key not in request.__dict__:
            request.__dict__[key] = frozenset(self._declared(request))
        return lookup in request.__dict__[key]

    def _declared(self, request: HttpRequest) -> Iterator[str]:
        """Yield the parameters of the filters, as Django's change list makes them."""
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

    def to_field_allowed(self, request: HttpRequest, to_field: str) -> bool:
        """Rows are named by their primary keys alone."""
        return bool(to_field == self.opts.pk.name)
