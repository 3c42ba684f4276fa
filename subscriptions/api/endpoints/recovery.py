"""Recoveries of an endpoint: send the messages that it missed."""

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Router

from tailrace.subscriptions.api.endpoints.finding import AUTH, find_endpoint
from tailrace.subscriptions.api.endpoints.schemas import RecoverIn, RecoveryOut
from tailrace.subscriptions.channels.webhook.history import recovery
from tailrace.web.api.auth import Needs, caller
from tailrace.web.api.problems import find_row

router = Router(auth=AUTH)


@router.post(
    "/{int:id}/recover",
    auth=Needs("endpoints", cost=recovery.COST),
    response={202: RecoveryOut},
    summary="Send missed messages since a time",
)
def recover(request: HttpRequest, response: HttpResponse, id: int, body: RecoverIn) -> RecoveryOut:
    """A job sends at most 20,000 messages, and no message twice. `Location` is the URL of its
    progress.

    409 for a disabled endpoint, and while another recovery is running.
    """
    endpoint = find_endpoint(request, id)
    job = recovery.start(endpoint, body.what, body.since, caller(request).user)
    response["Location"] = reverse("api:get_recovery", args=[endpoint.pk, job])
    return get_recovery(request, id, job)


@router.get(
    "/{int:id}/recoveries/{int:job}", response=RecoveryOut, summary="Get the progress of a recovery"
)
def get_recovery(request: HttpRequest, id: int, job: int) -> RecoveryOut:
    row = find_row(recovery.jobs_of(find_endpoint(request, id)), job, "recovery")
    result = row.result if isinstance(row.result, dict) else {}
    payload = row.payload or {}
    return RecoveryOut(
        job=job, what=payload["what"], since=payload["since"], state=row.state, **result
    )
