"""The admin of queues: statistics, pause and resume, and two limits."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import flatten_fieldsets, quote, unquote
from django.contrib.admin.views.main import ChangeList
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import redirect
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST, require_safe

from tailrace.db import clock
from tailrace.db.engine_database import home
from tailrace.db.locks import Blocked
from tailrace.jobs.engine import registry
from tailrace.jobs.engine.waking import wake
from tailrace.jobs.models import Queue
from tailrace.jobs.operations.pause import MAX_REASON, pause, resume
from tailrace.jobs.platform.admin import rendering
from tailrace.jobs.platform.admin.base import ModelAdmin
from tailrace.jobs.platform.admin.lists import filters
from tailrace.jobs.platform.admin.lists.pagination import ReadOnlyAdmin
from tailrace.jobs.platform.admin.lists.several import filter_in_words
from tailrace.jobs.platform.admin.pages.queue import page_of, running_view
from tailrace.jobs.platform.admin.pages.run_now import may_run, run_now
from tailrace.jobs.platform.admin.theme import display
from tailrace.jobs.platform.inspection.display.formatting import capped, duration, timestamp
from tailrace.jobs.platform.inspection.queue_states import (
    IDLE,
    PAUSED,
    RETIRED,
    RUNNING,
    UNSERVED,
    WAITING,
    queue_states,
)
from tailrace.jobs.platform.inspection.queues import stats
from tailrace.jobs.platform.inspection.visibility import require
from tailrace.jobs.runtime import audit

PERMISSION = "tailrace_jobs.pause_queue"
NOTHING = SafeString('<span class="tr-zero">0</span>')
"""A zero in the list, which small screens hide."""
OPERATIONS = {"pause": (pause, "paused"), "resume": (resume, "resumed")}
PAUSE_ENDS = ((1, "in 1 hour"), (4, "in 4 hours"), (24, "in 24 hours"), (168, "in 7 days"))
"""Hours after which a pause may end, and how the form offers them."""


class QueueChangeList(ChangeList):
    """All queues on one page, with their statistics; queues that need attention come first."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.result_list = sorted(_with_stats(*self.queryset), key=_rank)


STATES_FIRST = (UNSERVED, PAUSED, WAITING, RUNNING)


def _rank(queue: Any) -> tuple[int, bool]:
    """Return the sort key of a queue: by state, and queues with failed jobs first."""
    return (*STATES_FIRST, queue.state).index(queue.state), not getattr(queue.stats, "failed", 0)


def _with_stats(*queues: Any) -> list[Any]:
    by_name = {queue.name: queue for queue in stats.queues()}
    states = queue_states(by_name.values())
    for queue in queues:
        queue.stats = by_name.get(queue.name)
        queue.state = states.get(queue.name, RETIRED)
    return list(queues)


def _figure(title: str, name: str, show: Callable[[Any], str]) -> Any:
    """Return a column of a figure of QueueStats, which is None for queues without statistics."""
    return rendering.column(title, lambda queue: show(getattr(queue.stats, name, None)))


def _count(state: str, title: str = "") -> Any:
    def show(queue: Any) -> str:
        if not (number := getattr(queue.stats, state, 0)):
            return NOTHING
        query = f"?queue={queue.name}&state={state}"
        return rendering.link("tailrace_jobs_job_changelist", capped(number), query=query)

    return rendering.column(title or state, show)


COLOURS = {
    "idle": "default",
    "waiting": "warning",
    "running": "info",
    "paused": "warning",
    "unserved": "danger",
    "retired": "danger",
}


def _pause_options(request: HttpRequest) -> dict[str, Any] | None:
    """Return the reason and the end of the pause from the form; None if they are not valid."""
    reason, hours = request.POST.get("reason", "").strip(), request.POST.get("hours", "")
    ends = {"": None} | {str(each): timedelta(hours=each) for each, _words in PAUSE_ENDS}
    if hours not in ends or len(reason) > MAX_REASON or "\0" in reason:
        return None
    after = ends[hours]
    return {"reason": reason, "until": None if after is None else clock.now() + after}


