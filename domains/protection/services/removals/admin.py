"""The admin of removal requests, with buttons for parked ones."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.html import format_html, format_html_join
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_POST
from unfold.decorators import display

from tailrace.domains.protection.models import RemovalRequest, RemovalState
from tailrace.domains.protection.services.removals import board, decisions
from tailrace.domains.protection.services.removals.brokers import known_brokers
from tailrace.domains.protection.services.removals.person import decrypted
from tailrace.jobs.platform.admin import rendering
from tailrace.jobs.platform.admin.base import ModelAdmin
from tailrace.jobs.platform.admin.lists import filters
from tailrace.jobs.platform.admin.lists.pagination import KeysetAdmin, ReadOnlyAdmin
from tailrace.jobs.platform.inspection.visibility import user_of
from tailrace.jobs.runtime import audit
from tailrace.net.encryption import DecryptionError

DECIDE = "tailrace_protection.decide_removalrequest"
ACTIONS = {
    "done": ("Done", "done", decisions.done),
    "reject": ("The broker refuses", "rejected", decisions.reject),
    "try_again": ("Try again", "tried again", decisions.try_again),
}
BUTTONS = {
    RemovalState.NEEDS_PERSON: ("done", "reject", "try_again"),
    RemovalState.REJECTED: ("try_again",),
}
HIDDEN = f"You need the permission {DECIDE} to see the person's data."


@admin.register(RemovalRequest)
class RemovalRequestAdmin(filters.SearchById, ReadOnlyAdmin, KeysetAdmin, ModelAdmin):
    """The removal requests of customers. Parked requests have instructions and buttons."""

    list_display = ("id", "user", "broker", "status", "step", "why", "next_step", "changed")
    list_select_related = ("user",)
    list_filter = (filters.column_filter("state", lambda: RemovalState.choices),)
    change_form_outer_before_template = "tailrace/protection/removals/admin_buttons.html"
    created, changed = rendering.time_column("created_at"), rendering.time_column("changed_at")
    submitted, checked = rendering.time_column("submitted_at"), rendering.time_column("checked_at")
    next_step = rendering.time_column("next_at", "next step")
    fieldsets = (
        (None, {"fields": (("status", "user"), ("broker_page", "step"), "why", "instructions")}),
        ("Person", {"fields": ("person_data",)}),
        ("Times", {"fields": (("created", "changed"), ("submitted", "checked"), "next_step")}),
        ("Work", {"fields": (("submission", "checks"), "job")}),
        ("History", {"fields": ("history",)}),
    )

    def scans(self, params: dict[str, str]) -> bool:
        return "state" in params and params["state"] != RemovalState.NEEDS_PERSON

    def complete_page(self, request: HttpRequest, row: Any) -> None:
        row.may_decide = request.user.has_perm(DECIDE)
        row.may_see_jobs = request.user.has_perm("tailrace_jobs.view_job")

    def page_context(self, request: HttpRequest, object_id: str) -> dict[str, Any]:
        row = self.get_object(request, object_id)
        if row is None or not row.may_decide:
            return {}
        names = BUTTONS.get(RemovalState(row.state), ())
        return {"buttons": [(ACTIONS[name][0], self.address(name, row.pk)) for name in names]}

    def get_urls(self) -> list[Any]:
        view = require_POST(self.decide_view)
        routes = (self.route(f"<int:id>/{name}/", view, name, name=name) for name in ACTIONS)
        return [*routes, *super().get_urls()]

    def decide_view(self, request: HttpRequest, id: int, name: str) -> HttpResponse:
        if not request.user.has_perm(DECIDE):
            raise PermissionDenied(f"you need the permission {DECIDE}")
        row = get_object_or_404(RemovalRequest, pk=id)
        _title, past, decide = ACTIONS[name]
        try:
            with transaction.atomic():
                decide(row, user_of(request))
                audit.record(request.user, RemovalRequest, past, [(row.pk, f"removal {row.pk}")])
        except decisions.Refused as error:
            messages.warning(request, f"Removal {row.pk} was not changed: {error}.")
        else:
            messages.success(request, f"Removal {row.pk}: {past}.")
        return redirect(self.address("change", id))

    status = rendering.column(
        "state",
        lambda row: str(RemovalState(row.state).label).lower(),
        label={"needs a person": "warning", "rejected": "danger", "removed": "success"},
    )
    why = rendering.column("why", lambda row: rendering.truncated(row.note, 120) or "–")

    @display(description="broker")
    def broker_page(self, row: RemovalRequest) -> str:
        broker = known_brokers().get(row.broker)
        if broker is None:
            return f"{row.broker} (no longer in PROTECTION_BROKERS_FILE)"
        return format_html(
            '{0}, <a class="tr-link" href="{1}" rel="noopener noreferrer">{1}</a>, last tested {2}',
            *(broker.name, broker.removal_url, broker.working_as_of),
        )

    instructions = rendering.column("what to do", lambda row: board.card_of(row)["to_do"] or "–")

    @display(description="given to the broker")
    @sensitive_variables()
    def person_data(self, row: Any) -> str:
        if not row.may_decide:
            return HIDDEN
        broker = known_brokers().get(row.broker)
        if not row.person or broker is None:
            return "–"
        try:
            fields = broker.filled(decrypted(row.person))
        except DecryptionError as error:
            return str(error)
        return format_html_join("", "<div>{}: {}</div>", fields.items())

    @display(description="job")
    def job(self, row: Any) -> str:
        if row.job_id is None or row.may_see_jobs:
            return rendering.job_link(row.job_id)
        return f"job {row.job_id}"

    @display(description="moves")
    def history(self, row: RemovalRequest) -> str:
        lines = (
            (
                rendering.timestamp(change.at),
                RemovalState(change.new_state).label.capitalize(),
                change.by.get_username() if change.by else "a job",
                change.note or "–",
            )
            for change in board.history_of(row)
        )
        return format_html_join("", "<div>{} {} by {}: {}</div>", lines) or "–"
