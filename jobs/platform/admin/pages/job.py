"""The page of a job: an explanation of its state, its error, payload, time and attempts."""

from datetime import datetime
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse

from tailrace.db.query import database_now
from tailrace.db.row_ids import row_id
from tailrace.jobs.enqueue import Blocked
from tailrace.jobs.handler import LOWEST_PRIORITY
from tailrace.jobs.models import Attempt, Job
from tailrace.jobs.operations import batches
from tailrace.jobs.operations.reschedule import reschedule
from tailrace.jobs.platform.admin import rendering
from tailrace.jobs.platform.admin.pages.job_log import shown_log
from tailrace.jobs.platform.admin.pages.run_now import AGAIN, may_copy
from tailrace.jobs.platform.inspection import visibility
from tailrace.jobs.platform.inspection.details import relatives
from tailrace.jobs.platform.inspection.details.failures import neighbours
from tailrace.jobs.platform.inspection.details.waterfall import waterfall
from tailrace.jobs.platform.inspection.display.formatting import state_label
from tailrace.jobs.platform.inspection.explain.explanation import JobNotFound, explain
from tailrace.jobs.platform.requests.copies import copies_of
from tailrace.jobs.platform.requests.job_request import wrong_time
from tailrace.jobs.runtime.states import LIVE, State

MAX_ATTEMPTS = 100


class RescheduleForm(forms.Form):
    due_at = forms.DateTimeField(
        label="Due at (UTC)",
        widget=forms.DateTimeInput(
            {"type": "datetime-local", "step": "1", "class": "tr-input"}, format="%Y-%m-%dT%H:%M:%S"
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


def page_of(request: HttpRequest, object_id: str) -> dict[str, Any]:
    """Return the template context of a job's page, masked for the user; empty if there is no such
    job."""
    id = row_id(object_id)
    job = None if id is None else Job.objects.filter(pk=id).first()
    if job is None:
        return {}
    user, now = visibility.user_of(request), database_now()
    try:
        explanation = explain(job.pk, user)
    except JobNotFound:
        return {}
    attempts = list(Attempt.objects.filter(job=job.pk).order_by("-claim_no")[:MAX_ATTEMPTS])
    hidden = bool(visibility.mask_jobs(user, [job]))
    visibility.mask_attempts(user, attempts, hidden)
    sees_payload = user.has_perm(visibility.VIEW_JOB_PAYLOAD)
    return {
        "job": job,
        "explanation": explanation,
        "error_class": _error_class(job, attempts),
        "sees_payload": sees_payload,
        "payload": rendering.json_block(job.payload) if sees_payload and job.payload else "",
        "result": rendering.json_block(job.result) if sees_payload and job.result else "",
        "waterfall": waterfall(job, explanation.spans, now),
        "attempts": attempts,
        "alike": neighbours(job),
        "parents": relatives.parents(user, job),
        "children": relatives.children(user, job),
        "buttons": _buttons(request, job),
        "reschedule": _reschedule_form(request, job),
        "run_again": _run_again(request, job),
        "copies": copies_of(job.pk),
        "log": shown_log(request, job) if sees_payload and not hidden else None,
    } | live_part(job)


def live_view(request: HttpRequest, id: int) -> HttpResponse:
    """Return the state and the progress of a job: the part of its page that is polled."""
    visibility.require(request, visibility.VIEW_JOB)
    job = get_object_or_404(Job.objects.defer("payload", "result"), pk=id)
    visibility.mask_jobs(visibility.user_of(request), [job])
    shown = request.GET.get("shown", "")
    return render(request, "tailrace/jobs/admin/job/live.html", live_part(job, shown))


def live_part(job: Job, shown: str = "") -> dict[str, Any]:
    """Return the context of the polled part; `shown` is the state that the rest of the page has."""
    state = state_label(job)
    return {
        "job": job,
        "shown_state": shown or state,
        "is_stale": bool(shown) and shown != state,
        "is_live": job.state in LIVE,
        "share": rendering.progress(job),
    }


def _error_class(job: Job, attempts: list[Attempt]) -> str:
    """Return the class of the job's current error, or an empty string."""
    if not job.error or not attempts or attempts[0].claim_no != job.claim_no:
        return ""
    return attempts[0].error_class


def _buttons(request: HttpRequest, job: Job) -> list[tuple[batches.JobAction, str]]:
    if not request.user.has_perm(batches.PERMISSION):
        return []
    return [
        (action, reverse(f"admin:tailrace_jobs_job_{action.name}", args=[job.pk]))
        for action in batches.JOB_ACTIONS.values()
        if job.state in action.states
    ]


def _run_again(request: HttpRequest, job: Job) -> str:
    """Return the URL of the form that runs the job again; empty if the user may not do that."""
    if not may_copy(request, job):
        return ""
    address = reverse("admin:tailrace_jobs_queue_run", args=[job.handler])
    return f"{address}?{AGAIN}={job.pk}"


def _reschedule_form(request: HttpRequest, job: Job) -> RescheduleForm | None:
    if job.state != State.PENDING or not request.user.has_perm(batches.PERMISSION):
        return None
    return RescheduleForm(initial={"due_at": job.due_at, "priority": job.priority})


def reschedule_view(request: HttpRequest, id: int) -> HttpResponse:
    """Change the due time and the priority of a pending job."""
    visibility.require(request, batches.PERMISSION)
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
