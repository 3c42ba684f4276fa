"""The admin of events: what happened, and everything owed because of it."""

from typing import Any, ClassVar

from django.contrib import admin, messages
from django.db.models import Case, Count, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.lookups import GreaterThan
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path
from django.views.decorators.http import require_POST
from unfold.admin import ModelAdmin
from unfold.decorators import display

from events.models import Event
from events.types import all_types
from jobs import acknowledge, panels
from jobs.admin import cells, filters
from jobs.admin.paging import KeysetAdmin, ReadOnlyAdmin
from jobs.models import Attempt, Job
from jobs.states import LIVE, State

MAX_JOBS = 100
MAX_EFFECTS = 20

TypeFilter = filters.column_filter(
    "type", "type", lambda: [(cls.name, cls.name) for cls in all_types()]
)


class EventStateFilter(filters.ChoiceFilter):
    """Events by what became of their jobs. Each is asked by an index; none is stored."""

    title = "state"
    parameter_name = "state"
    scanned: ClassVar[set[str]] = {"none", "progress", "settled"}

    def choice_list(self) -> filters.Choices:
        return [
            ("none", "no jobs"),
            ("progress", "in progress"),
            ("settled", "settled"),
            ("failures", "has failures"),
        ]

    def narrow(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        if value == "failures":
            owing = Job.objects.failed().filter(event__isnull=False)
            return queryset.filter(pk__in=owing.order_by().values("event"))
        # A scalar subquery is probed row by row; EXISTS would be joined with the whole table.
        jobs = became(Job.objects.filter(event=OuterRef("pk")))
        queryset = queryset.alias(became=Subquery(jobs.values("became")))
        if value == "none":
            return queryset.filter(became=None)
        return queryset.filter(became=dict(self.choice_list())[value])


class ProblemFilter(filters.ChoiceFilter):
    title = "problem"
    parameter_name = "problem"

    def choice_list(self) -> filters.Choices:
        return [("flagged", "flagged"), ("acknowledged", "acknowledged")]

    def narrow(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        if value == "flagged":
            return queryset.filter(acknowledged_at=None).exclude(problem="")
        return queryset.filter(acknowledged_at__isnull=False)


@admin.register(Event)
class EventAdmin(ReadOnlyAdmin, KeysetAdmin, ModelAdmin):
    """Events, newest first. Search: an id, or the beginning of a subject."""

    list_display = ("id", "type", "subject", "state", "occurred", "actor", "flag")
    list_filter = (TypeFilter, EventStateFilter, filters.RecordedFilter, ProblemFilter)
    search_fields = ("id", "subject")
    search_help_text = "id, or beginning of the subject"
    change_form_outer_before_template = "jobs/admin/event_problem.html"
    change_form_outer_after_template = "jobs/admin/event_jobs.html"
    fieldsets = (
        (None, {"fields": (("type", "subject"), ("occurred", "recorded"), "actor")}),
        ("Origin", {"fields": (("source", "source_id"), "trace_parent", "caused_by", "led_to")}),
        ("Payload", {"fields": ("content",)}),
    )

    occurred = cells.time_of("occurred_at")
    recorded = cells.time_of("recorded_at")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Event]:
        return super().get_queryset(request).defer("payload")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        term = search_term.strip()
        if not term:
            return queryset, False
        if term.isascii() and term.isdigit():
            return queryset.filter(pk=int(term)), False
        return queryset.filter(subject__startswith=term).exclude(subject=""), False

    def scans(self, params: dict[str, str]) -> bool:
        return (
            params.get("state") in EventStateFilter.scanned
            or params.get("problem") == "acknowledged"
        )

    def complete(self, rows: list[Any]) -> None:
        states = event_states([row.pk for row in rows])
        for row in rows:
            row.state_of_jobs = states.get(row.pk, "no jobs")

    @display(
        description="state",
        label={"settled": "success", "in progress": "info", "has failures": "danger"},
    )
    def state(self, event: Any) -> str:
        return event.state_of_jobs

    @display(description="problem", label={"flagged": "warning"}, empty_value="")
    def flag(self, event: Event) -> str | None:
        if not event.problem:
            return None
        return "acknowledged" if event.acknowledged_at else "flagged"

    @display(description="cause")
    def caused_by(self, event: Event) -> str:
        if event.cause_id is None:
            return "–"
        return cells.link("events_event_change", f"event {event.cause_id}", event.cause_id)

    @display(description="effects")
    def led_to(self, event: Event) -> str:
        effects = Event.objects.filter(cause=event).order_by("id").only("id", "type")
        links = [
            cells.link("events_event_change", f"{effect.type} {effect.pk}", effect.pk)
            for effect in effects[: MAX_EFFECTS + 1]
        ]
        shown = links[:MAX_EFFECTS] + (["…"] if len(links) > MAX_EFFECTS else [])
        return cells.joined(shown) if shown else "–"

    @display(description="payload")
    def content(self, event: Event) -> str:
        return cells.pretty(event.payload)

    @display(description="payload")
    def content_hidden(self, event: Event) -> str:
        return "You may not see payloads: that takes the permission events.view_payload."

    def get_fieldsets(self, request: HttpRequest, obj: Event | None = None) -> Any:
        field = "content" if request.user.has_perm("events.view_payload") else "content_hidden"
        return (*self.fieldsets[:-1], ("Payload", {"fields": (field,)}))

    def get_readonly_fields(self, request: HttpRequest, obj: Event | None = None) -> Any:
        return cells.names(self.get_fieldsets(request, obj))

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        event = self.get_object(request, object_id)
        more = owed_because_of(object_id) | (extra_context or {})
        if event is not None and self.has_view_permission(request, event):
            more["panels"] = panels.of_event(event, request)
        return super().change_view(request, object_id, form_url, more)

    def get_urls(self) -> list[Any]:
        view = self.admin_site.admin_view(require_POST(self.acknowledge_view))
        return [
            path("<int:id>/acknowledge/", view, name="events_event_acknowledge"),
            *super().get_urls(),
        ]

    def acknowledge_view(self, request: HttpRequest, id: int) -> HttpResponse:
        if acknowledge.acknowledge(request.user, id):
            messages.success(request, f"Event {id} is acknowledged.")
        else:
            messages.info(request, f"Event {id} was not flagged any more.")
        return redirect("admin:events_event_change", id)


def became(jobs: QuerySet[Job]) -> QuerySet[Any, Any]:
    """Return, per event of these jobs, its state in words as `became`."""
    failed = Count("pk", filter=Q(state=State.FAILED))
    live = Count("pk", filter=Q(state__in=LIVE))
    return (
        jobs.order_by()
        .values("event")
        .annotate(
            became=Case(
                When(Q(GreaterThan(failed, 0)), then=Value("has failures")),
                When(Q(GreaterThan(live, 0)), then=Value("in progress")),
                default=Value("settled"),
            )
        )
    )


def event_states(ids: list[int]) -> dict[int, str]:
    """Return the state of each of these events that has jobs."""
    return dict(became(Job.objects.filter(event__in=ids)).values_list("event", "became"))


def owed_because_of(object_id: str) -> dict[str, Any]:
    """Return the jobs of an event with their attempts, for its page."""
    if not object_id.isdecimal():
        return {}
    found = Job.objects.filter(event=int(object_id)).defer("payload", "result").order_by("id")
    jobs: list[Any] = list(found[: MAX_JOBS + 1])
    attempts = Attempt.objects.filter(job__in=[job.pk for job in jobs]).order_by("job", "claim_no")
    by_job: dict[int, list[Attempt]] = {}
    for attempt in attempts.defer("traceback")[:1000]:
        by_job.setdefault(attempt.job_id, []).append(attempt)
    for job in jobs:
        job.tries = cells.attempts(job)
        job.attempt_list = by_job.get(job.pk, [])
    return {"jobs": jobs[:MAX_JOBS], "more_jobs": len(jobs) > MAX_JOBS}
