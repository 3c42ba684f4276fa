"""The admin of sweep runs: the violations that the sweeper found and repaired."""

from typing import Any

from django.contrib import admin
from unfold.decorators import display

from tailrace.jobs.maintenance.invariant import Invariant, all_invariants
from tailrace.jobs.models import SweepRun
from tailrace.jobs.platform.admin import rendering
from tailrace.jobs.platform.admin.base import ModelAdmin
from tailrace.jobs.platform.admin.lists import filters
from tailrace.jobs.platform.admin.lists.pagination import KeysetAdmin, ReadOnlyAdmin
from tailrace.jobs.platform.inspection.display.formatting import duration

InvariantFilter = filters.column_filter(
    "invariant", lambda: [(rule.name, rule.name) for rule in all_invariants() if rule.every]
)
OutcomeFilter = filters.column_filter("outcome", lambda: SweepRun.Outcome.choices)


class FoundFilter(filters.ChoiceFilter):
    title = "found"
    parameter_name = "found"
    options = [("some", "violations")]

    def narrow(self, queryset: Any, value: str) -> Any:
        return queryset.filter(found__gt=0)


@admin.register(SweepRun)
class SweepRunAdmin(ReadOnlyAdmin, KeysetAdmin, ModelAdmin):
    list_display = (
        "id",
        "invariant",
        "status",
        "found",
        "repaired",
        "checks",
        "started",
        "took",
        "why",
    )
    list_filter = (InvariantFilter, OutcomeFilter, FoundFilter)
    fields = (
        "invariant",
        "meaning",
        "advice",
        "status",
        ("found", "repaired", "checks"),
        "started",
        "took",
        "error",
    )

    started = rendering.time_column("started_at")

    def scans(self, params: dict[str, str]) -> bool:
        return bool({"outcome", "found"} & params.keys())

    @display(
        description="outcome",
        label={"checked": "success", "skipped": "default", "error": "danger"},
    )
    def status(self, run: SweepRun) -> str:
        return run.outcome

    @display(description="took")
    def took(self, run: SweepRun) -> str:
        return duration(run.duration_ms / 1000)

    @display(description="error")
    def why(self, run: SweepRun) -> str:
        return rendering.truncated(run.error)

    @display(description="what should be true")
    def meaning(self, run: SweepRun) -> str:
        return next((rule.description() for rule in _rules(run)), "–")

    @display(description="repair, or what to do")
    def advice(self, run: SweepRun) -> str:
        return next((rule.advice for rule in _rules(run)), "") or "–"


def _rules(run: SweepRun) -> list[Invariant]:
    """Return the invariant of a run in a list, which is empty if the invariant was removed."""
    return [rule for rule in all_invariants() if rule.name == run.invariant]
