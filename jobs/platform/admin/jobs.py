"""The admin of jobs, with the actions retry, cancel and replay."""

from collections.abc import Mapping
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.views.main import SEARCH_VAR
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path, reverse
from django.views.decorators.http import require_POST, require_safe

from tailrace.events.models import Event
from tailrace.jobs.models import Job
from tailrace.jobs.operations import batches
from tailrace.jobs.platform.admin import rendering
from tailrace.jobs.platform.admin.base import ModelAdmin
from tailrace.jobs.platform.admin.lists import bulk, filters
from tailrace.jobs.platform.admin.lists.pagination import KeysetAdmin, ReadOnlyAdmin
from tailrace.jobs.platform.admin.lists.several import is_across
from tailrace.jobs.platform.admin.pages.job import live_view, page_of, reschedule_view
from tailrace.jobs.platform.admin.pages.job_log import log_view
from tailrace.jobs.platform.admin.theme import display
from tailrace.jobs.platform.inspection.display.formatting import state_label, timestamp
from tailrace.jobs.platform.inspection.search.find import SearchResult, scans, search
from tailrace.jobs.platform.inspection.search.terms import NAMES, InvalidSearch, Terms, parse
from tailrace.jobs.platform.inspection.visibility import hidden_jobs, mask_jobs, require, user_of
from tailrace.jobs.runtime.states import State

SEARCH = "job_search"
"""The attribute of a request that has the result of its search."""
MAX_CHOSEN = 1_000
"""The maximum number of selected jobs of one action."""


