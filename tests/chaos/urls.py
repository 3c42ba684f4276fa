"""The project's addresses, and two at which the clients of the run publish."""

import json

from django.db import connection, transaction
from django.http import HttpRequest, JsonResponse
from django.urls import include, path
from django.views.decorators.csrf import csrf_exempt

from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.enqueue import enqueue_many
from tailrace.jobs.flows import NewFlow
from tests.chaos import plain_celery
from tests.chaos.event_types import Published
from tests.chaos.handlers import WORDS, Callback, Part


class RolledBack(Exception):
    """As the client asked."""


@csrf_exempt
def publish_event(request: HttpRequest, side: str) -> JsonResponse:
    """Publish what the client sends, in a transaction that it may ask to be rolled back.

    200: it stands, whether by this request or by an earlier one of the same id. 409: rolled back.
    """
    body = json.loads(request.body)
    try:
        with transaction.atomic():
            _tailrace(body) if side == "tailrace" else plain_celery.record(
                body["id"], body["number"]
            )
            if body["rollback"]:
                raise RolledBack
    except RolledBack:
        return JsonResponse({}, status=409)
    return JsonResponse({})


def _tailrace(body: dict) -> None:
    payload = {"client": body["client"], "number": body["number"]} | WORDS
    publish(NewEvent(Published, payload, source="chaos", source_id=body["id"]))


@csrf_exempt
def enqueue_jobs(request: HttpRequest) -> JsonResponse:
    """Enqueue so many jobs of one handler."""
    body = json.loads(request.body)
    return JsonResponse({"jobs": enqueue_many(body["handler"], [{}] * body["count"])})


@csrf_exempt
def enqueue_flow(request: HttpRequest) -> JsonResponse:
    """Enqueue a flow of so many parts, once, however often the client repeats it."""
    body = json.loads(request.body)
    flow = NewFlow(body["key"], unique_key=body["key"])
    parts = flow.group(Part, [None] * body["parts"], name="part")
    callback = flow.add(Callback, after=parts, name="callback")
    flow.add(Callback, after_failure=parts, name="alarm")
    flow.add(Callback, after_end=callback, name="last")
    return JsonResponse({"flow": flow.enqueue()})


def ready(request: HttpRequest) -> JsonResponse:
    """Whether this process and its database are there."""
    connection.ensure_connection()
    return JsonResponse({})


urlpatterns = [
    path("chaos/ready", ready),
    path("chaos/publish/<side>", publish_event),
    path("chaos/enqueue", enqueue_jobs),
    path("chaos/flow", enqueue_flow),
    path("", include("tailrace.config.urls")),
]
