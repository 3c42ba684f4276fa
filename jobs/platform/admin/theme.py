"""The looks of our admin pages: django-unfold's if it is installed, otherwise those of Django."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from django import forms
from django.apps import apps
from django.contrib import admin
from django.contrib.admin import widgets as django_widgets
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.html import format_html

from tailrace.environment.conf import on_platform

HAS_UNFOLD = apps.is_installed("unfold")
BADGES = {
    "success": "tr-completed",
    "info": "tr-pending",
    "primary": "tr-running",
    "warning": "tr-paused",
    "danger": "tr-failed",
}
"""The classes in `state_badges.css`, by unfold's names of colours."""


def _display(*, label: Mapping[str, str] | None = None, **options: Any) -> Any:
    """Return Django's decorator `display`. `label` is unfold's: the colours of values, which are
    shown as badges."""

    def decorate(function: Callable[[Any, Any], Any]) -> Any:
        @wraps(function)
        def show(model_admin: Any, row: Any) -> Any:
            value = function(model_admin, row)
            if not label or not value:
                return value
            colour = BADGES.get(label.get(value, ""), "")
            return format_html('<span class="tr-state {}">{}</span>', colour, value)

        return admin.display(**options)(show)

    return decorate


ModelAdmin: Any = admin.ModelAdmin
display: Any = _display
TextInput: Any = django_widgets.AdminTextInputWidget
Textarea: Any = django_widgets.AdminTextareaWidget
Select: Any = forms.Select
Checkbox: Any = forms.CheckboxInput
_css = [] if on_platform() else ["tailrace/jobs/tailrace.css", "tailrace/jobs/state_badges.css"]
_js = []
if HAS_UNFOLD:
    from unfold import admin as unfold_admin
    from unfold import decorators
    from unfold import widgets as unfold_widgets

    ModelAdmin, display = unfold_admin.ModelAdmin, decorators.display
    TextInput = unfold_widgets.UnfoldAdminTextInputWidget
    Textarea = unfold_widgets.UnfoldAdminTextareaWidget
    Select = unfold_widgets.UnfoldAdminSelectWidget
    Checkbox = unfold_widgets.UnfoldBooleanWidget
else:
    _css += ["tailrace/jobs/stock_admin.css"]
    _js += ["tailrace/jobs/htmx.min.js", "tailrace/jobs/admin.js"]
FIELD = "unfold/helpers/field.html" if HAS_UNFOLD else "tailrace/jobs/admin/stock/field.html"
"""The template of a form field."""
media = forms.Media(css={"all": _css}, js=_js)
"""What our pages load. On the platform, all pages of the admin load it by unfold's settings."""


def template(name: str) -> str:
    """Return the template `name` of the admin in the variant for the theme."""
    return f"tailrace/jobs/admin/{'' if HAS_UNFOLD else 'stock/'}{name}.html"


def page(
    site: admin.AdminSite,
    request: HttpRequest,
    template: str,
    context: Mapping[str, Any],
    status: int = 200,
) -> HttpResponse:
    """Return a page of `site` that is neither a list nor the page of a row."""
    context = {**site.each_context(request), "media": media, **context}
    return render(request, template, context, status=status)
