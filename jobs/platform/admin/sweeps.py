"""The admin of sweep runs: the violations that the sweeper found and repaired."""

from typing import Any

from django.contrib import admin

from tailrace.jobs.models import SweepRun
from tailrace.jobs.platform.admin import rendering
from tailrace.jobs.platform.admin.base import ModelAdmin
from tailrace.jobs.platform.admin.lists import filters
from tailrace.jobs.platform.admin.lists.pagination import KeysetAdmin, ReadOnlyAdmin
from tailrace.jobs.platform.admin.theme import display
from tailrace.jobs.platform.inspection.display.formatting import duration
from tailrace.jobs.runtime.invariant import Invariant, all_invariants

InvariantFilter = filters.column_filter(
    "invariant", lambda: [(rule.name, rule.name) for rule in all_invariants() if rule.every]
)
OutcomeFilter = filters.column_filter("outcome", lambda: SweepRun.Outcome.choices)


class FoundFilter(filters.ChoiceFilter):
    title = parameter_name = "found"
    options = [("some", "violations")]

    def narrow(self, queryset: Any, value: str) -> Any:
        return queryset.filter(found__gt=0)


def _rule(run: SweepRun) -> Invariant | None:
    """Return the invariant of a run; None if it was removed."""
    return next((rule for rule in all_invariants() if rule.name == run.invariant), None)


@admin.register(SweepRun)
class SweepRunAdmin(ReadOnlyAdmin, KeysetAdmin, ModelAdmin):
    list_display = (
        "id", "invariant", "status", "found", "repaired", "checks", "started", "took", "why",
    )  # fmt: skip
    list_filter = (InvariantFilter, OutcomeFilter, FoundFilter)
    fields = (
        "invariant", "meaning", "advice", "status", ("found", "repaired", "checks"), "started",
        "took", "error",
    )  # fmt: skip
    started = rendering.time_column("started_at")
    took = rendering.column("took", lambda run: duration(run.duration_ms / 1000))
    why = rendering.column("error", lambda run: rendering.truncated(run.error))
    status = rendering.column(
        "outcome",
        lambda run: run.outcome,
        label={"checked": "success", "skipped": "default", "error": "danger"},
    )

    def scans(self, params: dict[str, str]) -> bool:
        return bool({"outcome", "found"} & params.keys())

    @display(description="what should be true")
    def meaning(self, run: SweepRun) -> str:
        return rule.description() if (rule := _rule(run)) else "–"

    @display(description="repair, or what to do")
    def advice(self, run: SweepRun) -> str:
        return ((rule := _rule(run)) and rule.advice) or "–"
