"""endpoints: where a user has events sent to, and how the deliveries went."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Annotated

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Query, Router
from pydantic import Field

from subscriptions import endpoints
from subscriptions.api.gate import Needs, caller
from subscriptions.api.paging import Page, Paged, newest_first
from subscriptions.api.problems import Problem, not_found, wrong_field
from subscriptions.api.shapes import In, Out
from subscriptions.models import Delivery, Endpoint

router = Router(auth=Needs("endpoints"))

Url = Annotated[str, Field(max_length=2000, description="https://…, a public address")]
Description = Annotated[str, Field(max_length=500, description="what you call it")]


class EndpointIn(In):
    url: Url
    description: Description = ""


class EndpointChange(In):
    """What is to be otherwise; the rest stays."""

    url: Url = ""
    description: Description = ""


class EndpointOut(Out):
    id: int
    url: str
    description: str
    state: str
    """enabled, paused (its deliveries are held) or disabled (it gets nothing)."""
    reason: str
    """Why it is not enabled."""
    failing_since: datetime | None
    created_at: datetime


class Secret(Out):
    secret: str
    """The key of the signatures (`whsec_…`). It is shown this once."""


class EndpointMade(EndpointOut, Secret):
    pass


class DeliveryOut(Out):
    """One try to deliver, and what came of it."""

    id: int
    event_id: int | None
    """Null: a test."""
    message_id: str
    """`webhook-id`, the same for each try."""
    attempt: int
    at: datetime
    milliseconds: int
    status: int | None
    outcome: str
    """ok, retry, failed or gone."""
    error: str
    answer: str
    """Its beginning."""


class Replayed(Out):
    job: int
    """What will make the delivery again."""


@router.get("", response=Page[EndpointOut], summary="One's endpoints")
def list_endpoints(request: HttpRequest, asked: Query[Paged]) -> Page[EndpointOut]:
    rows = Endpoint.objects.filter(user=caller(request).user)
    return newest_first(rows, asked, EndpointOut.model_validate)


@router.post("", response={201: EndpointMade}, summary="Make an endpoint")
def make_endpoint(request: HttpRequest, response: HttpResponse, body: EndpointIn) -> EndpointMade:
    """Its secret is in this answer and in no other."""
    user = caller(request).user
    if user.endpoints.count() >= endpoints.MOST:
        raise Problem(409, f"you have {endpoints.MOST} of them: delete one first", kind="too-many")
    try:
        made, secret = endpoints.create(user, body.url, body.description)
    except endpoints.EndpointError as error:
        raise wrong_field("url", str(error)) from None
    made.refresh_from_db()
    response["Location"] = reverse("api:get_endpoint", args=[made.pk])
    return EndpointMade(**EndpointOut.model_validate(made).model_dump(), secret=secret)


@router.get("/{int:id}", response=EndpointOut, summary="One endpoint")
def get_endpoint(request: HttpRequest, id: int) -> EndpointOut:
    return EndpointOut.model_validate(_find(request, id))


@router.patch("/{int:id}", response=EndpointOut, summary="Change an endpoint")
def change_endpoint(request: HttpRequest, id: int, body: EndpointChange) -> EndpointOut:
    endpoint = _find(request, id)
    try:
        endpoints.change(endpoint, **body.model_dump(exclude_unset=True))
    except endpoints.EndpointError as error:
        raise wrong_field("url", str(error)) from None
    return EndpointOut.model_validate(endpoint)


@router.delete("/{int:id}", response={204: None}, summary="Delete an endpoint")
def delete_endpoint(request: HttpRequest, id: int) -> None:
    """What waits for it is cancelled."""
    endpoints.delete(_find(request, id), by=_by(request))


@router.post("/{int:id}/pause", response=EndpointOut, summary="Hold its deliveries")
def pause(request: HttpRequest, id: int) -> EndpointOut:
    return _moved(request, id, endpoints.pause)


@router.post("/{int:id}/resume", response=EndpointOut, summary="Send again, what was held first")
def resume(request: HttpRequest, id: int) -> EndpointOut:
    return _moved(request, id, endpoints.resume)


@router.post("/{int:id}/enable", response=EndpointOut, summary="Send again after it was disabled")
def enable(request: HttpRequest, id: int) -> EndpointOut:
    return _moved(request, id, endpoints.enable)


@router.post("/{int:id}/disable", response=EndpointOut, summary="Send nothing any more")
def disable(request: HttpRequest, id: int) -> EndpointOut:
    """What waits for it is cancelled."""
    return _moved(request, id, lambda endpoint, by: endpoints.disable(endpoint, by=by))


@router.post("/{int:id}/rotate", response=Secret, summary="Make a new secret")
def rotate(request: HttpRequest, id: int) -> Secret:
    """For 24 hours the old one signs too."""
    return Secret(secret=endpoints.rotate(_find(request, id)))


@router.post("/{int:id}/test", response=DeliveryOut, summary="Send a test")
def test(request: HttpRequest, id: int) -> DeliveryOut:
    """It is sent here and now, whatever the endpoint's state, and not again if it fails."""
    endpoint = _find(request, id)
    with _conflicts():
        return DeliveryOut.model_validate(endpoints.test_delivery(endpoint))


@router.get("/{int:id}/deliveries", response=Page[DeliveryOut], summary="How deliveries went")
def list_deliveries(request: HttpRequest, id: int, asked: Query[Paged]) -> Page[DeliveryOut]:
    """Each try, the newest first."""
    rows = endpoints.deliveries_of(_find(request, id))
    return newest_first(rows, asked, DeliveryOut.model_validate)


@router.post(
    "/{int:id}/deliveries/{int:delivery}/replay",
    response={202: Replayed},
    summary="Deliver once more",
)
def replay(request: HttpRequest, id: int, delivery: int) -> Replayed:
    """Only what failed or was cancelled, with the same `webhook-id`."""
    found: Delivery | None = endpoints.deliveries_of(_find(request, id)).filter(pk=delivery).first()
    if found is None:
        raise not_found("delivery")
    with _conflicts():
        return Replayed(job=endpoints.replay(found, by=_by(request)))


def _find(request: HttpRequest, id: int) -> Endpoint:
    endpoint = Endpoint.objects.filter(user=caller(request).user, pk=id).first()
    if endpoint is None:
        raise not_found("endpoint")
    return endpoint


def _moved(request: HttpRequest, id: int, move: Callable[[Endpoint, str], None]) -> EndpointOut:
    endpoint = _find(request, id)
    with _conflicts():
        move(endpoint, _by(request))
    return EndpointOut.model_validate(endpoint)


def _by(request: HttpRequest) -> str:
    return caller(request).user.get_username()


@contextmanager
def _conflicts() -> Iterator[None]:
    """Turn what its state does not allow into a problem."""
    try:
        yield
    except endpoints.EndpointError as error:
        raise Problem(409, str(error)) from None
