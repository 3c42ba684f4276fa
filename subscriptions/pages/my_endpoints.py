"""My webhook endpoints: where events are sent to, and how the deliveries went."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from subscriptions import endpoints
from subscriptions.models import Delivery, Endpoint
from subscriptions.pages.parts import Plain
from subscriptions.pages.person import PersonRequest, for_person, show

PAGE = 30
MOVES: dict[str, tuple[Callable[..., None], str]] = {
    "pause": (endpoints.pause, "Paused: its deliveries are held."),
    "resume": (endpoints.resume, "Resumed: what was held is sent first."),
    "enable": (endpoints.enable, "Enabled: events are sent to it again."),
}


class EndpointForm(Plain, forms.Form):
    url = forms.CharField(
        label="Address",
        max_length=2000,
        widget=forms.TextInput({"type": "url", "autocomplete": "off", "spellcheck": "false"}),
        help_text="Where to POST each event: https://…",
    )
    description = forms.CharField(
        required=False, max_length=500, help_text="What you know it again by."
    )


@require_http_methods(["GET", "HEAD", "POST"])
@for_person
def my_endpoints(request: PersonRequest) -> HttpResponse:
    """GET: the endpoints. POST: add one and show its secret, this once."""
    if request.method != "POST":
        return _list(request, EndpointForm())
    form = EndpointForm(request.POST)
    if form.is_valid():
        said = form.cleaned_data
        try:
            made, secret = endpoints.create(request.user, said["url"], said["description"])
        except endpoints.EndpointError as error:
            form.add_error("url", str(error))
        else:
            return _list(request, EndpointForm(), made=made, secret=secret)
    return _list(request, form, status=422)


@require_GET
@for_person
def my_endpoint(request: PersonRequest, id: int) -> HttpResponse:
    """One endpoint and its deliveries, the newest first; `?before=` goes on after one."""
    return _one(request, _find(request, id))


@require_POST
@for_person
def move(request: PersonRequest, id: int, to: str) -> HttpResponse:
    """Pause it, resume it, or enable it after it was disabled."""
    endpoint = _find(request, id)
    act, words = MOVES[to]
    return _done(request, endpoint, words, lambda: act(endpoint, _by(request)))


@require_POST
@for_person
def test(request: PersonRequest, id: int) -> HttpResponse:
    """Send a test here and now; what came of it stands at the top of the deliveries."""
    endpoint = _find(request, id)
    try:
        tried = endpoints.test_delivery(endpoint)
    except endpoints.EndpointError as error:
        messages.error(request, _sentence(error))
    else:
        if tried.outcome == Delivery.Outcome.OK:
            messages.success(request, f"The test arrived: it answered {tried.status}.")
        else:
            messages.error(request, f"The test failed: {tried.error}.")
    return _to(endpoint)


@require_POST
@for_person
def rotate(request: PersonRequest, id: int) -> HttpResponse:
    """Make a new secret and show it, this once."""
    endpoint = _find(request, id)
    return _one(request, endpoint, secret=endpoints.rotate(endpoint))


@require_http_methods(["GET", "HEAD", "POST"])
@for_person
def delete(request: PersonRequest, id: int) -> HttpResponse:
    """GET: ask whether that is meant. POST: delete it."""
    endpoint = _find(request, id)
    if request.method != "POST":
        return show(request, "endpoint_delete.html", {"endpoint": endpoint})
    url = endpoint.url
    endpoints.delete(endpoint, by=_by(request))
    messages.success(request, f"Deleted: nothing is sent to {url} any more.")
    return redirect("my_endpoints")


@require_POST
@for_person
def replay(request: PersonRequest, id: int, delivery: int) -> HttpResponse:
    """Have a delivery that failed made once more."""
    endpoint = _find(request, id)
    found = get_object_or_404(endpoints.deliveries_of(endpoint), pk=delivery)
    words = f"{found.message_id} is sent again."
    return _done(request, endpoint, words, lambda: endpoints.replay(found, by=_by(request)))


def _find(request: PersonRequest, id: int) -> Endpoint:
    return get_object_or_404(Endpoint, pk=id, user=request.user)


def _by(request: PersonRequest) -> str:
    return request.user.get_username()


def _to(endpoint: Endpoint) -> HttpResponse:
    return redirect(reverse("my_endpoint", args=[endpoint.pk]))


def _done(
    request: PersonRequest, endpoint: Endpoint, words: str, act: Callable[[], Any]
) -> HttpResponse:
    try:
        act()
    except endpoints.EndpointError as error:
        messages.error(request, _sentence(error))
    else:
        messages.success(request, words)
    return _to(endpoint)


def _sentence(error: Exception) -> str:
    text = str(error)
    return f"{text[:1].upper()}{text[1:]}."


def _list(request: PersonRequest, form: EndpointForm, status: int = 200, **said: Any) -> Any:
    rows = Endpoint.objects.filter(user=request.user).order_by("-pk")
    return show(request, "endpoints.html", {"form": form, "endpoints": rows, **said}, status)


def _one(request: PersonRequest, endpoint: Endpoint, secret: str = "") -> HttpResponse:
    rows = endpoints.deliveries_of(endpoint)
    if before := request.GET.get("before", ""):
        if not (before.isascii() and before.isdigit() and len(before) < 20):
            raise Http404
        rows = rows.filter(pk__lt=int(before))
    found = list(rows[: PAGE + 1])
    page = found[:PAGE]
    context = {
        "endpoint": endpoint,
        "secret": secret,
        "deliveries": page,
        "older": page[-1].pk if len(found) > PAGE else None,
        "first": not before,
    }
    return show(request, "endpoint.html", context)
