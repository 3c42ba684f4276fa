"""The pages of a user's webhook endpoints and their messages."""

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone

from tailrace.events.catalog.topics import topic_names
from tailrace.events.types import get_type
from tailrace.jobs.runtime.states import LIVE
from tailrace.subscriptions.channels.webhook.history import message_list, recovery
from tailrace.subscriptions.channels.webhook.history import messages as endpoint_messages
from tailrace.subscriptions.channels.webhook.message import body_of_sample
from tailrace.subscriptions.channels.webhook.operations import endpoints, filters
from tailrace.subscriptions.channels.webhook.operations.errors import EndpointError, FilterError
from tailrace.subscriptions.channels.webhook.snippets import snippets
from tailrace.subscriptions.models import Endpoint
from tailrace.web.accounts import budget
from tailrace.web.pages.confirmation import confirmed
from tailrace.web.pages.forms import PageForm, call_with_message, sentence
from tailrace.web.pages.frame import PersonRequest, person_page, show

PAGE = 30
STATE_CHANGES: dict[str, tuple[Callable[..., None], str]] = {
    "pause": (endpoints.pause, "Paused. Deliveries wait until you resume the endpoint."),
    "resume": (endpoints.resume, "Resumed. Waiting deliveries are sent first."),
    "enable": (endpoints.enable, "Enabled. Events are sent to the endpoint again."),
    "confirm": (
        endpoints.confirm,
        "A challenge is being sent to the address. Reload this page to see the result.",
    ),
}


class EndpointForm(PageForm, forms.Form):
    url = forms.CharField(
        label="Address",
        max_length=2000,
        widget=forms.TextInput({"type": "url", "autocomplete": "off", "spellcheck": "false"}),
        help_text="The URL (https://…) to which each event is sent by POST.",
    )
    description = forms.CharField(
        required=False, max_length=500, help_text="A name by which you recognise it."
    )


class SettingsForm(EndpointForm):
    event_types = forms.CharField(
        required=False,
        max_length=5000,
        widget=forms.Textarea({"rows": "4", "autocomplete": "off", "spellcheck": "false"}),
        help_text="The event types (such as builds.build_fail) or families (such as builds.build)"
        " to send, one per line. Empty: all that you are subscribed to by the channel webhook.",
    )
    subject_pattern = forms.CharField(
        label="Only these subjects",
        required=False,
        max_length=filters.MAX_PATTERN,
        widget=forms.TextInput({"autocomplete": "off", "spellcheck": "false"}),
        help_text="For example devel:*, where * stands for any text. Empty: all subjects.",
    )


