"""Run now: a form from a handler's payload model, which creates a job as the API does."""

import secrets
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from jobs.admin.payload_fields import PREFIX, WHOLE, fields_of, payload_of
from jobs.enqueue import Blocked
from jobs.handler import LOWEST_PRIORITY, Handler
from jobs.models import Queue
from jobs.requests import request_keys
from jobs.requests.errors import Fault, InvalidRequest, KeyInUse, KeyReused, NotPermitted
from jobs.requests.job_request import JobRequest, handler_for
from jobs.requests.request_job import Requested, request_job
from jobs.visibility import user_of

VIEW_JOB = "jobs.view_job"
KEY = "request_key"


class RunNowForm(forms.Form):
    """The payload of one handler's job, and the job's options."""

    due_at = forms.DateTimeField(
        required=False,
        label="Due at (UTC)",
        help_text="empty: now",
        widget=forms.DateTimeInput({"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
    )
    priority = forms.TypedChoiceField(required=False, coerce=int, empty_value=None)
    unique_key = forms.CharField(
        required=False,
        empty_value=None,
        help_text="While a job with this key has not begun, the new one is merged into it.",
        widget=UnfoldAdminTextInputWidget(),
    )
    lane = forms.CharField(required=False, widget=UnfoldAdminTextInputWidget())

    def __init__(self, handler: Handler, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.handler = handler
        self.fields["due_at"].widget.attrs["class"] = UnfoldAdminTextInputWidget().attrs["class"]
        priorities = [("", f"{handler.priority}, as the handler says")]
        priorities += [(str(number), str(number)) for number in range(LOWEST_PRIORITY + 1)]
        priority: Any = self.fields["priority"]
        priority.widget = UnfoldAdminSelectWidget()
        priority.choices = priorities
        if handler.Payload is not None:
            self.fields.update(fields_of(handler.Payload))

    @property
    def payload_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in self.fields if _is_of_payload(name)]

    @property
    def option_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in self.fields if not _is_of_payload(name)]

    def request(self) -> JobRequest:
        cleaned = self.cleaned_data
        takes = self.handler.Payload is not None
        return JobRequest(
            handler=self.handler.name,
            payload=payload_of(self.fields, cleaned) if takes else None,
            due_at=cleaned["due_at"],
            priority=cleaned["priority"],
            unique_key=cleaned["unique_key"],
            lane=cleaned["lane"],
        )

    def add_fault(self, fault: Fault) -> None:
        """Show what is wrong at the field that it is about."""
        name, *rest = fault.path or ("",)
        field, detail = str(name), fault.detail
        if name == "payload" and WHOLE not in self.fields and rest:
            field, *rest = f"{PREFIX}{rest[0]}", *rest[1:]
        if rest:
            detail = f"{' → '.join(map(str, rest))}: {detail}"
        self.add_error(field if field in self.fields else None, detail)


def _is_of_payload(name: str) -> bool:
    return name == WHOLE or name.startswith(PREFIX)


def run_now(request: HttpRequest, queue: str) -> HttpResponse:
    """Show the form of a handler, or create its job and show that."""
    handler = _handler(request, queue)
    form = RunNowForm(handler, request.POST if request.method == "POST" else None)
    if form.is_valid() and (requested := _request(request, form)):
        what = "created" if requested.is_new else "there already: nothing was created"
        messages.success(request, f"Job {requested.id} of {handler.name} is {what}.")
        if request.user.has_perm(VIEW_JOB):
            return redirect("admin:jobs_job_change", requested.id)
        return redirect("admin:jobs_queue_run", handler.name)
    context = {
        **admin.site.each_context(request),
        "title": f"Run {handler.name} now",
        "opts": Queue._meta,
        "handler": handler,
        "form": form,
        "key_name": KEY,
        "key": secrets.token_urlsafe(16),
        "queue_url": reverse("admin:jobs_queue_change", args=[handler.name]),
    }
    status = 422 if form.is_bound else 200
    return render(request, "jobs/admin/run_now.html", context, status=status)


def may_run(request: HttpRequest, name: str) -> bool:
    """Return whether the user may request jobs of this handler."""
    try:
        return handler_for(user_of(request), name) is not None
    except (InvalidRequest, NotPermitted):
        return False


def _handler(request: HttpRequest, name: str) -> Handler:
    try:
        return handler_for(user_of(request), name)
    except InvalidRequest as error:
        raise Http404(str(error)) from None
    except NotPermitted as error:
        raise PermissionDenied(str(error)) from None


def _request(request: HttpRequest, form: RunNowForm) -> Requested | None:
    """Create the job; None, with the errors in the form, if that is not possible.

    The form has a key of its own, so that a second click creates no second job.
    """
    key = request.POST.get(KEY, "")[: request_keys.MAX_LENGTH]
    try:
        return request_job(user_of(request), form.request(), key)
    except InvalidRequest as error:
        for fault in error.faults:
            form.add_fault(fault)
    except KeyReused:
        form.add_error(None, "This form has created a job before; send it again for another.")
    except (KeyInUse, Blocked) as error:
        form.add_error(None, f"{error}.")
    return None
