"""The admin of failures: groups of similar failed jobs, which can be assigned and silenced."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.core.paginator import Paginator
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.html import format_html

from tailrace.db import clock
from tailrace.jobs.models import FailureGroup, Job, Replay
from tailrace.jobs.operations import batches
from tailrace.jobs.platform.admin import rendering
from tailrace.jobs.platform.admin.base import ModelAdmin
from tailrace.jobs.platform.admin.lists import filters
from tailrace.jobs.platform.admin.theme import Select, Textarea, TextInput, display
from tailrace.jobs.platform.inspection import visibility
from tailrace.jobs.platform.inspection.details.failures import (
    MAX_COUNTED,
    failed_now,
    per_hour,
    readable,
)
from tailrace.jobs.platform.inspection.display.formatting import capped, timestamp
from tailrace.jobs.platform.pages.charts import sparkline

MOST = 1_000
"""The maximum number of groups in the list; filters lead to other groups."""
MAX_LATEST = 10
MAX_STAFF = 200
LONGEST_SILENCE = timedelta(days=366)
HOURS_OF_LIST, HOURS_OF_PAGE = 24, 7 * 24


class CappedPaginator(Paginator):
    """A paginator over at most MOST rows, so that the table is not counted."""

    @cached_property
    def count(self) -> int:
        rows: Any = self.object_list
        return len(rows.order_by().values_list("pk")[:MOST])


class FailureChangeList(ChangeList):
    """A page of groups with their counts, which are read by a few statements."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        groups: list[Any] = list(self.result_list)
        complete(visibility.user_of(request), groups, HOURS_OF_LIST)
        self.result_list = groups
        if not self.params:  # else the page offers to show all rows, although it does
            self.full_result_count = self.result_count


def complete(user: User, groups: list[Any], hours: int) -> None:
    """Set `failed_now`, `per_hour` and `is_masked` of the groups; clear messages that the user may
    not read."""
    ids = [group.pk for group in groups]
    failed, counts = failed_now(ids), per_hour(ids, hours)
    may_read = readable(user, groups)
    for group in groups:
        group.failed_now = failed.get(group.pk, 0)
        group.per_hour = counts[group.pk]
        group.is_masked = group.pk not in may_read
        if group.is_masked:
            group.message = ""


