"""The admin of schedules and of their slots."""

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from pydantic import ValidationError as InvalidPayload

from tailrace.db.query import database_now, query
from tailrace.db.row_ids import row_id
from tailrace.jobs.engine import registry
from tailrace.jobs.models import Schedule, Slot
from tailrace.jobs.models.schedule import OF_CODE
from tailrace.jobs.platform.admin import rendering
from tailrace.jobs.platform.admin.base import ModelAdmin, hide_url_secrets
from tailrace.jobs.platform.admin.lists import filters
from tailrace.jobs.platform.admin.lists.pagination import KeysetAdmin, ReadOnlyAdmin
from tailrace.jobs.platform.admin.theme import Select, TextInput, display
from tailrace.jobs.platform.inspection.display.formatting import ago, duration
from tailrace.jobs.platform.inspection.visibility import VIEW_JOB_PAYLOAD
from tailrace.jobs.runtime import payloads

LAST_SLOTS = 20
TIMING = ("every_seconds", "cron", "time_zone", "spread")
TIMING_FIELDS = ("every_seconds", ("cron", "time_zone"), "spread")
DECLARED = ("name", "handler", "routing_key", "payload", *TIMING, "catch_up")
OUTCOMES = {"ran": "success", "merged": "info", "skipped": "default", "missed": "warning"}


class ScheduleForm(forms.ModelForm):
    """A schedule. If the code declares it, only `enabled` can be changed."""

    class Meta:
        model = Schedule
        fields = (*DECLARED, "enabled")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance._state.adding:
            self.instance.next_run_at = database_now()
        if "spread" in self.fields:
            self.fields["spread"].required = False
        for name in {"name", "routing_key", "cron", "time_zone"} & self.fields.keys():
            self.fields[name].widget = TextInput()
        if "handler" in self.fields:
            known = sorted({*registry.all_handlers(), self.instance.handler} - {""})
            names = [(name, name) for name in known]
            widget = Select(choices=names)
            self.fields["handler"] = forms.ChoiceField(choices=names, widget=widget)

    def clean_spread(self) -> float:
        return self.cleaned_data["spread"] or 0.0

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        handler = registry.find(cleaned.get("handler", ""))
        if handler is not None and handler.Payload is not None:
            try:
                payload = cleaned.get("payload", self.instance.payload)
                payloads.read(handler.Payload, payload or {})
            except InvalidPayload as error:
                if "payload" in self.fields:
                    self.add_error("payload", f"invalid payload for {handler.name}: {error}")
                else:
                    words = f"The payload is invalid for {handler.name}. To change it, you need"
                    self.add_error("handler", f"{words} the permission {VIEW_JOB_PAYLOAD}.")
        return cleaned


