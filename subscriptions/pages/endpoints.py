"""The pages of a person's webhook endpoints and their deliveries."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from subscriptions.channels.webhook import endpoints
from subscriptions.models import Endpoint
from web import budget
from web.pages.forms import PageForm
from web.pages.frame import PersonRequest, for_person, show
from web.security.confirmation import confirmed

PAGE = 30
STATE_CHANGES: dict[str, tuple[Callable[..., None], str]] = {
    "pause": (endpoints.pause, "Paused. Deliveries wait until you resume it."),
    "resume": (endpoints.resume, "Resumed. Waiting deliveries are sent first."),
    "enable": (endpoints.enable, "Enabled. Events are sent to it again."),
    "confirm": (endpoints.confirm, "A challenge is sent to its address. Reload this page."),
}


class EndpointForm(PageForm, forms.Form):
    url = forms.CharField(
        label="Address",
        max_length=2000,
        widget=forms.TextInput({"type": "url", "autocomplete": "off", "spellcheck": "false"}),
        help_text="Each event is sent here by POST: https://…",
    )
    description = forms.CharField(required=False, max_length=500, help_text="Your name for it.")


@require_http_methods(["GET", "HEAD", "POST"])
@for_person
@confirmed
def my_endpoints(request: PersonRequest) -> HttpResponse:
    """GET: the endpoints. POST: add one and show its secret once."""
    if request.method != "POST":
        return _show_list(request, EndpointForm())
    form = EndpointForm(request.POST)
    if form.is_valid():
        values = form.cleaned_data
        try:
            endpoint, secret = endpoints.create(request.user, values["url"], values["description"])
        except endpoints.EndpointError as error:
            form.add_error("url", str(error))
        else:
            return _show_list(request, EndpointForm(), new_endpoint=endpoint, secret=secret)
    return _show_list(request, form, status=422)


@require_GET
@for_person
def my_endpoint(request: PersonRequest, id: int) -> HttpResponse:
    """An endpoint and its deliveries, newest first; `?before=` begins after a delivery."""
    return _show_one(request, _find(request, id))


@require_POST
@for_person
def change_state(request: PersonRequest, id: int, action: str) -> HttpResponse:
    """Pause, resume or enable an endpoint."""
    endpoint = _find(request, id)
    change, message = STATE_CHANGES[action]
    return _run(request, endpoint, message, lambda: change(endpoint, request.user.username))


@require_POST
@for_person
def test(request: PersonRequest, id: int) -> HttpResponse:
    """Send a test delivery; its result is the first of the deliveries once it has arrived."""
    endpoint = _find(request, id)
    budget.spend(request.user.pk, cost=endpoints.TEST_COST)
    try:
        endpoints.send_test(endpoint)
    except endpoints.EndpointError as error:
        messages.error(request, _sentence(error))
    return redirect("my_endpoint", endpoint.pk)


@require_POST
@for_person
@confirmed
def rotate(request: PersonRequest, id: int) -> HttpResponse:
    """Create a new secret and show it once."""
    endpoint = _find(request, id)
    try:
        secret = endpoints.rotate(endpoint)
    except endpoints.EndpointError as error:
        messages.error(request, _sentence(error))
        return redirect("my_endpoint", endpoint.pk)
    return _show_one(request, endpoint, secret=secret)


@require_http_methods(["GET", "HEAD", "POST"])
@for_person
def delete(request: PersonRequest, id: int) -> HttpResponse:
    """GET: ask for confirmation. POST: delete it."""
    endpoint = _find(request, id)
    if request.method != "POST":
        return show(request, "subscriptions/pages/endpoints/delete.html", {"endpoint": endpoint})
    url = endpoint.url
    endpoints.delete(endpoint, by=request.user.username)
    messages.success(request, f"Deleted. Nothing will be sent to {url}.")
    return redirect("my_endpoints")


@require_POST
@for_person
def replay(request: PersonRequest, id: int, delivery: int) -> HttpResponse:
    """Send a failed delivery again."""
    endpoint = _find(request, id)
    row = get_object_or_404(endpoints.deliveries_of(endpoint), pk=delivery)
    message = f"{row.message_id} will be sent again."
    return _run(request, endpoint, message, lambda: endpoints.replay(row, by=request.user.username))


def _find(request: PersonRequest, id: int) -> Endpoint:
    return get_object_or_404(Endpoint, pk=id, user=request.user)


def _run(
    request: PersonRequest, endpoint: Endpoint, message: str, action: Callable[[], Any]
) -> HttpResponse:
    try:
        action()
    except endpoints.EndpointError as error:
        messages.error(request, _sentence(error))
    else:
        messages.success(request, message)
    return redirect("my_endpoint", endpoint.pk)


def _sentence(error: Exception) -> str:
    text = str(error)
    return f"{text[:1].upper()}{text[1:]}."


def _show_list(
    request: PersonRequest, form: EndpointForm, status: int = 200, **context: Any
) -> Any:
    rows = Endpoint.objects.filter(user=request.user).order_by("-pk")
    return show(
        request,
        "subscriptions/pages/endpoints/list.html",
        {"form": form, "endpoints": rows, **context},
        status,
    )


def _show_one(request: PersonRequest, endpoint: Endpoint, secret: str = "") -> HttpResponse:
    rows = endpoints.deliveries_of(endpoint)
    if before := request.GET.get("before", ""):
        if not (before.isascii() and before.isdigit() and len(before) < 20):
            raise Http404
        rows = rows.filter(pk__lt=int(before))
    deliveries = list(rows[: PAGE + 1])
    page = deliveries[:PAGE]
    context = {
        "endpoint": endpoint,
        "secret": secret,
        "deliveries": page,
        "older": page[-1].pk if len(deliveries) > PAGE else None,
        "first": not before,
        "tested": not before and endpoints.is_tested(endpoint),
    }
    return show(request, "subscriptions/pages/endpoints/detail.html", context)
