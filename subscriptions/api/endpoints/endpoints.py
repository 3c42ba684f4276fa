"""Webhook endpoints, their tests and their delivery attempts."""

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Body, Query, Router

from tailrace.events.types import get_type
from tailrace.jobs.runtime.states import FINISHED
from tailrace.subscriptions.api.endpoints.finding import AUTH, find_endpoint
from tailrace.subscriptions.api.endpoints.schemas import (
    DeliveryOut,
    EndpointChange,
    EndpointIn,
    EndpointOut,
    NewEndpoint,
    Replayed,
    SampleOut,
    Secret,
    TestIn,
    TestOut,
)
from tailrace.subscriptions.channels.webhook.message import body_of_sample
from tailrace.subscriptions.channels.webhook.operations import endpoints, filters
from tailrace.subscriptions.models import Endpoint
from tailrace.web.api.auth import Needs, caller, require_recent_login
from tailrace.web.api.pagination import Page, PageParams, newest_first
from tailrace.web.api.problems import find_row, not_found

router = Router(auth=AUTH)


@router.get("", response=Page[EndpointOut], summary="List your endpoints")
def list_endpoints(request: HttpRequest, params: Query[PageParams]) -> Page[EndpointOut]:
    rows = Endpoint.objects.filter(user=caller(request).user)
    return newest_first(rows, params, EndpointOut.model_validate)


@router.post("", response={201: NewEndpoint}, summary="Create an endpoint")
def make_endpoint(request: HttpRequest, response: HttpResponse, body: EndpointIn) -> NewEndpoint:
    """The endpoint's secret is only in this response."""
    require_recent_login(request)
    endpoint, secret = endpoints.create(caller(request).user, **body.model_dump())
    endpoint.refresh_from_db()
    response["Location"] = reverse("api:get_endpoint", args=[endpoint.pk])
    return NewEndpoint(**EndpointOut.model_validate(endpoint).model_dump(), secret=secret)


@router.get("/{int:id}", response=EndpointOut, summary="Get an endpoint")
def get_endpoint(request: HttpRequest, id: int) -> EndpointOut:
    return EndpointOut.model_validate(find_endpoint(request, id))


@router.patch("/{int:id}", response=EndpointOut, summary="Change an endpoint")
def change_endpoint(request: HttpRequest, id: int, body: EndpointChange) -> EndpointOut:
    endpoint = find_endpoint(request, id)
    endpoints.change(endpoint, **body.model_dump(exclude_unset=True))
    return EndpointOut.model_validate(endpoint)


@router.delete("/{int:id}", response={204: None}, summary="Delete an endpoint")
def delete_endpoint(request: HttpRequest, id: int) -> None:
    """The endpoint's waiting deliveries are cancelled."""
    endpoints.delete(find_endpoint(request, id), by=caller(request).user.username)


@router.post("/{int:id}/pause", response=EndpointOut, summary="Pause an endpoint")
def pause(request: HttpRequest, id: int) -> EndpointOut:
    return _change(request, id, endpoints.pause)


@router.post("/{int:id}/resume", response=EndpointOut, summary="Resume a paused endpoint")
def resume(request: HttpRequest, id: int) -> EndpointOut:
    return _change(request, id, endpoints.resume)


@router.post("/{int:id}/enable", response=EndpointOut, summary="Enable a disabled endpoint")
def enable(request: HttpRequest, id: int) -> EndpointOut:
    return _change(request, id, endpoints.enable)


@router.post("/{int:id}/disable", response=EndpointOut, summary="Disable an endpoint")
def disable(request: HttpRequest, id: int) -> EndpointOut:
    """The endpoint's waiting deliveries are cancelled."""
    return _change(request, id, lambda endpoint, by: endpoints.disable(endpoint, by=by))


@router.post("/{int:id}/rotate", response=Secret, summary="Create a new secret")
def rotate(request: HttpRequest, id: int) -> Secret:
    """For 24 hours, deliveries are also signed with the old secret (with five old secrets at most).

    409 if there are five old secrets.
    """
    require_recent_login(request)
    return Secret(secret=endpoints.rotate(find_endpoint(request, id)))


@router.post(
    "/{int:id}/confirm",
    auth=Needs("endpoints", cost=endpoints.TEST_COST),
    response=EndpointOut,
    summary="Send another challenge",
)
def confirm(request: HttpRequest, id: int) -> EndpointOut:
    """If WEBHOOK_CONFIRM is on, a URL has to answer a challenge before events are sent to it.

    429 if there were too many tests or challenges of the endpoint.
    """
    return _change(request, id, endpoints.confirm)


@router.post(
    "/{int:id}/test",
    auth=Needs("endpoints", cost=endpoints.TEST_COST),
    response={202: TestOut},
    summary="Send a test delivery",
)
def send_test(
    request: HttpRequest, response: HttpResponse, id: int, body: Body[TestIn | None] = None
) -> TestOut:
    """A job sends the test, in any state of the endpoint. `Location` is the URL of the result.

    429 if there were too many tests of the endpoint.
    """
    endpoint = find_endpoint(request, id)
    job = endpoints.send_test(endpoint, body.event_type if body else "")
    response["Location"] = reverse("api:get_test", args=[endpoint.pk, job])
    return TestOut(job=job)


@router.get("/{int:id}/tests/{int:job}", response=TestOut, summary="Get the result of a test")
def get_test(request: HttpRequest, id: int, job: int) -> TestOut:
    """`delivery` is null until the test has been sent; repeat the request after a second."""
    endpoint = find_endpoint(request, id)
    row = endpoints.test_job(endpoint, job)
    if row is None:
        raise not_found("test")
    delivery: Any = endpoints.test_result(endpoint, row)
    return TestOut(job=job, done=row.state in FINISHED, delivery=delivery)


@router.get("/samples", response=SampleOut, summary="Get a sample of an event")
def get_sample(request: HttpRequest, event_type: str) -> SampleOut:
    """A message for an event of this type, generated from its schema."""
    if event_type not in {cls.name for cls in filters.sent_types()}:
        raise not_found("event type of webhooks")
    return SampleOut(event_type=event_type, body=body_of_sample(get_type(event_type)).decode())


@router.get("/{int:id}/deliveries", response=Page[DeliveryOut], summary="List deliveries")
def list_deliveries(request: HttpRequest, id: int, params: Query[PageParams]) -> Page[DeliveryOut]:
    """All attempts, newest first."""
    rows = endpoints.deliveries_of(find_endpoint(request, id))
    return newest_first(rows, params, DeliveryOut.model_validate)


@router.post(
    "/{int:id}/deliveries/{int:delivery}/replay",
    response={202: Replayed},
    summary="Replay a delivery",
)
def replay(request: HttpRequest, id: int, delivery: int) -> Replayed:
    """Sends the message of a failed or cancelled delivery again, with the same `webhook-id`."""
    row = find_row(endpoints.deliveries_of(find_endpoint(request, id)), delivery, "delivery")
    return Replayed(job=endpoints.replay(row, by=caller(request).user.username))


def _change(request: HttpRequest, id: int, act: Callable[[Endpoint, str], None]) -> EndpointOut:
    endpoint = find_endpoint(request, id)
    act(endpoint, caller(request).user.username)
    return EndpointOut.model_validate(endpoint)
