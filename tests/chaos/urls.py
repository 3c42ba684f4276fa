"""The project's addresses, and two at which the clients of the run publish."""

import json

from django.db import connection, transaction
from django.http import HttpRequest, JsonResponse
from django.urls import include, path
from django.views.decorators.csrf import csrf_exempt

from events.publish import NewEvent, publish
from tests.chaos import plain
from tests.chaos.event_types import Said
from tests.chaos.handlers import WORDS


class RolledBack(Exception):
    """As the client asked."""


@csrf_exempt
def say(request: HttpRequest, side: str) -> JsonResponse:
    """Publish what the client says, in a transaction that it may ask to be rolled back.

    200: it stands, whether by this request or by an earlier one of the same id. 409: rolled back.
    """
    said = json.loads(request.body)
    try:
        with transaction.atomic():
            _tailrace(said) if side == "tailrace" else plain.record(said["id"], said["number"])
            if said["rollback"]:
                raise RolledBack
    except RolledBack:
        return JsonResponse({}, status=409)
    return JsonResponse({})


def _tailrace(said: dict) -> None:
    payload = {"client": said["client"], "number": said["number"]} | WORDS
    publish(NewEvent(Said, payload, source="chaos", source_id=said["id"]))


def ready(request: HttpRequest) -> JsonResponse:
    """Whether this process and its database are there."""
    connection.ensure_connection()
    return JsonResponse({})


urlpatterns = [
    path("chaos/ready", ready),
    path("chaos/say/<side>", say),
    path("", include("config.urls")),
]