@admin.register(Job)
class JobAdmin(ReadOnlyAdmin, KeysetAdmin, ModelAdmin):
    """Jobs, newest first. Filters, search and page are in the URL."""

    list_display = ("id", "handler", "status", "subject", "routing_key", "tries", "when", "why")
    list_filter = (
        filters.QueueFilter, filters.StateFilter, filters.LaneFilter, filters.EventFilter,
        filters.FlowFilter, filters.FailureFilter, filters.CreatedFilter,
    )  # fmt: skip
    search_fields = ("id",)
    search_help_text = "id, queue, subject or error"
    search_terms = (*(f"{name}:" for name in NAMES), "field=value")
    quick_filters = ("state", "created")
    narrow_by = "to narrow the search, add since:2h, until:2d or state:failed to the box above"
    actions = ("retry_jobs", "cancel_jobs", "replay_jobs")
    previews_all = True
    change_form_outer_before_template = "tailrace/jobs/admin/job/top.html"
    change_form_outer_after_template = "tailrace/jobs/admin/job/dependents.html"
    fieldsets = (
        (
            "Job",
            {"fields": ("handler", "status", "event_link", "routing_key", "scheduled", "original")},
        ),
        ("Time", {"fields": ("created", "due", "started", "finished")}),
        ("Claim", {"fields": ("tries", "claims", "lease", "worker", "marks")}),
        ("Order", {"fields": ("priority", "lane", "unique_key", "merges", "follows", "in_flow")}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Job]:
        return super().get_queryset(request).defer("payload", "result")

    def complete_page(self, request: HttpRequest, row: Any) -> None:
        mask_jobs(user_of(request), [row])

    def listed(self, request: HttpRequest, rows: list[Any]) -> list[Any]:
        """Leave out hidden jobs if the list would reveal their lane or subject."""
        if self.reveals_hidden(request):
            hidden = hidden_jobs(user_of(request), rows)
            return [row for row in rows if row.pk not in hidden]
        return rows

    def reveals_hidden(self, request: HttpRequest) -> bool:
        """Return whether these filters and search terms reveal more of a job than its row shows."""
        return "lane" in request.GET or _terms(request.GET).reveals_hidden()

    def find(self, request: HttpRequest, queryset: QuerySet[Any], term: str) -> QuerySet[Any]:
        try:
            result = search(user_of(request), term, queryset)
        except InvalidSearch as error:
            messages.warning(request, str(error))
            return queryset.none()
        if result.left_out:
            messages.warning(request, result.left_out)
        setattr(request, SEARCH, result)
        return result.jobs

    def within(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        result: SearchResult | None = getattr(request, SEARCH, None)
        return result.within(queryset) if result else queryset

    def complete(self, request: HttpRequest, rows: list[Any]) -> None:
        user = user_of(request)
        hidden = mask_jobs(user, rows)
        events = {row.event_id for row in rows if row.event_id and row.pk not in hidden}
        named: dict[int, str] = {}
        if events and user.has_perm("tailrace_events.view_event"):
            named = dict(Event.objects.filter(pk__in=events).values_list("pk", "subject"))
        for row in rows:
            row.subject_of_event = named.get(row.event_id, "")

    def state_of(self, params: Mapping[str, str]) -> str:
        """Return the state in the filter or in the search, or an empty string."""
        return params.get("state", "") or _terms(params).state

    def scans(self, params: dict[str, str]) -> bool:
        names = ("queue", "state", "lane", "event", "flow", "failure")
        return scans(_terms(params), {name: params.get(name) for name in names})

    # Columns and fields

    status = rendering.column("state", state_label, label=rendering.STATE_COLOURS)
    tries = rendering.column("attempt", rendering.attempts)
    when = rendering.column(
        "due or finished", lambda job: rendering.time_of(job, job.finished_at or job.due_at)
    )
    why = rendering.column("error", lambda job: rendering.one_line(job.error))

    @display(description="subject")
    def subject(self, job: Any) -> str:
        """Return what the job's event is about, or else the job's lane."""
        return rendering.one_line(job.subject_of_event or job.lane)

    event_link = rendering.column("event", lambda job: rendering.event_link(job.event_id))
    follows = rendering.column("after", lambda job: rendering.job_link(job.after_id))
    in_flow = rendering.column("flow", rendering.flow_link)
    original = rendering.column("run again from", lambda job: rendering.job_link(job.copy_of))
    claims = rendering.column("claims", lambda job: str(job.claim_no or "–"))
    merges = rendering.column("jobs merged into this job", lambda job: str(job.merged or "–"))
    created, due = rendering.time_column("created_at"), rendering.time_column("due_at")
    started, finished = rendering.time_column("started_at"), rendering.time_column("finished_at")
    lease = rendering.time_column("lease_until", "lease until")

    @display(description="marks")
    def marks(self, job: Job) -> str:
        marks = {
            "claimed, about to start": job.state == State.RUNNING and not job.begun,
            "claimed on its own, after its worker was lost": job.isolate,
            "called separately, after its batch failed": job.suspect_group is not None,
            "stop requested": job.cancel_requested,
        }
        return ", ".join(mark for mark, is_set in marks.items() if is_set) or "–"

    @display(description="schedule")
    def scheduled(self, job: Job) -> str:
        if job.schedule_id is None:
            return "–"
        text = f"schedule {job.schedule_id}, slot {timestamp(job.slot)}" if job.slot else "schedule"
        return rendering.link("tailrace_jobs_schedule_change", text, job.schedule_id)

    def page_context(self, request: HttpRequest, object_id: str) -> dict[str, Any]:
        return page_of(request, object_id)

    # Actions

    def has_replay_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm(batches.PERMISSION)

    @admin.action(description="Retry now", permissions=["replay"])
    def retry_jobs(self, request: HttpRequest, queryset: QuerySet[Job]) -> HttpResponse | None:
        return self._apply(request, "retry", queryset)

    @admin.action(description="Cancel", permissions=["replay"])
    def cancel_jobs(self, request: HttpRequest, queryset: QuerySet[Job]) -> HttpResponse | None:
        return self._apply(request, "cancel", queryset)

    @admin.action(description="Replay, with all attempts again", permissions=["replay"])
    def replay_jobs(self, request: HttpRequest, queryset: QuerySet[Job]) -> HttpResponse | None:
        return self._apply(request, "replay", queryset)

    def _apply(
        self, request: HttpRequest, name: str, queryset: QuerySet[Job]
    ) -> HttpResponse | None:
        """Apply the action to the selected jobs; for all matching jobs, show a preview first."""
        action = batches.JOB_ACTIONS[name]
        if is_across(request):
            address = reverse("admin:tailrace_jobs_job_all", args=[action.name])
            return redirect(f"{address}?{request.GET.urlencode()}")
        ids = list(queryset.order_by("pk").values_list("pk", flat=True)[:MAX_CHOSEN])
        jobs, what = Job.objects.filter(pk__in=ids), ""
        if len(ids) > 1:
            what = f"jobs {', '.join(map(str, ids))}"
        summary = batches.apply(request.user, action, jobs, what=what)
        return bulk.done(request, action, summary, "")

    # Buttons on a job's page

    def get_urls(self) -> list[Any]:
        act = require_POST(self.action_view)
        replay_page = self.admin_site.admin_view(bulk.replay_page)
        return [
            *(self.route(f"<int:id>/{x}/", act, x, name=x) for x in batches.JOB_ACTIONS),
            self.route("<int:id>/live/", require_safe(live_view), "live"),
            self.route("<int:id>/log/", require_safe(log_view), "log"),
            self.route("<int:id>/reschedule/", require_POST(reschedule_view), "reschedule"),
            self.route("all/<str:name>/", bulk.all_matching, "all", job_admin=self),
            path(
                "replays/<int:id>/", replay_page, {"site": self.admin_site}, "tailrace_jobs_replay"
            ),
            *super().get_urls(),
        ]

    def action_view(self, request: HttpRequest, id: int, name: str) -> HttpResponse:
        require(request, batches.PERMISSION)
        action = batches.JOB_ACTIONS[name]
        jobs = Job.objects.filter(pk=id)
        bulk.show_summary(request, action, batches.apply(request.user, action, jobs))
        return redirect("admin:tailrace_jobs_job_change", id)


def _terms(params: Mapping[str, str]) -> Terms:
    """Return the terms of the search, or no terms if the search is invalid."""
    try:
        return parse(params.get(SEARCH_VAR, ""))
    except InvalidSearch:
        return Terms()