class EnabledFilter(filters.ChoiceFilter):
    title = parameter_name = "enabled"
    options = [("yes", "enabled"), ("no", "disabled"), ("retired", "no longer declared")]

    def narrow(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        if value == "retired":
            return queryset.filter(owner=OF_CODE, retired_at__isnull=False)
        return queryset.filter(enabled=value == "yes")


# One probe of an index for each row of a page.
_LAST_OUTCOMES = """
SELECT s.id, (SELECT l.outcome FROM tailrace_jobs_slot l WHERE l.schedule_id = s.id
              ORDER BY l.at DESC LIMIT 1)
FROM unnest(%(ids)s::bigint[]) AS s (id)
"""


@admin.register(Schedule)
class ScheduleAdmin(KeysetAdmin, ModelAdmin):
    """Schedules, which create jobs at regular times; the code sets those that it declares."""

    form = ScheduleForm
    list_display = ("name", "handler", "timing", "owner", "enabled", "next_run", "last_slot")
    list_filter = (EnabledFilter, filters.QueueFilter)
    search_fields = ("name", "owner")
    search_help_text = "start of a name or of an owner"
    change_form_outer_after_template = "tailrace/jobs/admin/schedule_slots.html"

    def find(self, request: HttpRequest, queryset: QuerySet[Any], term: str) -> QuerySet[Any]:
        return queryset.filter(Q(name__startswith=term) | Q(owner__startswith=term))

    def scans(self, params: dict[str, str]) -> bool:
        return bool({"enabled", "queue"} & params.keys())

    def complete(self, request: HttpRequest, rows: list[Any]) -> None:
        outcomes = dict(query(_LAST_OUTCOMES, ids=[row.pk for row in rows]))
        for row in rows:
            row.last_outcome = outcomes[row.pk]

    def get_fieldsets(self, request: HttpRequest, obj: Schedule | None = None) -> Any:
        shown = () if obj is None else ("owner", "next_run_at", "retired_at")
        payload = ("payload",) if request.user.has_perm(VIEW_JOB_PAYLOAD) else ()
        return (
            (None, {"fields": ("name", ("handler", "routing_key"), *payload, "enabled")}),
            ("Timing", {"fields": (*TIMING_FIELDS, "catch_up", *shown)}),
        )

    def get_readonly_fields(self, request: HttpRequest, obj: Schedule | None = None) -> Any:
        if obj is None:
            return ()
        return ("owner", "next_run_at", "retired_at", *(DECLARED if obj.owner == OF_CODE else ()))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        permitted = super().has_delete_permission(request, obj)
        return permitted and (obj is None or obj.owner != OF_CODE or obj.retired_at is not None)

    def get_actions(self, request: HttpRequest) -> Any:
        """Remove the action that deletes selected rows: it could delete declared schedules."""
        return {k: v for k, v in super().get_actions(request).items() if k != "delete_selected"}

    def save_model(self, request: HttpRequest, obj: Schedule, form: Any, change: bool) -> None:
        """Write only changed fields: the tick may change `next_run_at` at the same time."""
        if not change:
            obj.owner = request.user.get_username()
        if "enabled" in form.changed_data and obj.retired_at:
            obj.retired_at = None
            form.changed_data.append("retired_at")
        if {*TIMING, "name"} & {*form.changed_data}:  # the offset in the spread depends on the name
            now, before = database_now(), Schedule.objects.filter(pk=obj.pk).first()
            waits = before is None and obj.every_seconds is not None  # a new interval begins now
            obj.next_run_at = obj.slot_after(now) if waits else obj.first_slot(now, before)
            form.changed_data.append("next_run_at")
        obj.save(update_fields=form.changed_data if change else None)

    def page_context(self, request: HttpRequest, object_id: str) -> dict[str, Any]:
        id = row_id(object_id)
        slots = Slot.objects.filter(schedule=id).order_by("-at") if id else Slot.objects.none()
        shown = list(slots[:LAST_SLOTS])
        for slot in shown:
            hide_url_secrets(slot)
        return {"slots": shown}

    last_slot = rendering.column(
        "last slot", lambda row: row.last_outcome, label=OUTCOMES, empty_value="–"
    )

    @display(description="timing")
    def timing(self, schedule: Schedule) -> str:
        spread = f" + {duration(schedule.offset.total_seconds())}" if schedule.spread else ""
        if schedule.every_seconds is not None:
            return f"every {duration(schedule.every_seconds)}{spread}"
        return f"{schedule.cron} ({schedule.time_zone}){spread}"

    @display(description="next run")
    def next_run(self, schedule: Schedule) -> str:
        if schedule.retired_at:
            return f"no longer declared, {ago(schedule.retired_at)}"
        if not schedule.enabled:
            return "–"
        unknown = registry.find(schedule.handler) is None
        note = ", but this code does not have its handler" if unknown else ""
        return f"{ago(schedule.next_run_at)}{note}"


@admin.register(Slot)
class SlotAdmin(ReadOnlyAdmin, KeysetAdmin, ModelAdmin):
    """Slots, newest first: the times at which schedules should run, and the outcomes."""

    list_display = ("id", "schedule_link", "slot", "status", "reason", "job_link")
    list_filter = (filters.column_filter("outcome", lambda: Slot.Outcome.choices),)
    fields = ("schedule_link", "slot", "status", "reason", "job_link", "recorded")
    slot = rendering.time_column("at", "slot")
    recorded = rendering.time_column("recorded_at")
    status = rendering.column("outcome", lambda slot: slot.outcome, label=OUTCOMES)
    job_link = rendering.column("job", lambda slot: rendering.job_link(slot.job_id))

    def scans(self, params: dict[str, str]) -> bool:
        return "outcome" in params

    def complete(self, request: HttpRequest, rows: list[Any]) -> None:
        names = Schedule.objects.in_bulk([row.schedule_id for row in rows])
        for row in rows:
            row.schedule_name = getattr(names.get(row.schedule_id), "name", "")

    @display(description="schedule")
    def schedule_link(self, slot: Any) -> str:
        """Return the schedule's name, or its id if it was deleted."""
        if not hasattr(slot, "schedule_name"):
            self.complete(None, [slot])  # type: ignore[arg-type]
        if not slot.schedule_name:
            return f"{slot.schedule_id} (deleted)"
        return rendering.link("tailrace_jobs_schedule_change", slot.schedule_name, slot.schedule_id)
