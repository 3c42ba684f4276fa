"""The admin of jobs, with retry, cancel and replay."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path, reverse
from django.views.decorators.http import require_POST
from unfold.decorators import action, display

from jobs.admin import filters, rendering
from jobs.admin.base import ModelAdmin
from jobs.admin.pagination import KeysetAdmin, ReadOnlyAdmin
from jobs.inspection.explain.explanation import Explanation, JobNotFound, explain
from jobs.inspection.state_labels import STATE_LABELS, state_label
from jobs.models import Attempt, Job
from jobs.models.job import INDEXED_STATES
from jobs.operations import batches
from jobs.states import FINISHED, State
from jobs.visibility import VIEW_JOB_PAYLOAD, hidden_jobs, mask_attempts, mask_jobs, user_of

MAX_ATTEMPTS = 100
MAX_DEPENDENTS = 50


@admin.register(Job)
class JobAdmin(filters.SearchById, ReadOnlyAdmin, KeysetAdmin, ModelAdmin):
    """Jobs, newest first. Search: an id."""

    list_display = ("id", "handler", "status", "routing_key", "lane", "tries", "when", "why")
    list_filter = (
        filters.QueueFilter, filters.StateFilter, filters.LaneFilter, filters.EventFilter,
    )  # fmt: skip
    actions = ("retry_jobs", "cancel_jobs", "replay_jobs")
    change_form_outer_before_template = "jobs/admin/job_top.html"
    change_form_outer_after_template = "jobs/admin/job_attempts.html"
    fieldsets = (
        (None, {"fields": (("handler", "status"), ("event_link", "routing_key"), "error")}),
        ("Time", {"fields": (("created", "due"), ("started", "finished"))}),
        ("Claim", {"fields": (("tries", "claim_no"), ("lease", "worker"), "marks")}),
        (
            "Order",
            {"fields": (("priority", "lane"), ("unique_key", "merged"), ("follows", "scheduled"))},
        ),
        ("Progress", {"fields": ("progress",)}),
        ("Payload and result", {"fields": ("content", "outcome")}),
    )

    created, due = rendering.time_column("created_at"), rendering.time_column("due_at")
    started, finished = rendering.time_column("started_at"), rendering.time_column("finished_at")
    lease = rendering.time_column("lease_until", "lease until")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Job]:
        return super().get_queryset(request).defer("payload", "result")

    def get_object(self, request: HttpRequest, object_id: str, from_field: Any = None) -> Any:
        job = super().get_object(request, object_id, from_field)
        if job is not None:
            mask_jobs(user_of(request), [job])
        return job

    def listed(self, request: HttpRequest, rows: list[Any]) -> list[Any]:
        """Leave out what would answer whether a hidden job is in the lane."""
        if filters.LaneFilter.parameter_name in request.GET:
            hidden = hidden_jobs(user_of(request), rows)
            return [row for row in rows if row.pk not in hidden]
        return rows

    def complete(self, request: HttpRequest, rows: list[Any]) -> None:
        mask_jobs(user_of(request), rows)

    def scans(self, params: dict[str, str]) -> bool:
        filtered = {"queue", "state", "lane"} & params.keys()
        return (
            bool(filtered) and params.get("state") not in INDEXED_STATES and "event" not in params
        )

    # Columns and fields

    @display(description="state", label=rendering.STATE_COLOURS)
    def status(self, job: Job) -> str:
        return state_label(job)

    @display(description="attempt")
    def tries(self, job: Job) -> str:
        return rendering.attempts(job)

    @display(description="due or finished")
    def when(self, job: Job) -> str:
        return rendering.utc_time(job.finished_at or job.due_at)

    @display(description="error")
    def why(self, job: Job) -> str:
        return rendering.truncated(job.error)

    @display(description="event")
    def event_link(self, job: Job) -> str:
        return rendering.row_link("events_event_change", "event", job.event_id)

    @display(description="marks")
    def marks(self, job: Job) -> str:
        marks = {
            "claimed, about to begin": job.state == State.RUNNING and not job.begun,
            "claimed alone, after its worker was lost": job.isolate,
            "called apart, after its batch failed": job.suspect_group is not None,
            "stop requested": job.cancel_requested,
        }
        return ", ".join(mark for mark, is_set in marks.items() if is_set) or "–"

    @display(description="after")
    def follows(self, job: Job) -> str:
        return rendering.row_link("jobs_job_change", "job", job.after_id)

    @display(description="schedule")
    def scheduled(self, job: Job) -> str:
        if job.schedule_id is None:
            return "–"
        text = (
            f"schedule {job.schedule_id}, slot {rendering.utc_time(job.slot)}" if job.slot else ""
        )
        return rendering.link("jobs_schedule_change", text or "schedule", job.schedule_id)

    @display(description="progress")
    def progress(self, job: Job) -> str:
        if job.progress_done is None:
            return "–"
        total = "?" if job.progress_total is None else job.progress_total
        return f"{job.progress_done} of {total} {job.progress_note}".strip()

    @display(description="payload")
    def content(self, job: Job) -> str:
        return rendering.json_block(job.payload)

    @display(description="result")
    def outcome(self, job: Job) -> str:
        return rendering.json_block(job.result)

    @display(description="payload")
    def content_hidden(self, job: Job) -> str:
        return "You need the permission jobs.view_job_payload to see payload, result and errors."

    def get_fieldsets(self, request: HttpRequest, obj: Job | None = None) -> Any:
        if request.user.has_perm(VIEW_JOB_PAYLOAD):
            return self.fieldsets
        return (*self.fieldsets[:-1], ("Payload and result", {"fields": ("content_hidden",)}))

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        context = _page(request, object_id) | (extra_context or {})
        return super().change_view(request, object_id, form_url, context)

    # Actions

    def has_replay_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm(batches.PERMISSION)

    @action(description="Retry now", permissions=["replay"])
    def retry_jobs(self, request: HttpRequest, queryset: QuerySet[Job]) -> None:
        self._apply(request, batches.JOB_ACTIONS["retry"], queryset)

    @action(description="Cancel", permissions=["replay"])
    def cancel_jobs(self, request: HttpRequest, queryset: QuerySet[Job]) -> None:
        self._apply(request, batches.JOB_ACTIONS["cancel"], queryset)

    @action(description="Replay, with all attempts again", permissions=["replay"])
    def replay_jobs(self, request: HttpRequest, queryset: QuerySet[Job]) -> None:
        self._apply(request, batches.JOB_ACTIONS["replay"], queryset)

    def _apply(
        self, request: HttpRequest, action: batches.JobAction, queryset: QuerySet[Job]
    ) -> None:
        state = request.GET.get("state", "")
        if request.POST.get("select_across") == "1" and state not in action.states:
            states = " or ".join(STATE_LABELS[state] for state in action.states)
            text = f"To select all matching jobs, first filter by the state {states}."
            messages.warning(request, text)
            return
        _show(request, action, batches.apply(request.user, action, queryset))

    # Buttons on a job's page

    def get_urls(self) -> list[Any]:
        def route(name: str) -> Any:
            view = self.admin_site.admin_view(require_POST(self.action_view))
            return path(f"<int:id>/{name}/", view, {"name": name}, name=f"jobs_job_{name}")

        return [*(route(name) for name in batches.JOB_ACTIONS), *super().get_urls()]

    def action_view(self, request: HttpRequest, id: int, name: str) -> HttpResponse:
        if not self.has_replay_permission(request):
            raise PermissionDenied(f"you need the permission {batches.PERMISSION}")
        action = batches.JOB_ACTIONS[name]
        jobs = Job.objects.filter(pk=id)
        _show(request, action, batches.apply(request.user, action, jobs))
        return redirect("admin:jobs_job_change", id)


def _show(request: HttpRequest, action: batches.JobAction, summary: batches.Summary) -> None:
    """Show what was done as a message on the next page."""
    changed = summary.changed or summary.stop_requested
    level = messages.SUCCESS if changed else messages.WARNING
    messages.add_message(request, level, summary.text(action))


def _page(request: HttpRequest, object_id: str) -> dict[str, Any]:
    """Return explanation, attempts, dependents and buttons, for a job's page."""
    if not object_id.isdecimal():
        return {}
    id = int(object_id)
    jobs = list(Job.objects.filter(pk=id).defer("payload", "result"))
    state = jobs[0].state if jobs else None
    permitted = request.user.has_perm(batches.PERMISSION)
    dependents = Job.objects.filter(after=id, state=State.WAITING).only("id", "handler", "state")
    attempts = list(Attempt.objects.filter(job=id).order_by("-claim_no")[:MAX_ATTEMPTS])
    hidden = hidden_jobs(user_of(request), jobs)
    mask_attempts(user_of(request), attempts, hidden=bool(hidden))
    return {
        "explanation": _explanation(id, user_of(request)),
        "attempts": attempts,
        "dependents": [] if state in FINISHED else dependents[:MAX_DEPENDENTS],
        "buttons": [
            (action, reverse(f"admin:jobs_job_{action.name}", args=[id]))
            for action in batches.JOB_ACTIONS.values()
            if permitted and state in action.states
        ],
    }


def _explanation(id: int, user: User) -> Explanation | None:
    try:
        return explain(id, user)
    except JobNotFound:
        return None
