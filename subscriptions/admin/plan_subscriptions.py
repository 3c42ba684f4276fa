"""The admin of subscriptions to plans: enrol, change, past due, cancel, resume."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.views.decorators.http import require_POST
from unfold.decorators import display
from unfold.widgets import UnfoldAdminTextInputWidget

from tailrace.jobs.platform.admin.base import ModelAdmin
from tailrace.jobs.platform.admin.lists import filters
from tailrace.jobs.platform.admin.lists.pagination import KeysetAdmin
from tailrace.jobs.platform.admin.lists.several import filter_in_words
from tailrace.jobs.platform.inspection.visibility import user_of
from tailrace.jobs.runtime import audit
from tailrace.subscriptions.models import PlanSubscription
from tailrace.subscriptions.plans import status
from tailrace.subscriptions.plans.enrolment import Enrolment, enrol
from tailrace.subscriptions.plans.schedules import next_runs

EDITABLE = ("plan", "anchor_day", "time_zone")
LAST_CHANGES = 20
MOVES = {
    "past_due": ("Mark as past due", "marked as past due", status.mark_past_due),
    "cancel": ("Cancel the plan", "cancelled", status.cancel),
    "resume": ("Resume", "resumed", status.resume),
}
BUTTONS = {
    PlanSubscription.Status.ACTIVE: ("past_due", "cancel"),
    PlanSubscription.Status.PAST_DUE: ("resume", "cancel"),
    PlanSubscription.Status.CANCELLED: ("resume",),
}


class PlanSubscriptionForm(forms.ModelForm):
    class Meta:
        model = PlanSubscription
        fields = ("account", *EDITABLE)
        widgets = {"time_zone": UnfoldAdminTextInputWidget()}

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if self.instance.pk and self.instance.is_cancelled and self.has_changed():
            raise forms.ValidationError("The subscription is cancelled: resume it first.")
        return cleaned


@admin.register(PlanSubscription)
class PlanSubscriptionAdmin(KeysetAdmin, ModelAdmin):
    """The plans of accounts. To end a subscription, cancel it: its history is kept."""

    form = PlanSubscriptionForm
    list_display = ("id", "account", "plan", "state", "anchor_day", "time_zone", "grace_until")
    list_select_related = ("account", "plan")
    list_filter = (filters.column_filter("status", lambda: PlanSubscription.Status.choices),)
    search_fields = ("account__username__exact",)
    search_help_text = "A full login"
    autocomplete_fields = ("account",)
    actions = tuple(MOVES)
    change_form_outer_before_template = "tailrace/subscriptions/admin/plan_buttons.html"
    change_form_outer_after_template = "tailrace/subscriptions/admin/plan_subscription.html"

    def scans(self, params: dict[str, str]) -> bool:
        return "status" in params

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return () if obj is None else ("account", "state", "grace_until", "created_at")

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return ("account", *EDITABLE, *self.get_readonly_fields(request, obj)[1:])

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {"anchor_day": timezone.now().day} | super().get_changeform_initial_data(request)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Subscribe the account, or change the fields that the form changed."""
        if change:
            new = {name: getattr(obj, name) for name in form.changed_data}
            status.change([obj.pk], **new, by=user_of(request))
            return
        row = Enrolment(obj.account_id, obj.plan.name, obj.anchor_day, obj.time_zone)
        subscription = enrol(row, user_of(request))
        if subscription is None:  # another request created it at the same time
            subscription = PlanSubscription.objects.get(account=obj.account_id)
            text = "The account already has a subscription, which was not changed."
            messages.warning(request, text)
        obj.pk = subscription.pk

    def page_context(self, request: HttpRequest, object_id: str) -> dict[str, Any]:
        row = self.get_object(request, object_id)
        if row is None or not self.has_view_permission(request, row):
            return {}
        changes = row.changes.select_related("by").order_by("-pk")[:LAST_CHANGES]
        names = BUTTONS[row.status] if self.has_change_permission(request, row) else ()
        buttons = [(MOVES[name][0], self.address(name, row.pk)) for name in names]
        return {"runs": next_runs(row), "changes": changes, "buttons": buttons}

    def get_urls(self) -> list[Any]:
        view = require_POST(self.move_view)
        moves = (self.route(f"<int:id>/{name}/", view, name, name=name) for name in MOVES)
        return [*moves, *super().get_urls()]

    def move_view(self, request: HttpRequest, id: int, name: str) -> HttpResponse:
        """Mark as past due, cancel or resume one subscription, with the reason in the form."""
        row = get_object_or_404(PlanSubscription, pk=id)
        if not self.has_change_permission(request, row):
            raise PermissionDenied
        self._move(request, name, [id], request.POST.get("reason", "")[:300])
        return redirect(self.address("change", id))

    def _move(self, request: HttpRequest, name: str, ids: list[int], reason: str = "") -> None:
        _title, past, move = MOVES[name]
        with transaction.atomic():
            result = move(ids, user_of(request), reason)
            changed = [(id, f"subscription {id}") for id in result.changed]
            audit.record(request.user, PlanSubscription, past, changed, filter_in_words(request))
        if changed:
            messages.success(request, f"{len(changed)} {past}.")
        for id, reason in list(result.refused.items())[:5]:
            messages.warning(request, f"Subscription {id} was not changed: {reason}.")

    @admin.action(description="Mark as past due", permissions=["change"])
    def past_due(self, request: HttpRequest, rows: QuerySet[PlanSubscription]) -> None:
        self._move(request, "past_due", list(rows.values_list("pk", flat=True)))

    @admin.action(description="Cancel", permissions=["change"])
    def cancel(self, request: HttpRequest, rows: QuerySet[PlanSubscription]) -> None:
        self._move(request, "cancel", list(rows.values_list("pk", flat=True)))

    @admin.action(description="Resume", permissions=["change"])
    def resume(self, request: HttpRequest, rows: QuerySet[PlanSubscription]) -> None:
        self._move(request, "resume", list(rows.values_list("pk", flat=True)))

    @display(
        description="status",
        label={"active": "success", "past due": "warning", "cancelled": "default"},
    )
    def state(self, row: PlanSubscription) -> str:
        return row.get_status_display()