class QueueStateFilter(filters.ChoiceFilter):
    """Filter queues by their state, which is computed, not stored."""

    title = parameter_name = "state"
    options = [
        ("active", "not idle"),
        ("failed", "with failed jobs"),
        *((state, state) for state in COLOURS),
    ]

    def narrow(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        rows = [row for row in _with_stats(*queryset) if _is_in(row, value)]
        return queryset.filter(pk__in=[row.pk for row in rows])


def _is_in(queue: Any, value: str) -> bool:
    if value == "failed":
        return getattr(queue.stats, "failed", 0) > 0
    return queue.state != IDLE if value == "active" else queue.state == value


@admin.register(Queue)
class QueueAdmin(ReadOnlyAdmin, ModelAdmin):
    """Queues, which `migrate` creates for each handler; operators pause and limit them here."""

    list_display = ("name", "status", "pending", "due", "running", "failed", "oldest_due", "limits")
    list_filter = (QueueStateFilter,)
    quick_filters = ("state",)
    search_fields = ("name",)
    search_help_text = "part of a name"
    sortable_by = ()
    list_per_page = 1000
    list_disable_select_all = True
    actions = ("pause_queues", "resume_queues")
    change_form_outer_before_template = "tailrace/jobs/admin/queue/top.html"
    change_form_outer_after_template = "tailrace/jobs/admin/queue/failed.html"
    fieldsets = (
        ("Queue", {"fields": ("name", "about", "requests", "woken", "drained")}),
        ("Limits", {"fields": (("max_running", "rate_limit"),)}),
    )
    editable = ("max_running", "rate_limit")

    def find(self, request: HttpRequest, queryset: QuerySet[Any], term: str) -> QuerySet[Any]:
        return queryset.none() if "\0" in term else queryset.filter(name__icontains=term[:200])

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_view_permission(request, obj) or request.user.has_perm(PERMISSION)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm(PERMISSION)

    has_pause_permission = has_change_permission

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[QueueChangeList]:
        return QueueChangeList

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        names = flatten_fieldsets(self.get_fieldsets(request, obj))
        return [name for name in names if name not in self.editable]

    def get_object(self, request: HttpRequest, object_id: str, from_field: Any = None) -> Any:
        queue = super().get_object(request, object_id, from_field)
        return queue and _with_stats(queue)[0]

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Write only the limits: other fields may be changed at the same time."""
        obj.save(update_fields=[name for name in self.editable if name in form.changed_data])
        wake.on_commit({obj.name})

    # Columns and fields

    status = rendering.column("state", lambda queue: queue.state, label=COLOURS)
    pending, running, failed = _count("pending", "queued"), _count("running"), _count("failed")
    due = _figure("due", "due", lambda number: capped(number) if number else NOTHING)
    oldest_due = _figure("oldest due", "oldest_due_seconds", duration)
    woken = _figure("last wake-up", "awake_at", timestamp)
    drained = _figure("last drain", "drained_at", timestamp)

    @display(description="handler")
    def about(self, queue: Queue) -> str:
        handler = registry.find(queue.name)
        return handler.description() if handler else "No handler of this name is deployed."

    @display(description="run now")
    def requests(self, queue: Queue) -> str:
        handler = registry.find(queue.name)
        permission = handler.request_permission if handler else None
        return f"Needs the permission {permission}." if permission else "Takes no requests."

    @display(description="limits")
    def limits(self, queue: Queue) -> str:
        limits, handler = [], registry.find(queue.name)
        if most := queue.max_running or (handler and handler.max_running):
            limits.append(f"{most} at once")
        if rate := queue.rate_limit or (handler and handler.rate_limit):
            limits.append(f"{rate:g} per second")
        return ", ".join(limits) or "–"

    # Actions and buttons

    @admin.action(description="Pause", permissions=["pause"])
    def pause_queues(self, request: HttpRequest, queryset: QuerySet[Queue]) -> None:
        self._operate(request, "pause", list(queryset.values_list("name", flat=True)))

    @admin.action(description="Resume", permissions=["pause"])
    def resume_queues(self, request: HttpRequest, queryset: QuerySet[Queue]) -> None:
        self._operate(request, "resume", list(queryset.values_list("name", flat=True)))

    def _operate(self, request: HttpRequest, action: str, names: list[str], **options: Any) -> None:
        operation, past = OPERATIONS[action]
        by = request.user.get_username()
        try:
            with transaction.atomic(using=home()):
                changed = [name for name in names if operation(name, by, **options)]
                rows = [(name, name) for name in changed]
                audit.record(request.user, Queue, past, rows, filter_in_words(request))
        except Blocked as error:
            messages.error(request, f"No queue was {past}: {error}.")
            return
        if changed:
            messages.success(request, f"{', '.join(changed)}: {past}.")
        else:
            messages.info(request, f"Already {past}: {', '.join(names)}.")

    def get_urls(self) -> list[Any]:
        operate = require_POST(self.operate_view)
        return [
            self.route("<str:queue>/run/", run_now, "run", site=self.admin_site),
            self.route("<str:queue>/running/", require_safe(running_view), "running"),
            *(self.route(f"<str:queue>/{x}/", operate, x, action=x) for x in OPERATIONS),
            *super().get_urls(),
        ]

    def page_context(self, request: HttpRequest, object_id: str) -> dict[str, Any]:
        name = unquote(object_id)
        context = {"run_now": may_run(request, name), "pause_ends": PAUSE_ENDS}
        return context | page_of(request, name)

    def operate_view(self, request: HttpRequest, queue: str, action: str) -> HttpResponse:
        require(request, PERMISSION)
        options = _pause_options(request) if action == "pause" else {}
        if options is None:
            return HttpResponseBadRequest("reason or hours: not one that the form offers")
        self._operate(request, action, [queue], **options)
        return redirect("admin:tailrace_jobs_queue_change", quote(queue))

    def response_change(self, request: HttpRequest, obj: Any) -> HttpResponse:
        """Stay on the queue's page after its limits were changed."""
        messages.success(request, f"The limits of {obj.name} were changed.")
        return redirect("admin:tailrace_jobs_queue_change", quote(obj.name))
