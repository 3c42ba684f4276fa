"""Webhook endpoints of a user, and their deliveries."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Annotated

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Query, Router
from pydantic import Field

from jobs.states import FINISHED
from subscriptions.channels.webhook import endpoints
from subscriptions.models import Endpoint
from web.api.auth import Needs, caller, require_recent_login
from web.api.pagination import Page, PageParams, newest_first
from web.api.problems import Problem, find_row, not_found, too_many_requests, wrong_field
from web.api.schemas import In, Out

router = Router(auth=Needs("endpoints"))

Url = Annotated[str, Field(max_length=2000, description="https://…, a public address")]
Description = Annotated[str, Field(max_length=500, description="your name for it")]


class EndpointIn(In):
    url: Url
    description: Description = ""


class EndpointChange(In):
    """The fields to change; all others stay as they are."""

    url: Url = ""
    description: Description = ""


class EndpointOut(Out):
    id: int
    url: str
    description: str
    state: str
    """enabled, paused (deliveries wait) or disabled (nothing is sent)."""
    reason: str
    """Why it is not enabled."""
    confirmed: bool
    """False: nothing is sent until its URL has answered a challenge (`…/confirm`)."""
    failing_since: datetime | None
    created_at: datetime


class Secret(Out):
    secret: str
    """The signing key (`whsec_…`). It is shown only once."""


class NewEndpoint(EndpointOut, Secret):
    pass


class DeliveryOut(Out):
    """One attempt to deliver, and its result."""

    id: int
    event_id: int | None
    """Null for a test."""
    message_id: str
    """`webhook-id`, the same for all attempts."""
    attempt: int
    at: datetime
    milliseconds: int
    status: int | None
    outcome: str
    """ok, retry, failed or gone."""
    error: str
    answer: str
    """The beginning of the response body."""


class TestOut(Out):
    """A test delivery, which a job sends."""

    job: int
    done: bool = False
    """Whether the job has ended."""
    delivery: DeliveryOut | None = None


class Replayed(Out):
    job: int
    """The job that makes the delivery again."""


@router.get("", response=Page[EndpointOut], summary="List your endpoints")
def list_endpoints(request: HttpRequest, params: Query[PageParams]) -> Page[EndpointOut]:
    rows = Endpoint.objects.filter(user=caller(request).user)
    return newest_first(rows, params, EndpointOut.model_validate)


@router.post("", response={201: NewEndpoint}, summary="Create an endpoint")
def make_endpoint(request: HttpRequest, response: HttpResponse, body: EndpointIn) -> NewEndpoint:
    """Its secret is only in this response."""
    require_recent_login(request)
    user = caller(request).user
    try:
        endpoint, secret = endpoints.create(user, body.url, body.description)
    except endpoints.TooManyEndpoints as error:
        raise Problem(409, str(error), kind="too-many") from None
    except endpoints.EndpointError as error:
        raise wrong_field("url", str(error)) from None
    endpoint.refresh_from_db()
    response["Location"] = reverse("api:get_endpoint", args=[endpoint.pk])
    return NewEndpoint(**EndpointOut.model_validate(endpoint).model_dump(), secret=secret)


@router.get("/{int:id}", response=EndpointOut, summary="Get an endpoint")
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
    """Deliveries that wait for it are cancelled."""
    endpoints.delete(_find(request, id), by=caller(request).user.username)


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
    """Deliveries that wait for it are cancelled."""
    return _change(request, id, lambda endpoint, by: endpoints.disable(endpoint, by=by))


@router.post("/{int:id}/rotate", response=Secret, summary="Create a new secret")
def rotate(request: HttpRequest, id: int) -> Secret:
    """For 24 hours deliveries are signed with the old one too. At most five old ones sign."""
    require_recent_login(request)
    endpoint = _find(request, id)
    with _conflicts():
        return Secret(secret=endpoints.rotate(endpoint))


@router.post(
    "/{int:id}/confirm",
    auth=Needs("endpoints", cost=endpoints.TEST_COST),
    response=EndpointOut,
    summary="Send another challenge",
)
def confirm(request: HttpRequest, id: int) -> EndpointOut:
    """If WEBHOOK_CONFIRM is on, a URL has to answer a challenge before events are sent to it."""
    return _change(request, id, endpoints.confirm)


@router.post(
    "/{int:id}/test",
    auth=Needs("endpoints", cost=endpoints.TEST_COST),
    response={202: TestOut},
    summary="Send a test delivery",
)
def test(request: HttpRequest, response: HttpResponse, id: int) -> TestOut:
    """It is sent by a job, in any state of the endpoint. `Location` has the address of its result.

    429 if the endpoint was tested too often.
    """
    endpoint = _find(request, id)
    try:
        job = endpoints.send_test(endpoint)
    except endpoints.TooManyTests as error:
        raise too_many_requests(str(error), error.wait) from None
    except endpoints.EndpointError as error:
        raise Problem(409, str(error)) from None
    response["Location"] = reverse("api:get_test", args=[endpoint.pk, job])
    return TestOut(job=job)


@router.get("/{int:id}/tests/{int:job}", response=TestOut, summary="Get the result of a test")
def get_test(request: HttpRequest, id: int, job: int) -> TestOut:
    """`delivery` is null until the test has been sent; ask again after a second."""
    endpoint = _find(request, id)
    row = endpoints.test_job(endpoint, job)
    if row is None:
        raise not_found("test")
    delivery = endpoints.test_result(endpoint, row)
    return TestOut(
        job=job,
        done=row.state in FINISHED,
        delivery=None if delivery is None else DeliveryOut.model_validate(delivery),
    )


@router.get("/{int:id}/deliveries", response=Page[DeliveryOut], summary="List deliveries")
def list_deliveries(request: HttpRequest, id: int, params: Query[PageParams]) -> Page[DeliveryOut]:
    """Every attempt, newest first."""
    rows = endpoints.deliveries_of(_find(request, id))
    return newest_first(rows, params, DeliveryOut.model_validate)


@router.post(
    "/{int:id}/deliveries/{int:delivery}/replay",
    response={202: Replayed},
    summary="Replay a delivery",
)
def replay(request: HttpRequest, id: int, delivery: int) -> Replayed:
    """Only failed or cancelled deliveries; the `webhook-id` stays the same."""
    row = find_row(endpoints.deliveries_of(_find(request, id)), delivery, "delivery")
    with _conflicts():
        return Replayed(job=endpoints.replay(row, by=caller(request).user.username))


def _find(request: HttpRequest, id: int) -> Endpoint:
    return find_row(Endpoint.objects.filter(user=caller(request).user), id, "endpoint")


def _change(request: HttpRequest, id: int, act: Callable[[Endpoint, str], None]) -> EndpointOut:
    endpoint = _find(request, id)
    with _conflicts():
        act(endpoint, caller(request).user.username)
    return EndpointOut.model_validate(endpoint)


@contextmanager
def _conflicts() -> Iterator[None]:
    """Turn an EndpointError into a 409 problem."""
    try:
        yield
    except endpoints.EndpointError as error:
        raise Problem(409, str(error)) from None
