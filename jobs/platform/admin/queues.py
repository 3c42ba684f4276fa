"""The admin of queues: statistics, pause and resume, and two limits."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import flatten_fieldsets, quote, unquote
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST, require_safe
from unfold.decorators import action, display
from unfold.views import ChangeList

from tailrace.jobs.engine import registry
from tailrace.jobs.engine.waking import wake
from tailrace.jobs.models import Queue
from tailrace.jobs.operations import audit
from tailrace.jobs.operations.pause import pause, resume
from tailrace.jobs.platform.admin.base import ModelAdmin
from tailrace.jobs.platform.admin.lists.pagination import ReadOnlyAdmin
from tailrace.jobs.platform.admin.lists.several import filter_in_words
from tailrace.jobs.platform.admin.pages.queue import page_of, running_view
from tailrace.jobs.platform.admin.pages.run_now import may_run, run_now
from tailrace.jobs.platform.inspection.display.formatting import capped, duration, timestamp
from tailrace.jobs.platform.inspection.queue_states import (
    PAUSED,
    RETIRED,
    RUNNING,
    UNSERVED,
    WAITING,
    queue_states,
)
from tailrace.jobs.platform.inspection.queues import stats

PERMISSION = "tailrace_jobs.pause_queue"
NOTHING = SafeString('<span class="tr-zero">0</span>')
"""A zero in the list, which small screens hide."""
OPERATIONS = {"pause": (pause, "paused"), "resume": (resume, "resumed")}


class QueueChangeList(ChangeList):
    """All queues on one page with their statistics, which one statement reads.

    Queues that need attention come first, idle queues last.
    """

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.result_list = sorted(_with_stats(*self.queryset), key=_rank)


STATES_FIRST = (UNSERVED, PAUSED, WAITING, RUNNING)


def _rank(queue: Any) -> tuple[int, bool]:
    """Return the sort key of a queue: by state, and queues with failed jobs first."""
    failed = bool(getattr(queue.stats, "failed", 0))
    if queue.state in STATES_FIRST:
        return STATES_FIRST.index(queue.state), not failed
    return len(STATES_FIRST), not failed


def _with_stats(*queues: Any) -> list[Any]:
    by_name = {queue.name: queue for queue in stats.queues()}
    states = queue_states(by_name.values())
    for queue in queues:
        queue.stats = by_name.get(queue.name)
        queue.state = states.get(queue.name, RETIRED)
    return list(queues)


@admin.register(Queue)
class QueueAdmin(ReadOnlyAdmin, ModelAdmin):
    """Queues, which `migrate` creates for each handler; operators pause and limit them here."""

    list_display = ("name", "status", "pending", "due", "running", "failed", "oldest_due", "limits")
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

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_view_permission(request, obj) or request.user.has_perm(PERMISSION)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm(PERMISSION)

    def has_pause_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm(PERMISSION)

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

    @display(description="handler")
    def about(self, queue: Queue) -> str:
        handler = registry.find(queue.name)
        return handler.description() if handler else "No handler of this name is deployed."

    @display(description="run now")
    def requests(self, queue: Queue) -> str:
        handler = registry.find(queue.name)
        permission = handler.request_permission if handler else None
        return f"Needs the permission {permission}." if permission else "Takes no requests."

    @display(
        description="state",
        label={
            "idle": "default",
            "waiting": "warning",
            "running": "info",
            "paused": "warning",
            "unserved": "danger",
            "retired": "danger",
        },
    )
    def status(self, queue: Any) -> str:
        return str(queue.state)

    def _count(self, queue: Any, name: str, state: str) -> str:
        number = getattr(queue.stats, name, 0)
        if not number:
            return NOTHING
        address = reverse("admin:tailrace_jobs_job_changelist")
        return format_html(
            '<a class="tr-link" href="{}?queue={}&amp;state={}">{}</a>',
            address,
            queue.name,
            state,
            capped(number),
        )

    @display(description="queued")
    def pending(self, queue: Queue) -> str:
        return self._count(queue, "pending", "pending")

    @display(description="due")
    def due(self, queue: Any) -> str:
        number = getattr(queue.stats, "due", 0)
        return capped(number) if number else NOTHING

    @display(description="running")
    def running(self, queue: Queue) -> str:
        return self._count(queue, "running", "running")

    @display(description="failed")
    def failed(self, queue: Queue) -> str:
        return self._count(queue, "failed", "failed")

    @display(description="oldest due")
    def oldest_due(self, queue: Any) -> str:
        return duration(getattr(queue.stats, "oldest_due_seconds", None))

    @display(description="last wake-up")
    def woken(self, queue: Any) -> str:
        return timestamp(getattr(queue.stats, "awake_at", None))

    @display(description="last drain")
    def drained(self, queue: Any) -> str:
        return timestamp(getattr(queue.stats, "drained_at", None))

    @display(description="limits")
    def limits(self, queue: Queue) -> str:
        limits = []
        if queue.max_running:
            limits.append(f"{queue.max_running} at once")
        if queue.rate_limit:
            limits.append(f"{queue.rate_limit:g} per second")
        return ", ".join(limits) or "–"

    # Actions and buttons

    @action(description="Pause", permissions=["pause"])
    def pause_queues(self, request: HttpRequest, queryset: QuerySet[Queue]) -> None:
        self._operate(request, "pause", list(queryset.values_list("name", flat=True)))

    @action(description="Resume", permissions=["pause"])
    def resume_queues(self, request: HttpRequest, queryset: QuerySet[Queue]) -> None:
        self._operate(request, "resume", list(queryset.values_list("name", flat=True)))

    def _operate(self, request: HttpRequest, action: str, names: list[str]) -> None:
        operation, past = OPERATIONS[action]
        with transaction.atomic():
            changed = [name for name in names if operation(name, request.user.get_username())]
            rows = [(name, name) for name in changed]
            audit.record(request.user, Queue, past, rows, filter_in_words(request))
        if changed:
            messages.success(request, f"{', '.join(changed)}: {past}.")
        else:
            messages.info(request, f"Already {past}: {', '.join(names)}.")

    def get_urls(self) -> list[Any]:
        def route(name: str) -> Any:
            view = self.admin_site.admin_view(require_POST(self.operate_view))
            return path(
                f"<str:queue>/{name}/", view, {"action": name}, name=f"tailrace_jobs_queue_{name}"
            )

        running = self.admin_site.admin_view(require_safe(running_view))
        live = path("<str:queue>/running/", running, name="tailrace_jobs_queue_running")
        run = path(
            "<str:queue>/run/", self.admin_site.admin_view(run_now), name="tailrace_jobs_queue_run"
        )
        return [run, live, *(route(name) for name in OPERATIONS), *super().get_urls()]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        name = unquote(object_id)
        context = {"run_now": may_run(request, name)} | page_of(request, name)
        context |= extra_context or {}
        return super().change_view(request, object_id, form_url, context)

    def operate_view(self, request: HttpRequest, queue: str, action: str) -> HttpResponse:
        if not self.has_pause_permission(request):
            raise PermissionDenied(f"you need the permission {PERMISSION}")
        self._operate(request, action, [queue])
        return redirect("admin:tailrace_jobs_queue_change", quote(queue))

    def response_change(self, request: HttpRequest, obj: Any) -> HttpResponse:
        """Stay on the queue's page after its limits were changed."""
        messages.success(request, f"The limits of {obj.name} were changed.")
        return redirect("admin:tailrace_jobs_queue_change", quote(obj.name))