class SilenceFilter(filters.ChoiceFilter):
    """Filter by silenced; the default leaves out silenced groups."""

    title = parameter_name = "silenced"
    options = [("yes", "silenced"), ("any", "both")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        is_silenced = Q(silenced_until__gt=clock.now())
        match self.value():
            case None | "":
                return queryset.exclude(is_silenced & Q(silenced_until__isnull=False))
            case "yes":
                return queryset.filter(is_silenced)
            case "any":
                return queryset
        return queryset.none()

    def choices(self, changelist: Any) -> Iterator[Any]:
        first, *others = super().choices(changelist)
        yield {**first, "display": "not silenced"}
        yield from others


class AssigneeFilter(filters.ChoiceFilter):
    title = parameter_name = "assigned"
    options = [("me", "to me"), ("nobody", "to nobody")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        self.user = request.user
        return super().queryset(request, queryset)

    def narrow(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        return queryset.filter(assignee=self.user if value == "me" else None)


class FailedFilter(filters.ChoiceFilter):
    title = parameter_name = "jobs"
    options = [("failed", "failed now")]

    def narrow(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        return queryset.filter(Exists(Job.objects.failed().filter(failure_group=OuterRef("pk"))))


def _assignees(assignee: Any) -> QuerySet[Any]:
    """Return the active staff, and the assignee in any case. In another project, both may be
    properties of its user model instead of fields: then all users may look after a failure."""
    model = get_user_model()
    fields = {field.name for field in model._meta.fields}
    staff = {name: True for name in ("is_staff", "is_active") if name in fields}
    users = model._default_manager.filter(**staff).order_by(model.USERNAME_FIELD)
    ids = [*users.values_list("pk", flat=True)[:MAX_STAFF], assignee]
    return model._default_manager.filter(pk__in=[id for id in ids if id is not None])


class FailureForm(forms.ModelForm):
    silenced_until = forms.DateTimeField(
        required=False,
        label="Silence until (UTC)",
        help_text="Until then, failures of this group are logged and counted separately, without"
        " alerts.",
        widget=TextInput({"placeholder": "2026-12-24 18:00", "autocomplete": "off"}),
        error_messages={"invalid": "Enter a time in UTC, such as 2026-12-24 18:00."},
    )
    note = forms.CharField(required=False, max_length=4000, widget=Textarea({"rows": 4}))

    class Meta:
        model = FailureGroup
        fields = ("assignee", "silenced_until", "note")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "assignee" in self.fields:
            self.fields["assignee"] = forms.ModelChoiceField(
                _assignees(self.instance.assignee_id),
                required=False,
                widget=Select(),
                empty_label="nobody",
            )

    def clean_silenced_until(self) -> Any:
        until = self.cleaned_data["silenced_until"]
        if until is None or until == self.instance.silenced_until:
            return until
        if not clock.now() < until <= clock.now() + LONGEST_SILENCE:
            raise forms.ValidationError("Enter a time from now to a year ahead.")
        return until


@admin.register(FailureGroup)
class FailureAdmin(ModelAdmin):
    """Groups of similar failed jobs, latest failure first. Search by class, frame or message."""

    form = FailureForm
    list_display = ("what", "queue", "failed", "attempts", "trend", "last", "first", "who")
    list_filter = (FailedFilter, filters.QueueFilter, SilenceFilter, AssigneeFilter)
    quick_filters = ("jobs", "silenced", "assigned")
    search_fields = ("error_class", "frame")
    search_help_text = "class, function or message"
    ordering = ("-last_seen_at",)
    list_per_page = 50
    list_max_show_all = 0
    show_full_result_count = False
    list_select_related = ("assignee",)
    actions = None
    paginator = CappedPaginator
    change_form_outer_before_template = "tailrace/jobs/admin/failure/top.html"
    change_form_outer_after_template = "tailrace/jobs/admin/failure/jobs.html"
    fieldsets = ((None, {"fields": ("assignee", "silenced_until", "note")}),)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    has_delete_permission = has_add_permission

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[FailureChangeList]:
        return FailureChangeList

    def find(self, request: HttpRequest, queryset: QuerySet[Any], term: str) -> QuerySet[Any]:
        term = term[:200]
        if "\0" in term:
            return queryset.none()
        plain = Q(error_class__icontains=term) | Q(frame__icontains=term)
        user = visibility.user_of(request)
        if not user.has_perm(visibility.VIEW_JOB_PAYLOAD):
            return queryset.filter(plain)
        rows = queryset.filter(message__icontains=term).order_by("-last_seen_at")
        return queryset.filter(plain | Q(pk__in=readable(user, rows[:MOST])))

    def complete_page(self, request: HttpRequest, row: Any) -> None:
        complete(visibility.user_of(request), [row], HOURS_OF_PAGE)

    # Columns

    queue = rendering.column("queue", lambda group: group.handler)
    attempts = rendering.column("attempts", lambda row: f"{row.failures:,}", ordering="failures")
    trend = rendering.column("last 24 h", lambda group: trend(group.per_hour, "24 hours"))
    last = rendering.time_column("last_seen_at", "last", ordering="last_seen_at")
    first = rendering.time_column("first_seen_at", "first", ordering="first_seen_at")

    @display(description="failure")
    def what(self, group: Any) -> Any:
        return format_html(
            '<strong>{}</strong><br><span class="tr-break">{}</span><br>'
            '<span class="tr-quiet tr-break">{}</span>',
            group.error_class.rpartition(".")[2] or "failed",
            group.message[:160] or ("" if not group.is_masked else "message not shown"),
            group.frame,
        )

    @display(description="failed now")
    def failed(self, group: Any) -> Any:
        if not group.failed_now:
            return "0"
        number = capped(group.failed_now, MAX_COUNTED)
        return format_html('<a class="tr-link" href="{}">{}</a>', jobs_of(group), number)

    @display(description="assigned to")
    def who(self, group: FailureGroup) -> str:
        name = group.assignee.get_username() if group.assignee else "–"
        if group.silenced_until and group.silenced_until > clock.now():
            return f"{name}, silenced until {timestamp(group.silenced_until)}"
        return name

    # The page of a group

    def page_context(self, request: HttpRequest, object_id: str) -> dict[str, Any]:
        """Return the trend, the latest jobs, and the URL of a replay of all failed jobs."""
        if (group := self.get_object(request, object_id)) is None:
            return {}
        user = visibility.user_of(request)
        sees_jobs = user.has_perm(visibility.VIEW_JOB)
        rows = Job.objects.failed().filter(failure_group=group.pk).defer("payload", "result")
        jobs = list(rows.order_by("-pk")[:MAX_LATEST]) if sees_jobs else []
        visibility.mask_jobs(user, jobs)
        context: dict[str, Any] = {
            "trend": trend(group.per_hour, "7 days"),
            "failed_jobs": jobs,
            "failed_address": jobs_of(group),
        }
        if sees_jobs and user.has_perm(batches.PERMISSION) and group.failed_now:
            address = reverse("admin:tailrace_jobs_job_all", args=["replay"])
            replays = Replay.objects.filter(what__contains=f"failure = {group.pk}")
            context["replay_address"] = f"{address}?state=failed&failure={group.pk}"
            context["replays"] = replays.order_by("-pk")[:3]
        return context

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Write only changed fields: workers update the counts at the same time."""
        if form.changed_data:
            obj.save(update_fields=form.changed_data)

    def construct_change_message(
        self, request: HttpRequest, form: Any, formsets: Any, add: bool = False
    ) -> str:
        """Return the changes with their values, for the audit log."""
        group, changes = form.instance, []
        if "assignee" in form.changed_data:
            changes.append(f"assigned to {group.assignee or 'nobody'}")
        if "silenced_until" in form.changed_data:
            until = group.silenced_until
            changes.append(f"silenced until {timestamp(until)}" if until else "not silenced")
        if "note" in form.changed_data:
            changes.append("note changed")
        return "; ".join(changes) or "nothing changed"


def jobs_of(group: FailureGroup) -> str:
    return f"{reverse('admin:tailrace_jobs_job_changelist')}?state=failed&failure={group.pk}"


def trend(per_hour: list[int], period: str) -> str:
    """Return a sparkline of the failures per hour as HTML, with a text alternative."""
    context = {
        "line": sparkline(per_hour),
        "text": f"{sum(per_hour):,} in {period}, at most {max(per_hour):,} in an hour",
    }
    return render_to_string("tailrace/jobs/admin/sparkline.html", context)
