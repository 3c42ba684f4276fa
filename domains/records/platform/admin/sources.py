"""The admin pages of sources: their settings, progress and errors."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.decorators import action, display
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from tailrace.domains.records.models import Source
from tailrace.domains.records.sources.formats import formats
from tailrace.domains.records.sources.requests import (
    NotActive,
    request_pull,
    schedule_name,
    sync_schedules,
)
from tailrace.domains.records.sources.upkeep.changes import (
    EDITABLE,
    FROM_THE_BEGINNING,
    TooManySources,
    check_number,
    save_changes,
)
from tailrace.domains.records.sources.upkeep.checks import problems
from tailrace.jobs.operations.schedules import remove_schedules
from tailrace.jobs.platform.admin import rendering
from tailrace.jobs.platform.admin.base import ModelAdmin
from tailrace.jobs.platform.admin.lists.several import filter_in_words
from tailrace.jobs.runtime import audit

STATE_COLOURS = {"up to date": "success", "reading": "info", "new": "default", "error": "danger"}


class SourceForm(forms.ModelForm):
    """The form of a source. `problems` checks its settings, address and cron expression."""

    class Meta:
        model = Source
        fields = ("name", "kind", "url", "settings", "cron", "is_active")
        widgets = {
            "name": UnfoldAdminTextInputWidget(),
            "url": UnfoldAdminTextInputWidget(),
            "cron": UnfoldAdminTextInputWidget(),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "kind" in self.fields:
            choices = [(name, form.label) for name, form in formats().items()]
            self.fields["kind"] = forms.ChoiceField(
                choices=choices, widget=UnfoldAdminSelectWidget(choices=choices)
            )

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        cleaned["settings"] = cleaned.get("settings") or {}
        kind, url, cron = (cleaned.get(name) or "" for name in ("kind", "url", "cron"))
        for field, problem in problems(kind, url, cleaned["settings"], cron).items():
            if field in self.fields and field not in self.errors:
                self.add_error(field, problem)
        if self.instance.pk is None:
            try:
                check_number()
            except TooManySources as error:
                self.add_error(None, str(error))
        return cleaned


@admin.register(Source)
class SourceAdmin(ModelAdmin):
    """Sources. If the format, address or settings of a source change, it is read from the
    beginning. Unchanged records get no new version."""

    form = SourceForm
    list_display = ("name", "kind", "is_active", "state", "progress", "last_read", "completed")
    actions = ("pull_now", "start_over")
    last_read = rendering.time_column("last_read_at")
    completed = rendering.time_column("completed_at")
    readonly_fields = ("state", "progress", "last_read", "completed", "problem")
    fieldsets = (
        (None, {"fields": ("name", ("kind", "url"), "settings", ("cron", "is_active"))}),
        ("Harvest", {"fields": (("state", "progress"), ("last_read", "completed"), "problem")}),
    )

    def get_readonly_fields(self, request: HttpRequest, obj: Source | None = None) -> Any:
        """The name of an existing source is read-only: identifiers of its records begin with it."""
        return (*(("name",) if obj else ()), *self.readonly_fields)

    def get_actions(self, request: HttpRequest) -> Any:
        return {k: v for k, v in super().get_actions(request).items() if k != "delete_selected"}

    def save_model(self, request: HttpRequest, obj: Source, form: Any, change: bool) -> None:
        if change:
            stored = Source.objects.get(pk=obj.pk)
            save_changes(
                obj, [name for name in EDITABLE if getattr(stored, name) != getattr(obj, name)]
            )
        else:
            super().save_model(request, obj, form, change)
            sync_schedules([obj])

    def delete_model(self, request: HttpRequest, obj: Source) -> None:
        remove_schedules([schedule_name(obj.pk)], reason="the source was deleted")
        super().delete_model(request, obj)

    @action(description="Pull now", permissions=["change"])
    def pull_now(self, request: HttpRequest, queryset: QuerySet[Source]) -> None:
        audit.record(
            request.user, Source, "pulled", self._pull(request, queryset), filter_in_words(request)
        )

    @action(description="Start over: read everything again", permissions=["change"])
    def start_over(self, request: HttpRequest, queryset: QuerySet[Source]) -> None:
        names = list(queryset.order_by("pk").values_list("pk", "name"))
        queryset.update(**FROM_THE_BEGINNING)
        audit.record(request.user, Source, "started over", names, filter_in_words(request))
        self._pull(request, queryset)

    def _pull(self, request: HttpRequest, sources: QuerySet[Source]) -> list[tuple[int, str]]:
        """Request a pull of each active source; return the ids and names of these sources."""
        pulled = []
        for source in sources.order_by("pk"):
            try:
                request_pull(source.pk, request.user.get_username())
                messages.success(request, f"{source} will be read.")
                pulled.append((source.pk, source.name))
            except NotActive as error:
                messages.warning(request, str(error))
        return pulled

    state = rendering.column("state", lambda source: source.state, label=STATE_COLOURS)

    @display(description="read")
    def progress(self, source: Source) -> str:
        total = source.records_total
        return f"{source.records_read:,}" + (f" of {total:,}" if total is not None else "")

    problem = rendering.column("last error", lambda source: source.last_error or "–")
