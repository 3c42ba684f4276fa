"""The form on the page of a pending job: when it is due, and its priority."""

from datetime import datetime

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from tailrace.jobs.enqueue import Blocked
from tailrace.jobs.handler import LOWEST_PRIORITY
from tailrace.jobs.operations import batches
from tailrace.jobs.operations.reschedule import reschedule
from tailrace.jobs.platform.inspection.visibility import require
from tailrace.jobs.platform.requests.job_request import wrong_time

FORMAT = "%Y-%m-%dT%H:%M:%S"


class RescheduleForm(forms.Form):
    """A due time in UTC and a priority."""

    due_at = forms.DateTimeField(
        label="Due at (UTC)",
        widget=forms.DateTimeInput(
            {"type": "datetime-local", "step": "1", "class": "tr-input"}, format=FORMAT
        ),
    )
    priority = forms.TypedChoiceField(
        coerce=int,
        choices=[(str(number), str(number)) for number in range(LOWEST_PRIORITY + 1)],
        label="Priority (0 first)",
        widget=forms.Select({"class": "tr-input"}),
    )

    def clean_due_at(self) -> datetime:
        due_at: datetime = self.cleaned_data["due_at"]
        if wrong := wrong_time(due_at):
            raise forms.ValidationError(wrong)
        return due_at


def reschedule_view(request: HttpRequest, id: int) -> HttpResponse:
    """Change the due time and the priority of a pending job."""
    require(request, batches.PERMISSION)
    form = RescheduleForm(request.POST)
    if not form.is_valid():
        errors = " ".join(str(text) for texts in form.errors.values() for text in texts)
        messages.error(request, f"Job {id} was not changed: {errors}")
        return redirect("admin:tailrace_jobs_job_change", id)
    try:
        if reschedule(request.user, id, **form.cleaned_data):
            messages.success(request, f"Job {id} was rescheduled.")
        else:
            messages.warning(request, f"Job {id} was not changed: it is no longer queued.")
    except Blocked as error:
        messages.error(request, f"Job {id} was not changed: {error}.")
    return redirect("admin:tailrace_jobs_job_change", id)
