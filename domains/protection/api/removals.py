"""Removal requests in the API: list, start, get, confirm, withdraw, try again; and the data
brokers."""

from collections.abc import Callable, Iterable
from datetime import date, datetime
from typing import Annotated

from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest
from ninja import Query, Router, Status
from pydantic import Field

from tailrace.domains.protection.models import RemovalChange, RemovalRequest
from tailrace.domains.protection.services.removals import board, decisions
from tailrace.domains.protection.services.removals.brokers import MAX_BROKERS, Broker, known_brokers
from tailrace.domains.protection.services.removals.person import PLACEHOLDERS, Person
from tailrace.jobs.runtime import audit
from tailrace.web.api.auth import Needs, caller
from tailrace.web.api.pagination import Page, PageParams, newest_first
from tailrace.web.api.problems import Problem, find_row, wrong_field
from tailrace.web.api.schemas import In, Out

READ = Needs("protection:read")
WRITE = Needs("protection:write")
START = Needs("protection:write", cost=5)
DECIDE = Needs("protection:write", "tailrace_protection.decide_removalrequest")
router = Router()
brokers = Router()


class BrokerOut(Out):
    key: str
    names: list[str]
    url: str
    removal_url: str
    method: str
    """mail, form or manual."""
    given: list[str]
    """The fields of the person that the broker receives."""
    working_as_of: date
    """When somebody last tested the broker."""


class RemovalsIn(In):
    brokers: Annotated[list[str], Field(min_length=1, max_length=MAX_BROKERS)]
    """The keys of the brokers."""
    person: Person


class RemovalChangeOut(Out):
    at: datetime
    state: str
    note: str


class RemovalOut(Out):
    id: int
    broker: str
    broker_name: str
    state: str
    """pending, submitted, awaiting_confirmation, removed, rejected, needs_person or withdrawn."""
    step: str
    """The next step: submit, confirm or verify."""
    note: str
    """Why the request is in this state."""
    to_do: str
    """What you have to do; empty if there is nothing to do."""
    created_at: datetime
    changed_at: datetime
    submitted_at: datetime | None
    checked_at: datetime | None
    """When the broker's listing was last checked."""
    next_at: datetime | None
    changes: list[RemovalChangeOut] = []
    """Newest first; empty in lists."""


@brokers.get("", auth=READ, response=list[BrokerOut], summary="List the data brokers")
def list_brokers(request: HttpRequest) -> list[BrokerOut]:
    """All brokers of this server, at most 500."""
    return [_broker(broker) for broker in known_brokers().values()]


@router.get("", auth=READ, response=Page[RemovalOut], summary="List your removal requests")
def list_removals(request: HttpRequest, query: Query[PageParams]) -> Page[RemovalOut]:
    """Newest first, without their histories."""
    rows = RemovalRequest.objects.filter(user=caller(request).user)
    return newest_first(rows, query, _removal)


@router.post(
    "", auth=START, response={201: list[RemovalOut]}, summary="Start removals at data brokers"
)
def start_removals(request: HttpRequest, body: RemovalsIn) -> Status[list[RemovalOut]]:
    """If you have an open request at a broker, it is returned instead of a new one."""
    try:
        rows = decisions.start(caller(request).user, body.brokers, body.person)
    except decisions.Refused as error:
        if error.field:
            raise wrong_field(error.field, str(error)) from None
        raise Problem(409, str(error)) from None
    return Status(201, [_removal(row) for row in rows])


@router.get("/{int:id}", auth=READ, response=RemovalOut, summary="Get one removal request")
def get_removal(request: HttpRequest, id: int) -> RemovalOut:
    """Includes the newest 50 changes of its history."""
    row = _find_request(request, id)
    return _removal(row, board.history_of(row))


@router.post(
    "/{int:id}/done", auth=WRITE, response=RemovalOut, summary="Confirm that you did your part"
)
def done(request: HttpRequest, id: int) -> RemovalOut:
    """Confirm that you did what the request asks for, or that you opened the link that was
    mailed."""
    return _decide(request, id, decisions.done)


@router.post(
    "/{int:id}/withdraw", auth=WRITE, response=RemovalOut, summary="Withdraw a removal request"
)
def withdraw(request: HttpRequest, id: int) -> RemovalOut:
    """Deletes your data in the request. Data that the broker has received cannot be taken back."""
    return _decide(request, id, decisions.withdraw)


@router.post("/{int:id}/try_again", auth=DECIDE, response=RemovalOut, summary="Try a removal again")
def try_again(request: HttpRequest, id: int) -> RemovalOut:
    """Repeat the step of a request that needs a person, or start a rejected request again. For
    operators: the request of any user."""
    row = find_row(RemovalRequest.objects.all(), id, "removal request")
    user = caller(request).user
    try:
        with transaction.atomic():
            decisions.try_again(row, user)
            audit.record(user, RemovalRequest, "tried again", [(row.pk, f"removal {row.pk}")])
    except decisions.Refused as error:
        raise Problem(409, str(error)) from None
    return _removal(row)


def _decide(
    request: HttpRequest, id: int, decide: Callable[[RemovalRequest, User], None]
) -> RemovalOut:
    row = _find_request(request, id)
    try:
        decide(row, caller(request).user)
    except decisions.Refused as error:
        raise Problem(409, str(error)) from None
    return _removal(row)


def _find_request(request: HttpRequest, id: int) -> RemovalRequest:
    rows = RemovalRequest.objects.filter(user=caller(request).user)
    return find_row(rows, id, "removal request")


def _broker(broker: Broker) -> BrokerOut:
    texts = " ".join(broker.fields.values())
    given = [name for name in PLACEHOLDERS if f"{{{name}}}" in texts]
    return BrokerOut.of(broker, method=broker.method.value, given=given)


def _removal(row: RemovalRequest, changes: Iterable[RemovalChange] = ()) -> RemovalOut:
    card = board.card_of(row)
    outs = [RemovalChangeOut.of(change, state=change.new_state) for change in changes]
    return RemovalOut.of(row, broker_name=card["name"], to_do=card["to_do"], changes=outs)
