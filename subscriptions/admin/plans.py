"""The admin of plans and their jobs."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.admin import TabularInline
from unfold.decorators import display
from unfold.widgets import UnfoldAdminTextInputWidget

from tailrace.jobs.platform.admin.base import ModelAdmin
from tailrace.jobs.platform.admin.lists.several import filter_in_words
from tailrace.jobs.runtime import audit
from tailrace.subscriptions.models import Plan, PlanJob
from tailrace.subscriptions.plans import installed, rewrite

MAX_JOBS = 50


class PlanForm(forms.ModelForm):
    class Meta:
        model = Plan
        fields = ("name", "monitoring")
        widgets = {"name": UnfoldAdminTextInputWidget()}


class PlanJobForm(forms.ModelForm):
    class Meta:
        model = PlanJob
        fields = ("handler", "frequency")
        widgets = {"handler": UnfoldAdminTextInputWidget()}

    def clean_handler(self) -> str:
        """Refuse a handler that takes no account. An unknown handler may be installed later."""
        handler: str = self.cleaned_data["handler"].strip()
        if problem := installed.problem(handler):
            raise ValidationError(f"A plan cannot have this handler: {problem}")
        return handler


class PlanJobInline(TabularInline):
    model = PlanJob
    form = PlanJobForm
    fields = ("handler", "frequency", "schedules")
    readonly_fields = ("schedules",)
    extra = 0
    max_num = MAX_JOBS

    @display(description="schedules", label={"made": "success", "handler not installed": "warning"})
    def schedules(self, job: PlanJob) -> str:
        return "made" if job.installed else "handler not installed"


@admin.register(Plan)
class PlanAdmin(ModelAdmin):
    """When a plan's jobs are edited, a job rewrites the schedules of its subscriptions."""

    form = PlanForm
    list_display = ("name", "monitoring", "table", "not_installed", "state")
    sortable_by = ()
    ordering = ("pk",)
    inlines = (PlanJobInline,)
    actions = ("rewrite_schedules",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Plan]:
        return super().get_queryset(request).prefetch_related("jobs")

    def get_actions(self, request: HttpRequest) -> Any:
        """Remove the action that deletes: a plan with subscriptions cannot be deleted."""
        return {k: v for k, v in super().get_actions(request).items() if k != "delete_selected"}

    def save_model(self, request: HttpRequest, obj: Plan, form: Any, change: bool) -> None:
        """Save only changed fields, since a job may update `rewrite_after` at the same time."""
        obj.save(update_fields=form.changed_data if change else None)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        if change and any(formset.has_changed() for formset in formsets):
            rewrite.begin([form.instance.pk])
            messages.info(request, "A job rewrites the schedules of the plan's subscriptions.")
        super().save_related(request, form, formsets, change)

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        for job in formset.save(commit=False):
            job.installed = installed.is_installed(job.handler)
        formset.save()

    @admin.action(description="Rewrite the schedules of all subscriptions", permissions=["change"])
    def rewrite_schedules(self, request: HttpRequest, plans: QuerySet[Plan]) -> None:
        """Enqueue jobs that correct the schedules of all subscriptions to these plans."""
        with transaction.atomic():
            names = [(plan.pk, plan.name) for plan in plans]
            rewrite.begin([pk for pk, _name in names])
            chosen_by = filter_in_words(request)
            audit.record(request.user, Plan, "schedules rewritten", names, chosen_by)
        messages.success(request, "A job rewrites the schedules.")

    @display(description="jobs")
    def table(self, plan: Plan) -> str:
        return ", ".join(str(job) for job in plan.jobs.all()) or "–"

    @display(description="not installed")
    def not_installed(self, plan: Plan) -> str:
        return ", ".join(job.handler for job in plan.jobs.all() if not job.installed) or "–"

    @display(description="schedules", label={"up to date": "success", "being rewritten": "info"})
    def state(self, plan: Plan) -> str:
        return "up to date" if plan.rewrite_after is None else "being rewritten"
