"""The messages of an endpoint: one per event and one per test."""

from django.http import HttpRequest
from ninja import Query, Router

from tailrace.db.pagination import decode, encode
from tailrace.subscriptions.api.endpoints.finding import AUTH, find_endpoint
from tailrace.subscriptions.api.endpoints.schemas import (
    DeliveryOut,
    MessageDetails,
    MessageOut,
    MessagesParams,
)
from tailrace.subscriptions.channels.webhook.history import message_list, messages
from tailrace.subscriptions.models import Endpoint
from tailrace.web.api.auth import caller, count
from tailrace.web.api.pagination import Page
from tailrace.web.api.problems import not_found

router = Router(auth=AUTH)
LIST_COST = 5
"""A page of `list` counts as this number of requests, since many messages are examined."""


@router.get("/{int:id}/messages", response=Page[MessageOut], summary="List messages")
def list_messages(request: HttpRequest, id: int, params: Query[MessagesParams]) -> Page[MessageOut]:
    """One message per event and per test, newest first; a message may have several tries.

    With `list`, a request examines 2,000 messages and counts as 5 requests. Its page may be short
    or empty although there is a `next` page.
    """
    endpoint = find_endpoint(request, id)
    if params.list:
        count(request, LIST_COST - 1)
    before = None if params.cursor is None else decode(params.cursor, int)[0]
    page, older = message_list.page_of(endpoint, params.limit, before, params.list or "")
    items = list(map(MessageOut.model_validate, page))
    return Page(items=items, next=None if older is None else encode(older))


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
    """Any message can be sent again; a delivered message at most 20 times. The `webhook-id` stays
    the same. A waiting message is tried now."""
    endpoint = find_endpoint(request, id)
    messages.resend(endpoint, _find_message(endpoint, message), caller(request).user)
    return MessageOut.model_validate(_find_message(endpoint, message))


def _find_message(endpoint: Endpoint, id: int) -> messages.Message:
    message = messages.find(endpoint, id)
    if message is None:
        raise not_found("message")
    return message
