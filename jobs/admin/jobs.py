"""The admin of jobs: what is owed, and retry, cancel and replay of it."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path, reverse
from django.views.decorators.http import require_POST
from unfold.admin import ModelAdmin
from unfold.decorators import action, display

from jobs import explain
from jobs.admin import cells, filters, verbs
from jobs.admin.paging import KeysetAdmin, ReadOnlyAdmin
from jobs.models import Attempt, Job
from jobs.states import FINISHED, LIVE, State

INDEXED = {*LIVE, State.FAILED}
"""States whose jobs a partial index lists; the other states are the history."""
MAX_ATTEMPTS = 100
MAX_CONTINUATIONS = 50


@admin.register(Job)
class JobAdmin(ReadOnlyAdmin, KeysetAdmin, ModelAdmin):
    """Jobs, newest first. Search: an id."""

    list_display = ("id", "handler", "status", "routing_key", "lane", "tries", "when", "why")
    list_filter = (filters.QueueFilter, filters.StateFilter, filters.LaneFilter)
    search_fields = ("id",)
    search_help_text = "id"
    actions = ("retry_jobs", "cancel_jobs", "replay_jobs")
    change_form_outer_before_template = "jobs/admin/job_top.html"
    change_form_outer_after_template = "jobs/admin/job_attempts.html"
    fieldsets = (
        (None, {"fields": (("handler", "status"), ("event_link", "routing_key"), "error")}),
        ("Time", {"fields": (("created", "due"), ("started", "finished"))}),
        (
            "Claim",
            {
                "fields": (
                    ("tries", "claim_no"),
                    ("lease", "worker"),
                    "marks",
                )
            },
        ),
        ("Order", {"fields": (("priority", "lane"), ("unique_key", "follows"), "scheduled")}),
        ("Progress", {"fields": ("progress",)}),
        ("Payload and result", {"fields": ("content", "outcome")}),
    )

    created, due = cells.time_of("created_at"), cells.time_of("due_at")
    started, finished = cells.time_of("started_at"), cells.time_of("finished_at")
    lease = cells.time_of("lease_until", "lease until")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Job]:
        return super().get_queryset(request).defer("payload", "result")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        term = search_term.strip()
        if not term:
            return queryset, False
        number = term.isascii() and term.isdigit()
        return (queryset.filter(pk=int(term)) if number else queryset.none()), False

    def scans(self, params: dict[str, str]) -> bool:
        asked = {"queue", "state", "lane"} & params.keys()
        return bool(asked) and params.get("state") not in INDEXED and "event" not in params

    # Columns and fields

    @display(description="state", label=cells.LABELS)
    def status(self, job: Job) -> str:
        return job.state

    @display(description="attempt")
    def tries(self, job: Job) -> str:
        return cells.attempts(job)

    @display(description="due or finished")
    def when(self, job: Job) -> str:
        return cells.at(job.finished_at or job.due_at)

    @display(description="error")
    def why(self, job: Job) -> str:
        return cells.cut(job.error)

    @display(description="event")
    def event_link(self, job: Job) -> str:
        if job.event_id is None:
            return "–"
        return cells.link("events_event_change", f"event {job.event_id}", job.event_id)

    @display(description="marks")
    def marks(self, job: Job) -> str:
        marks = {
            "lost its worker once, claimed alone": job.isolate,
            "asked to stop": job.cancel_requested,
        }
        return ", ".join(words for words, on in marks.items() if on) or "–"

    @display(description="after")
    def follows(self, job: Job) -> str:
        if job.after_id is None:
            return "–"
        return cells.link("jobs_job_change", f"job {job.after_id}", job.after_id)

    @display(description="schedule")
    def scheduled(self, job: Job) -> str:
        if job.schedule_id is None:
            return "–"
        text = f"schedule {job.schedule_id}, slot {cells.at(job.slot)}" if job.slot else ""
        return cells.link("jobs_schedule_change", text or "schedule", job.schedule_id)

    @display(description="progress")
    def progress(self, job: Job) -> str:
        if job.progress_done is None:
            return "–"
        total = "?" if job.progress_total is None else job.progress_total
        return f"{job.progress_done} of {total} {job.progress_note}".strip()

    @display(description="payload")
    def content(self, job: Job) -> str:
        return cells.pretty(job.payload)

    @display(description="result")
    def outcome(self, job: Job) -> str:
        return cells.pretty(job.result)

    @display(description="payload")
    def content_hidden(self, job: Job) -> str:
        return "You may not see payloads and results: that takes jobs.view_job_payload."

    def get_fieldsets(self, request: HttpRequest, obj: Job | None = None) -> Any:
        if request.user.has_perm("jobs.view_job_payload"):
            return self.fieldsets
        return (*self.fieldsets[:-1], ("Payload and result", {"fields": ("content_hidden",)}))

    def get_readonly_fields(self, request: HttpRequest, obj: Job | None = None) -> Any:
        return cells.names(self.get_fieldsets(request, obj))

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        context = _page(request, object_id) | (extra_context or {})
        return super().change_view(request, object_id, form_url, context)

    # Actions

    def has_replay_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm(verbs.PERMISSION)

    @action(description="Retry now: due at once", permissions=["replay"])
    def retry_jobs(self, request: HttpRequest, queryset: QuerySet[Job]) -> None:
        self._apply(request, verbs.VERBS["retry"], queryset)

    @action(description="Cancel", permissions=["replay"])
    def cancel_jobs(self, request: HttpRequest, queryset: QuerySet[Job]) -> None:
        self._apply(request, verbs.VERBS["cancel"], queryset)

    @action(description="Replay: all attempts anew", permissions=["replay"])
    def replay_jobs(self, request: HttpRequest, queryset: QuerySet[Job]) -> None:
        self._apply(request, verbs.VERBS["replay"], queryset)

    def _apply(self, request: HttpRequest, verb: verbs.Verb, queryset: QuerySet[Job]) -> None:
        state = request.GET.get("state", "")
        if request.POST.get("select_across") == "1" and state not in verb.states:
            allowed = ", ".join(verb.states)
            text = f"To choose all matching jobs, first filter by one of the states {allowed}."
            messages.warning(request, text)
            return
        outcome = verbs.apply(request.user, verb, queryset)
        level = messages.SUCCESS if outcome.changed or outcome.asked else messages.WARNING
        messages.add_message(request, level, outcome.words(verb))

    # Buttons on a job's page

    def get_urls(self) -> list[Any]:
        def address(name: str) -> Any:
            view = self.admin_site.admin_view(require_POST(self.verb_view))
            return path(f"<int:id>/{name}/", view, {"name": name}, name=f"jobs_job_{name}")

        return [*(address(name) for name in verbs.VERBS), *super().get_urls()]

    def verb_view(self, request: HttpRequest, id: int, name: str) -> HttpResponse:
        if not self.has_replay_permission(request):
            raise PermissionDenied(f"this takes the permission {verbs.PERMISSION}")
        verb = verbs.VERBS[name]
        outcome = verbs.apply(request.user, verb, Job.objects.filter(pk=id))
        level = messages.SUCCESS if outcome.changed or outcome.asked else messages.WARNING
        messages.add_message(request, level, outcome.words(verb))
        return redirect("admin:jobs_job_change", id)


def _page(request: HttpRequest, object_id: str) -> dict[str, Any]:
    """Return a job's attempts, continuations and buttons, for its page."""
    if not object_id.isdecimal():
        return {}
    id = int(object_id)
    state = Job.objects.filter(pk=id).values_list("state", flat=True).first()
    allowed = request.user.has_perm(verbs.PERMISSION)
    waiting = Job.objects.filter(after=id, state=State.WAITING).only("id", "handler", "state")
    return {
        "explanation": _explanation(id),
        "attempts": Attempt.objects.filter(job=id).order_by("-claim_no")[:MAX_ATTEMPTS],
        "continuations": [] if state in FINISHED else waiting[:MAX_CONTINUATIONS],
        "buttons": [
            (verb, reverse(f"admin:jobs_job_{verb.name}", args=[id]))
            for verb in verbs.VERBS.values()
            if allowed and state in verb.states
        ],
    }


def _explanation(id: int) -> explain.Explanation | None:
    try:
        return explain.explain(id)
    except explain.UnknownJob:
        return None
