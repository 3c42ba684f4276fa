"""The admin of flows: a list with their states, and a page with the graph and the actions."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST, require_safe

from tailrace.db import clock
from tailrace.db.locks import Blocked
from tailrace.db.row_ids import row_id
from tailrace.jobs.flows import actions
from tailrace.jobs.flows.operations import RefusedForFlow
from tailrace.jobs.flows.state import FlowState, statuses
from tailrace.jobs.models import Flow
from tailrace.jobs.platform.admin import rendering
from tailrace.jobs.platform.admin.base import ModelAdmin
from tailrace.jobs.platform.admin.lists import filters
from tailrace.jobs.platform.admin.lists.pagination import KeysetAdmin, ReadOnlyAdmin
from tailrace.jobs.platform.admin.pages.flow import live_view, outcome_text, page_of
from tailrace.jobs.platform.admin.pages.replay_flow import replay_view
from tailrace.jobs.platform.inspection.display.formatting import duration, timestamp
from tailrace.jobs.platform.inspection.flows.listing import in_state
from tailrace.jobs.platform.inspection.visibility import (
    VIEW_FLOW,
    VIEW_JOB,
    require,
    user_of,
)

COLOURS = {
    FlowState.RUNNING: "primary",
    FlowState.PAUSED: "warning",
    FlowState.COMPLETED: "success",
    FlowState.WITH_FAILURES: "danger",
    FlowState.CANCELLED: "warning",
    FlowState.OVERDUE: "danger",
}


class FlowStateFilter(filters.ChoiceFilter):
    """Filter flows by the states of their live and failed jobs."""

    title = parameter_name = "state"
    options = [("running", "running"), ("paused", "paused"), ("failed", "with failed jobs")]

    def narrow(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        return in_state(queryset, value)


def _status(show: Any) -> Any:
    return lambda flow: show(flow.status)


@admin.register(Flow)
class FlowAdmin(ReadOnlyAdmin, KeysetAdmin, ModelAdmin):
    """Flows, newest first. Each needs the permissions to view flows and to view jobs."""

    list_display = ("id", "name", "state", "jobs", "created", "ended", "took")
    list_filter = (FlowStateFilter,)
    quick_filters = ("state",)
    list_per_page = 25  # the jobs of each flow are counted
    search_fields = ("id",)
    search_help_text = "id, or a part of the name"
    actions = None
    change_form_outer_before_template = "tailrace/jobs/admin/flow/top.html"
    fieldsets = (
        ("Flow", {"fields": ("name", "created", "ended", "took", "original")}),
        ("Limits", {"fields": ("deadline", "paused", "cancelled")}),
    )

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perms((VIEW_FLOW, VIEW_JOB))

    def find(self, request: HttpRequest, queryset: QuerySet[Any], term: str) -> QuerySet[Any]:
        if (id := row_id(term)) is not None:
            return queryset.filter(pk=id)
        return queryset.none() if "\0" in term else queryset.filter(name__icontains=term[:200])

    def scans(self, params: dict[str, str]) -> bool:
        return bool(params.get("q")) and row_id(params["q"].strip()) is None

    def complete(self, request: HttpRequest, rows: list[Any]) -> None:
        by_id = statuses(rows)
        for flow in rows:
            flow.status = by_id[flow.pk]

    def complete_page(self, request: HttpRequest, row: Any) -> None:
        self.complete(request, [row])

    # Columns and fields

    state = rendering.column("state", _status(lambda status: status.state), label=COLOURS)
    jobs = rendering.column(
        "jobs ended", _status(lambda status: f"{status.ended:,} of {status.jobs:,}")
    )
    created = rendering.time_column("created_at")
    ended = rendering.column("ended", lambda flow: rendering.time_of(flow, flow.status.ended_at))
    deadline = rendering.time_column("deadline_at", "deadline")
    took = rendering.column(
        "duration",
        lambda flow: duration(
            ((flow.status.ended_at or clock.now()) - flow.created_at).total_seconds()
        ),
    )
    original = rendering.column(
        "run again from",
        lambda flow: rendering.row_link("tailrace_jobs_flow_change", "flow", flow.copy_of),
    )
    paused = rendering.column("paused", lambda flow: _since(flow.paused_at, flow.paused_by))
    cancelled = rendering.column(
        "cancelled", lambda flow: _since(flow.cancelled_at, flow.cancelled_by)
    )

    def page_context(self, request: HttpRequest, object_id: str) -> dict[str, Any]:
        id = row_id(object_id)
        flow = None if id is None else Flow.objects.filter(pk=id).first()
        if flow is None or not self.has_view_permission(request):
            return {}
        return page_of(request, flow)

    # Buttons

    def get_urls(self) -> list[Any]:
        act = require_POST(self.action_view)
        return [
            *(self.route(f"<int:id>/{x}/", act, x, name=x) for x in actions.FLOW_ACTIONS),
            self.route("<int:id>/live/", require_safe(live_view), "live"),
            self.route("<int:id>/replay/", replay_view, "replay", site=self.admin_site),
            *super().get_urls(),
        ]

    def action_view(self, request: HttpRequest, id: int, name: str) -> HttpResponse:
        require(request, VIEW_FLOW, VIEW_JOB, actions.PERMISSION)
        flow, action = get_object_or_404(Flow, pk=id), actions.FLOW_ACTIONS[name]
        options = {"clean_up": request.POST.get("clean_up") != "no"} if name == "cancel" else {}
        try:
            outcome = actions.apply(user_of(request), flow, action, **options)
        except (RefusedForFlow, Blocked) as error:
            messages.warning(request, f"{error}.")
        else:
            messages.success(request, outcome_text(action, outcome))
        return redirect("admin:tailrace_jobs_flow_change", id)


def _since(at: Any, by: str) -> str:
    return "–" if at is None else f"{timestamp(at)} by {by}"
