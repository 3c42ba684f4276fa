"""The admin of events and their jobs."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.views.main import SEARCH_VAR
from django.contrib.auth.models import User
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from tailrace.db.locks import Blocked
from tailrace.db.row_ids import row_id
from tailrace.events.models import Event
from tailrace.events.privacy.visibility import hidden_from
from tailrace.events.types import all_types
from tailrace.jobs.models import Attempt, Job
from tailrace.jobs.operations import acknowledge, batches
from tailrace.jobs.platform.admin import rendering
from tailrace.jobs.platform.admin.base import ModelAdmin
from tailrace.jobs.platform.admin.lists import bulk, filters
from tailrace.jobs.platform.admin.lists.pagination import KeysetAdmin, ReadOnlyAdmin
from tailrace.jobs.platform.admin.lists.several import MOST, filter_in_words
from tailrace.jobs.platform.admin.theme import display
from tailrace.jobs.platform.inspection import visibility
from tailrace.jobs.platform.inspection.details.chain import chain_of
from tailrace.jobs.platform.inspection.details.event_states import (
    NO_JOBS,
    event_states,
    with_event_state,
)
from tailrace.jobs.platform.inspection.display.formatting import count
from tailrace.jobs.platform.pages import panel
from tailrace.jobs.runtime.states import State

MAX_JOBS = 100
REPLAYED = (State.FAILED, State.CANCELLED)
"""States of the jobs that the button of an event replays."""
MAX_EFFECTS = 20

TypeFilter = filters.column_filter("type", lambda: [(cls.name, cls.name) for cls in all_types()])


class EventStateFilter(filters.ChoiceFilter):
    """Filter events by the states of their jobs. The event's state is computed, not stored."""

    title = parameter_name = "state"
    options = [
        ("none", "no jobs"),
        ("progress", "in progress"),
        ("settled", "settled"),
        ("failures", "has failures"),
    ]

    def narrow(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        if value == "failures":
            failed = Job.objects.failed().filter(event__isnull=False)
            return queryset.filter(pk__in=failed.order_by().values("event"))
        # PostgreSQL runs a scalar subquery for each row; it would join EXISTS with the whole table.
        states = with_event_state(Job.objects.filter(event=OuterRef("pk"))).values("event_state")
        state = None if value == "none" else dict(self.options)[value]
        return queryset.alias(event_state=Subquery(states)).filter(event_state=state)


class ProblemFilter(filters.ChoiceFilter):
    title = parameter_name = "problem"
    options = [("flagged", "flagged"), ("acknowledged", "acknowledged")]

    def narrow(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        if value == "flagged":
            return queryset.filter(acknowledged_at=None).exclude(problem="")
        return queryset.filter(acknowledged_at__isnull=False)


@admin.register(Event)
class EventAdmin(ReadOnlyAdmin, KeysetAdmin, ModelAdmin):
    """Events, newest first. Search by id or by the start of a subject."""

    list_display = ("id", "type", "subject", "state", "occurred", "actor", "flag")
    list_filter = (TypeFilter, EventStateFilter, filters.RecordedFilter, ProblemFilter)
    quick_filters = ("state", "recorded", "problem")
    search_fields = ("id", "subject")
    search_help_text = "id, or start of the subject"
    actions = ("acknowledge_events",)
    change_form_outer_before_template = "tailrace/jobs/admin/event/problem.html"
    change_form_outer_after_template = "tailrace/jobs/admin/event/jobs.html"
    fieldsets = (
        (None, {"fields": (("type", "subject", "state"), ("occurred", "recorded"), "actor")}),
        ("Origin", {"fields": (("source", "source_id"), "trace_parent", "caused_by", "effects")}),
        ("Payload", {"fields": ("content",)}),
    )

    occurred = rendering.time_column("occurred_at")
    recorded = rendering.time_column("recorded_at")
    state = rendering.column(
        "state",
        lambda event: event.state_of_jobs,
        label={"settled": "success", "in progress": "info", "has failures": "danger"},
    )
    caused_by = rendering.column("cause", lambda event: rendering.event_link(event.cause_id))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Event]:
        return super().get_queryset(request).defer("payload")

    def find(self, request: HttpRequest, queryset: QuerySet[Any], term: str) -> QuerySet[Any]:
        if (id := row_id(term)) is not None:
            return queryset.filter(pk=id)
        return queryset.filter(subject__startswith=term).exclude(subject="")

    def scans(self, params: dict[str, str]) -> bool:
        scanned = params.get("state", "failures") != "failures"
        return scanned or params.get("problem") == "acknowledged"

    def listed(self, request: HttpRequest, rows: list[Any]) -> list[Any]:
        """Leave out hidden events, so that a search does not reveal their subjects."""
        term = request.GET.get(SEARCH_VAR, "").strip()
        if not term or row_id(term) is not None:
            return rows
        hidden = hidden_from(visibility.user_of(request), (row.pk for row in rows))
        return [row for row in rows if row.pk not in hidden]

    def complete_page(self, request: HttpRequest, row: Any) -> None:
        row.is_hidden = bool(visibility.mask_events(visibility.user_of(request), [row]))
        row.state_of_jobs = event_states([row.pk]).get(row.pk, NO_JOBS)
        row.shows_payload = request.user.has_perm(visibility.VIEW_EVENT_PAYLOAD)

    def complete(self, request: HttpRequest, rows: list[Any]) -> None:
        visibility.mask_events(visibility.user_of(request), rows)
        states = event_states([row.pk for row in rows])
        for row in rows:
            row.state_of_jobs = states.get(row.pk, NO_JOBS)

    @display(description="problem", label={"flagged": "warning"}, empty_value="")
    def flag(self, event: Event) -> str | None:
        if not event.problem:
            return None
        return "acknowledged" if event.acknowledged_at else "flagged"

    @display(description="effects")
    def effects(self, event: Any) -> str:
        if event.is_hidden:
            return visibility.HIDDEN
        effects = Event.objects.filter(cause=event).order_by("id").only("id", "type")
        links = [
            rendering.row_link("tailrace_events_event_change", effect.type, effect.pk)
            for effect in effects[: MAX_EFFECTS + 1]
        ]
        shown = links[:MAX_EFFECTS] + (["…"] if len(links) > MAX_EFFECTS else [])
        return rendering.comma_separated(shown) if shown else "–"

    @display(description="payload")
    def content(self, event: Any) -> str:
        if event.shows_payload:
            return rendering.json_block(event.payload)
        return f"You need the permission {visibility.VIEW_EVENT_PAYLOAD} to see payloads."

    def page_context(self, request: HttpRequest, object_id: str) -> dict[str, Any]:
        event = self.get_object(request, object_id)
        context = jobs_of_event(object_id, visibility.user_of(request))
        permitted = event is not None and self.has_view_permission(request, event)
        if permitted and not event.is_hidden:
            context["panels"] = panel.event_panels(event, request)
            context |= _chain(event.pk, visibility.user_of(request))
        return context

    def has_acknowledge_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm(acknowledge.PERMISSION)

    @admin.action(description="Acknowledge", permissions=["acknowledge"])
    def acknowledge_events(self, request: HttpRequest, queryset: QuerySet[Event]) -> None:
        events = Event.objects.filter(pk__in=list(queryset.values_list("pk", flat=True)[:MOST]))
        what = filter_in_words(request) or "selected events"
        number = acknowledge.acknowledge_all(request.user, events, what)
        messages.success(request, f"{count(number, 'event')} acknowledged.")

    def get_urls(self) -> list[Any]:
        return [
            self.route("<int:id>/acknowledge/", require_POST(self.acknowledge_view), "acknowledge"),
            self.route("<int:id>/replay/", require_POST(self.replay_view), "replay"),
            *super().get_urls(),
        ]

    def acknowledge_view(self, request: HttpRequest, id: int) -> HttpResponse:
        try:
            if acknowledge.acknowledge(request.user, id):
                messages.success(request, f"Event {id} acknowledged.")
            else:
                messages.info(request, f"Event {id} is already acknowledged.")
        except Blocked as error:
            messages.error(request, f"Event {id} could not be acknowledged: {error}.")
        return redirect("admin:tailrace_events_event_change", id)

    def replay_view(self, request: HttpRequest, id: int) -> HttpResponse:
        """Replay the failed and cancelled jobs of an event, and redirect to the event's page, or
        to the event in the form field `page`."""
        visibility.require(request, batches.PERMISSION)
        action = batches.JOB_ACTIONS["replay"]
        jobs = Job.objects.filter(event=id, state__in=REPLAYED)
        bulk.show_summary(request, action, batches.apply(request.user, action, jobs))
        shown = row_id(request.POST.get("page", ""))
        return redirect("admin:tailrace_events_event_change", id if shown is None else shown)


def _chain(event_id: int, user: User) -> dict[str, Any]:
    """Return the chain of an event, and the ids of its events with jobs to replay."""
    if not user.has_perm(visibility.VIEW_JOB):
        return {}
    chain = chain_of(event_id, user)
    shown = [node for _, node in chain.nodes()]
    for node in shown:
        visibility.mask_jobs(user, node.jobs)
    jobs = Job.objects.filter(event__in=[node.event.pk for node in shown], state__in=REPLAYED)
    return {
        "chain": chain.roots,
        "is_chain": len(shown) > 1,
        "replayable": set(jobs.order_by().values_list("event", flat=True).distinct()),
    }


def jobs_of_event(object_id: str, user: User) -> dict[str, Any]:
    """Return the jobs of an event with their attempts, as the user may see them."""
    event_id = row_id(object_id)
    if event_id is None:
        return {}
    rows = Job.objects.filter(event=event_id).defer("payload", "result").order_by("id")
    jobs: list[Any] = list(rows[: MAX_JOBS + 1])
    attempts = Attempt.objects.filter(job__in=[job.pk for job in jobs]).order_by("job", "claim_no")
    shown = list(attempts.defer("traceback")[:1000])
    visibility.mask_attempts(user, shown, hidden=bool(visibility.mask_jobs(user, jobs)))
    for job in jobs:
        job.tries = rendering.attempts(job)
        job.attempt_list = [attempt for attempt in shown if attempt.job_id == job.pk]
    return {"jobs": jobs[:MAX_JOBS], "more_jobs": len(jobs) > MAX_JOBS}
