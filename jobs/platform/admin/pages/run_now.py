"""Run now: a form built from a handler's payload model, which creates a job like the API."""

import secrets
from collections.abc import Callable
from typing import Any, TypeVar

from django import forms
from django.contrib import messages
from django.contrib.admin import AdminSite
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from tailrace.db.row_ids import row_id
from tailrace.environment.suggest import did_you_mean
from tailrace.jobs.engine import registry
from tailrace.jobs.enqueue import Blocked
from tailrace.jobs.handler import LOWEST_PRIORITY, Handler
from tailrace.jobs.models import Job, Queue
from tailrace.jobs.platform.admin import theme
from tailrace.jobs.platform.admin.pages import payload_fields
from tailrace.jobs.platform.inspection.visibility import VIEW_JOB, user_of
from tailrace.jobs.platform.requests import errors, request_keys
from tailrace.jobs.platform.requests.copies import job_to_copy, lane_of_copy
from tailrace.jobs.platform.requests.job_request import JobRequest, handler_for
from tailrace.jobs.platform.requests.request_job import Requested, request_job
from tailrace.jobs.runtime.payloads import strict_model

S = TypeVar("S")
T = TypeVar("T")
KEY = "request_key"
AGAIN = "again"
"""The query parameter with the id of a job to run again."""


class RunNowForm(forms.Form):
    due_at = forms.DateTimeField(
        required=False,
        label="Due at (UTC)",
        help_text="If empty: now.",
        widget=forms.DateTimeInput({"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
    )
    priority = forms.TypedChoiceField(required=False, coerce=int, empty_value=None)
    unique_key = forms.CharField(
        required=False,
        empty_value=None,
        help_text="If a job with this key has not started yet, the new job is merged into it.",
        widget=theme.TextInput(),
    )
    lane = forms.CharField(required=False, widget=theme.TextInput())

    def __init__(
        self, handler: Handler, *args: Any, copy_of: Job | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.handler, self.copy_of = handler, copy_of
        self.fields["due_at"].widget.attrs["class"] = theme.TextInput().attrs["class"]
        priorities = [("", f"{handler.priority}, the handler's default")]
        priorities += [(str(number), str(number)) for number in range(LOWEST_PRIORITY + 1)]
        priority: Any = self.fields["priority"]
        priority.widget = theme.Select()
        priority.choices = priorities
        if handler.Payload is not None:
            self.fields.update(payload_fields.fields_of(strict_model(handler.Payload)))
        if copy_of is not None:
            payload_fields.fill(self.fields, copy_of.payload)
            self.initial.update(priority=copy_of.priority, lane=lane_of_copy(copy_of))

    @property
    def payload_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in self.fields if _is_of_payload(name)]

    @property
    def option_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in self.fields if not _is_of_payload(name)]

    def clean(self) -> dict[str, Any]:
        """Refuse unknown payload fields, e.g. from a page that was loaded before a deployment."""
        for name in self.data:
            if name.startswith(payload_fields.PREFIX) and name not in self.fields:
                known = [field.removeprefix(payload_fields.PREFIX) for field in self.fields]
                key = name.removeprefix(payload_fields.PREFIX)
                detail = f"{self.handler.name} takes no {key!r}{did_you_mean(key, known)}"
                self.add_error(None, detail)
        return super().clean() or {}

    def request(self) -> JobRequest:
        cleaned = self.cleaned_data
        takes = self.handler.Payload is not None
        return JobRequest(
            handler=self.handler.name,
            payload=payload_fields.payload_of(self.fields, cleaned) if takes else None,
            due_at=cleaned["due_at"],
            priority=cleaned["priority"],
            unique_key=cleaned["unique_key"],
            lane=cleaned["lane"],
            copy_of=self.copy_of.pk if self.copy_of else None,
        )

    def add_fault(self, fault: errors.Fault) -> None:
        """Add the error to the field that it is about."""
        name, *rest = fault.path or ("",)
        field, detail = str(name), fault.detail
        if name == "payload" and payload_fields.WHOLE not in self.fields and rest:
            field, *rest = f"{payload_fields.PREFIX}{rest[0]}", *rest[1:]
        if rest:
            detail = f"{' → '.join(map(str, rest))}: {detail}"
        self.add_error(field if field in self.fields else None, detail)


def _is_of_payload(name: str) -> bool:
    return name == payload_fields.WHOLE or name.startswith(payload_fields.PREFIX)


def run_now(request: HttpRequest, queue: str, site: AdminSite) -> HttpResponse:
    """Show the form of a handler; on POST, create the job and redirect to its page."""
    copy_of = _copied(request, queue)
    handler = registry.get(queue) if copy_of else _or_status(handler_for, request, queue)
    data = request.POST if request.method == "POST" else None
    form = RunNowForm(handler, data, copy_of=copy_of)
    if form.is_valid() and (requested := _request(request, form)):
        text = f"Job {requested.id} of {handler.name} was created."
        if not requested.is_new:
            text = f"Job {requested.id} of {handler.name} already exists: no job was created."
        messages.success(request, text)
        if request.user.has_perm(VIEW_JOB):
            return redirect("admin:tailrace_jobs_job_change", requested.id)
        return redirect("admin:tailrace_jobs_queue_run", handler.name)
    context = {
        "title": f"Run job {copy_of.pk} again" if copy_of else f"Run {handler.name} now",
        "copy_of": copy_of,
        "opts": Queue._meta,
        "handler": handler,
        "form": form,
        "field_template": theme.FIELD,
        "key_name": KEY,
        "key": secrets.token_urlsafe(16),
        "queue_url": reverse("admin:tailrace_jobs_queue_change", args=[handler.name]),
    }
    status = 422 if form.is_bound else 200
    return theme.page(site, request, theme.template("run_now"), context, status)


def may_run(request: HttpRequest, name: str) -> bool:
    return _succeeds(handler_for, user_of(request), name)


def may_copy(request: HttpRequest, job: Job) -> bool:
    return _succeeds(job_to_copy, user_of(request), job.pk)


def _succeeds(check: Callable[[User, Any], Any], user: User, subject: Any) -> bool:
    try:
        check(user, subject)
    except (errors.InvalidRequest, errors.NotPermitted):
        return False
    return True


def _or_status(check: Callable[[User, S], T], request: HttpRequest, subject: S) -> T:
    """Return the result of the check; its errors become the statuses 404 and 403."""
    try:
        return check(user_of(request), subject)
    except errors.InvalidRequest as error:
        raise Http404(str(error)) from None
    except errors.NotPermitted as error:
        raise PermissionDenied(str(error)) from None


def _copied(request: HttpRequest, queue: str) -> Job | None:
    """Return the job to run again, from the query string; None if there is none."""
    if not (text := request.GET.get(AGAIN, "")):
        return None
    id = row_id(text)
    if id is None:
        raise Http404("there is no such job")
    job = _or_status(job_to_copy, request, id)
    if job.handler != queue:
        raise Http404(f"job {job.pk} does not belong to the queue {queue}")
    return job


def _request(request: HttpRequest, form: RunNowForm) -> Requested | None:
    """Create the job; on errors, add them to the form and return None. Each form has its own
    request key, so that a second click creates no second job."""
    key = request.POST.get(KEY, "")[: request_keys.MAX_LENGTH]
    try:
        return request_job(user_of(request), form.request(), key)
    except errors.InvalidRequest as error:
        for fault in error.faults:
            form.add_fault(fault)
    except errors.KeyReused:
        form.add_error(
            None, "This form has already created a job. Submit it again to create another one."
        )
    except (errors.KeyInUse, Blocked) as error:
        form.add_error(None, f"{error}.")
    return None
