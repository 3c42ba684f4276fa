"""The messages of an endpoint: one for each event and each test."""

from django.http import HttpRequest
from ninja import Query, Router

from subscriptions.api.endpoints.finding import AUTH, conflicts, find_endpoint
from subscriptions.api.endpoints.schemas import DeliveryOut, MessageDetails, MessageOut
from subscriptions.channels.webhook import messages
from subscriptions.models import Endpoint
from web.api.auth import caller
from web.api.pagination import Page, PageParams, newest_first
from web.api.problems import not_found

router = Router(auth=AUTH)


@router.get("/{int:id}/messages", response=Page[MessageOut], summary="List messages")
def list_messages(request: HttpRequest, id: int, params: Query[PageParams]) -> Page[MessageOut]:
    """One for each event and each test, the newest first, whatever the number of tries."""
    endpoint = find_endpoint(request, id)
    page = newest_first(messages.of_endpoint(endpoint), params, lambda job: job)
    described = messages.describe(endpoint, page.items)
    return Page(items=list(map(MessageOut.model_validate, described)), next=page.next)


@router.get("/{int:id}/messages/{int:message}", response=MessageDetails, summary="Get a message")
def get_message(request: HttpRequest, id: int, message: int) -> MessageDetails:
    endpoint = find_endpoint(request, id)
    row = _find_message(endpoint, message)
    return MessageDetails(
        **MessageOut.model_validate(row).model_dump(),
        body=messages.body(endpoint, row),
        tries=list(map(DeliveryOut.model_validate, row.tries)),
    )


@router.post(
    "/{int:id}/messages/{int:message}/resend",
    response={202: MessageOut},
    summary="Send a message again",
)
def resend(request: HttpRequest, id: int, message: int) -> MessageOut:
    """Any message, also a delivered one, which is sent at most 20 times more. The `webhook-id`
    stays the same. One that waits is tried now."""
    endpoint = find_endpoint(request, id)
    with conflicts():
        messages.resend(endpoint, _find_message(endpoint, message), caller(request).user)
    return MessageOut.model_validate(_find_message(endpoint, message))


def _find_message(endpoint: Endpoint, id: int) -> messages.Message:
    message = messages.find(endpoint, id)
    if message is None:
        raise not_found("message")
    return message
