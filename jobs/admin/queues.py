"""The admin of queues: how they stand, pause and resume, and two limits."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path, reverse
from django.utils.html import format_html
from django.views.decorators.http import require_POST
from unfold.admin import ModelAdmin
from unfold.decorators import action, display
from unfold.views import ChangeList

from jobs import audit, numbers, operate, registry, wake
from jobs.admin import cells
from jobs.admin.paging import ReadOnlyAdmin
from jobs.models import Queue
from jobs.templatetags.words import duration

PERMISSION = "jobs.pause_queue"
OPERATIONS = {"pause": (operate.pause, "paused"), "resume": (operate.resume, "resumed")}


class QueueChangeList(ChangeList):
    """All queues on one page, each with its numbers, read in one statement."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        found = {each.name: each for each in numbers.queues()}
        rows: list[Any] = list(self.queryset)
        for queue in rows:
            queue.numbers = found.get(queue.name)
        self.result_list = rows


@admin.register(Queue)
class QueueAdmin(ReadOnlyAdmin, ModelAdmin):
    """Queues are made at migrate, one per handler; here they are paused and limited."""

    list_display = ("name", "status", "pending", "due", "running", "failed", "oldest_due", "limits")
    sortable_by = ()
    list_per_page = 1000
    list_disable_select_all = True
    actions = ("pause_queues", "resume_queues")
    change_form_outer_before_template = "jobs/admin/queue_buttons.html"
    fieldsets = (
        (None, {"fields": ("name", "about", "status")}),
        ("Limits", {"fields": (("max_running", "rate_limit"),)}),
        ("Numbers", {"fields": (("pending", "due"), ("running", "failed"), "oldest_due")}),
        ("Wake-ups", {"fields": (("awoken", "drained"))}),
    )
    awoken = cells.time_of("awake_at", "last awoken")
    drained = cells.time_of("drained_at", "last drained")
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
        names = cells.names(self.get_fieldsets(request, obj))
        return [name for name in names if name not in self.editable]

    def get_object(self, request: HttpRequest, object_id: str, from_field: Any = None) -> Any:
        queue = super().get_object(request, object_id, from_field)
        if queue is not None:
            found = {each.name: each for each in numbers.queues()}
            queue.numbers = found.get(queue.name)
        return queue

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Write the limits alone: the workers write the row's other columns all the time."""
        obj.save(update_fields=[name for name in self.editable if name in form.changed_data])
        wake.on_commit({obj.name})

    # Columns and fields

    @display(description="what it does")
    def about(self, queue: Queue) -> str:
        handler = registry.find(queue.name)
        return handler.description() if handler else "No handler of this name is deployed."

    @display(
        description="state",
        label={"paused": "warning", "awake": "info", "retired": "danger", "asleep": "default"},
    )
    def status(self, queue: Queue) -> str:
        if queue.retired_at:
            return "retired"
        return "paused" if queue.paused else "awake" if queue.awake else "asleep"

    def _count(self, queue: Any, name: str, state: str) -> str:
        number = getattr(queue.numbers, name, 0)
        if not number:
            return "0"
        address = reverse("admin:jobs_job_changelist")
        return format_html(
            '<a class="tr-link" href="{}?queue={}&amp;state={}">{}</a>',
            address,
            queue.name,
            state,
            number,
        )

    @display(description="pending")
    def pending(self, queue: Queue) -> str:
        return self._count(queue, "pending", "pending")

    @display(description="due")
    def due(self, queue: Any) -> int:
        return getattr(queue.numbers, "due", 0)

    @display(description="running")
    def running(self, queue: Queue) -> str:
        return self._count(queue, "running", "running")

    @display(description="failed")
    def failed(self, queue: Queue) -> str:
        return self._count(queue, "failed", "failed")

    @display(description="oldest due")
    def oldest_due(self, queue: Any) -> str:
        seconds = getattr(queue.numbers, "oldest_due_seconds", None)
        return "–" if seconds is None else duration(seconds)

    @display(description="limits")
    def limits(self, queue: Queue) -> str:
        said = []
        if queue.max_running:
            said.append(f"{queue.max_running} at once")
        if queue.rate_limit:
            said.append(f"{queue.rate_limit:g} a second")
        return ", ".join(said) or "–"

    # Actions and buttons

    @action(description="Pause", permissions=["pause"])
    def pause_queues(self, request: HttpRequest, queryset: QuerySet[Queue]) -> None:
        self._operate(request, "pause", list(queryset.values_list("name", flat=True)))

    @action(description="Resume", permissions=["pause"])
    def resume_queues(self, request: HttpRequest, queryset: QuerySet[Queue]) -> None:
        self._operate(request, "resume", list(queryset.values_list("name", flat=True)))

    def _operate(self, request: HttpRequest, verb: str, names: list[str]) -> None:
        operation, did = OPERATIONS[verb]
        with transaction.atomic():
            changed = [name for name in names if operation(name, request.user.get_username())]
            audit.record(request.user, Queue, did, [(name, name) for name in changed])
        if changed:
            messages.success(request, f"{', '.join(changed)}: {did}.")
        else:
            messages.info(request, f"Nothing changed: {', '.join(names)} stood so already.")

    def get_urls(self) -> list[Any]:
        def address(name: str) -> Any:
            view = self.admin_site.admin_view(require_POST(self.operate_view))
            return path(f"<str:queue>/{name}/", view, {"verb": name}, name=f"jobs_queue_{name}")

        return [*(address(name) for name in OPERATIONS), *super().get_urls()]

    def operate_view(self, request: HttpRequest, queue: str, verb: str) -> HttpResponse:
        if not self.has_pause_permission(request):
            raise PermissionDenied(f"this takes the permission {PERMISSION}")
        self._operate(request, verb, [queue])
        return redirect("admin:jobs_queue_changelist")
