"""The admin of sweep runs: what the sweeper found not to hold, and repaired."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from unfold.admin import ModelAdmin
from unfold.decorators import display

from jobs import invariants
from jobs.admin import cells, filters
from jobs.admin.paging import KeysetAdmin, ReadOnlyAdmin
from jobs.models import SweepRun
from jobs.templatetags.words import duration

InvariantFilter = filters.column_filter(
    "invariant", "invariant", lambda: [(each.name, each.name) for each in invariants.everything()]
)
OutcomeFilter = filters.column_filter(
    "outcome", "outcome", lambda: [(each.value, str(each.label)) for each in SweepRun.Outcome]
)


class FoundFilter(filters.ChoiceFilter):
    title = "found"
    parameter_name = "found"

    def choice_list(self) -> filters.Choices:
        return [("some", "something to repair")]

    def narrow(self, queryset: Any, value: str) -> Any:
        return queryset.filter(found__gt=0)


@admin.register(SweepRun)
class SweepRunAdmin(ReadOnlyAdmin, KeysetAdmin, ModelAdmin):
    list_display = ("id", "invariant", "status", "found", "repaired", "started", "took", "why")
    list_filter = (InvariantFilter, OutcomeFilter, FoundFilter)
    fields = (
        "invariant",
        "meaning",
        "status",
        ("found", "repaired"),
        "started_at",
        "took",
        "error",
    )

    started = cells.time_of("started_at")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return cells.names([(None, {"fields": self.fields})])

    def scans(self, params: dict[str, str]) -> bool:
        return bool({"outcome", "found"} & params.keys())

    @display(
        description="outcome",
        label={"checked": "success", "skipped": "default", "error": "danger"},
    )
    def status(self, run: SweepRun) -> str:
        return run.outcome

    @display(description="duration")
    def took(self, run: SweepRun) -> str:
        return duration(run.duration_ms / 1000)

    @display(description="error")
    def why(self, run: SweepRun) -> str:
        return cells.cut(run.error)

    @display(description="what should be true")
    def meaning(self, run: SweepRun) -> str:
        found = {each.name: each for each in invariants.everything()}
        return found[run.invariant].description() if run.invariant in found else "–"