class RecoverForm(PageForm, forms.Form):
    what = forms.ChoiceField(
        label="What to send again",
        choices=[
            ("failed", "Messages that failed, were cancelled or skipped"),
            ("missing", "Events without a message, by your current subscriptions and the filter"),
        ],
        widget=forms.RadioSelect,
        initial="failed",
    )
    since = forms.DateTimeField(
        label="Since",
        widget=forms.DateTimeInput({"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
        help_text="In your time zone.",
    )


@person_page("GET", "HEAD", "POST")
@confirmed
def my_endpoints(request: PersonRequest) -> HttpResponse:
    """GET: list the endpoints. POST: add an endpoint, and show its secret once."""
    if request.method != "POST":
        return _show_list(request, EndpointForm())
    form = EndpointForm(request.POST)
    if form.is_valid():
        values = form.cleaned_data
        try:
            endpoint, secret = endpoints.create(request.user, values["url"], values["description"])
        except EndpointError as error:
            form.add_error("url", str(error))
        else:
            return _show_list(request, EndpointForm(), new_endpoint=endpoint, secret=secret)
    return _show_list(request, form, status=422)


@person_page("GET")
def my_endpoint(request: PersonRequest, id: int) -> HttpResponse:
    """Show an endpoint and its messages, newest first. With `?after=`, the id of a message, show
    only older messages; with `?list=`, only waiting, delivered or failed messages."""
    return _show_one(request, _find(request, id))


@person_page("GET", "HEAD", "POST")
def change_settings(request: PersonRequest, id: int) -> HttpResponse:
    """GET: show address and filter. POST: change them."""
    endpoint = _find(request, id)
    initial = {
        "url": endpoint.url,
        "description": endpoint.description,
        "event_types": "\n".join(endpoint.event_types),
        "subject_pattern": endpoint.subject_pattern,
    }
    form = SettingsForm(request.POST if request.method == "POST" else None, initial=initial)
    if form.is_valid():
        values = form.cleaned_data | {"event_types": form.cleaned_data["event_types"].split()}
        try:
            endpoints.change(endpoint, **values)
        except FilterError as error:
            form.add_error(error.field, str(error))
        else:
            messages.success(request, "Saved.")
            return redirect("my_endpoint_settings", endpoint.pk)
    topics = sorted({name for cls in filters.sent_types() for name in topic_names(cls)})
    return _show_tab(
        request, endpoint, "settings", {"form": form, "topics": topics}, 422 if form.errors else 200
    )


@person_page("GET")
def testing(request: PersonRequest, id: int) -> HttpResponse:
    """Show a sample of the event type `?type=`, and code to verify messages."""
    types = [cls.name for cls in filters.sent_types()]
    chosen = request.GET.get("type", types[0] if types else "")
    if chosen and chosen not in types:
        raise Http404
    sample = json.loads(body_of_sample(get_type(chosen))) if chosen else {}
    context = {
        "types": types,
        "type": chosen,
        "sample": json.dumps(sample, indent=2, ensure_ascii=False),
        "snippets": snippets(),
    }
    return _show_tab(request, _find(request, id), "testing", context)


@person_page("GET", "HEAD", "POST")
def recover(request: PersonRequest, id: int) -> HttpResponse:
    """GET: show the latest recoveries. POST: start a recovery."""
    endpoint = _find(request, id)
    form = RecoverForm(
        request.POST if request.method == "POST" else None,
        initial={"since": timezone.localtime() - timedelta(days=1)},
    )
    if form.is_valid():
        budget.spend(request.user.pk, cost=recovery.COST)
        values = form.cleaned_data
        try:
            recovery.start(endpoint, values["what"], values["since"], request.user)
        except EndpointError as error:
            form.add_error(None, sentence(error))
        else:
            messages.success(request, "Started. Its progress is shown below.")
            return redirect("my_endpoint_recover", endpoint.pk)
    jobs = list(recovery.latest(endpoint))
    recoveries = [
        {"job": job, "since": datetime.fromisoformat((job.payload or {})["since"])} for job in jobs
    ]
    context = {
        "form": form,
        "recoveries": recoveries,
        "under_way": any(job.state in LIVE for job in jobs),
        "limit": recovery.MAX_EXAMINED,
    }
    return _show_tab(request, endpoint, "recover", context, 422 if form.errors else 200)


@person_page("GET")
def message(request: PersonRequest, id: int, job: int) -> HttpResponse:
    """Show one message: its body, its state and its tries."""
    endpoint = _find(request, id)
    row = _find_message(endpoint, job)
    context = {"message": row, "body": endpoint_messages.body(endpoint, row)}
    return _show_tab(request, endpoint, "message", context)


@person_page("POST")
def resend(request: PersonRequest, id: int, job: int) -> HttpResponse:
    """Send a message again."""
    endpoint = _find(request, id)
    row = _find_message(endpoint, job)
    again = partial(endpoint_messages.resend, endpoint, row, request.user)
    call_with_message(request, f"{row.message_id} will be sent again.", EndpointError, again)
    return redirect("my_endpoint", endpoint.pk)


@person_page("POST")
def change_state(request: PersonRequest, id: int, action: str) -> HttpResponse:
    """Pause, resume, enable or confirm an endpoint."""
    endpoint = _find(request, id)
    change, done = STATE_CHANGES[action]
    call_with_message(request, done, EndpointError, lambda: change(endpoint, request.user.username))
    return redirect("my_endpoint", endpoint.pk)


@person_page("POST")
def test(request: PersonRequest, id: int) -> HttpResponse:
    """Send a test delivery. Its result will be the newest message of the endpoint."""
    endpoint = _find(request, id)
    budget.spend(request.user.pk, cost=endpoints.TEST_COST)
    try:
        endpoints.send_test(endpoint, request.POST.get("type", ""))
    except EndpointError as error:
        messages.error(request, sentence(error))
    return redirect("my_endpoint", endpoint.pk)


@person_page("POST")
@confirmed
def rotate(request: PersonRequest, id: int) -> HttpResponse:
    """Create a new secret, and show it once."""
    endpoint = _find(request, id)
    try:
        secret = endpoints.rotate(endpoint)
    except EndpointError as error:
        messages.error(request, sentence(error))
        return redirect("my_endpoint", endpoint.pk)
    return _show_one(request, endpoint, secret=secret)


@person_page("GET", "HEAD", "POST")
def delete(request: PersonRequest, id: int) -> HttpResponse:
    """GET: ask for confirmation. POST: delete the endpoint."""
    endpoint = _find(request, id)
    if request.method != "POST":
        return show(
            request, "tailrace/subscriptions/pages/endpoints/delete.html", {"endpoint": endpoint}
        )
    url = endpoint.url
    endpoints.delete(endpoint, by=request.user.username)
    messages.success(request, f"Deleted. Nothing will be sent to {url}.")
    return redirect("my_endpoints")


def _find(request: PersonRequest, id: int) -> Endpoint:
    return get_object_or_404(Endpoint.objects.select_related("user"), pk=id, user=request.user)


def _find_message(endpoint: Endpoint, job: int) -> endpoint_messages.Message:
    row = endpoint_messages.find(endpoint, job)
    if row is None:
        raise Http404
    return row


def _show_list(
    request: PersonRequest, form: EndpointForm, status: int = 200, **context: Any
) -> Any:
    rows = Endpoint.objects.filter(user=request.user).order_by("-pk")
    return show(
        request,
        "tailrace/subscriptions/pages/endpoints/list.html",
        {"form": form, "endpoints": rows, **context},
        status,
    )


def _show_one(request: PersonRequest, endpoint: Endpoint, secret: str = "") -> HttpResponse:
    before, name = request.GET.get("after", ""), request.GET.get("list", "")
    is_id = before.isascii() and before.isdigit() and len(before) < 19
    if (before and not is_id) or (name and name not in message_list.LISTS):
        raise Http404
    page, older = message_list.page_of(endpoint, PAGE, int(before or 0) or None, name)
    context = {
        "secret": secret,
        "messages_of_endpoint": page,
        "older": older,
        "query": f"list={name}" if name else "",
        "list": name,
        "lists": ["", *message_list.LISTS],
        "examined": message_list.MAX_EXAMINED,
        "first": not before,
        "tested": not before and endpoints.is_tested(endpoint),
    }
    return _show_tab(request, endpoint, "messages", context)


def _show_tab(
    request: PersonRequest, endpoint: Endpoint, tab: str, context: dict[str, Any], status: int = 200
) -> HttpResponse:
    context |= {"endpoint": endpoint, "tab": tab, "last_tries": message_list.last_tries(endpoint)}
    return show(request, f"tailrace/subscriptions/pages/endpoints/{tab}.html", context, status)
