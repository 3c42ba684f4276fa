"""Decisions of people on removal requests: customers start, confirm and withdraw their requests;
operators handle parked ones."""

from collections.abc import Callable, Sequence
from datetime import timedelta

from django.contrib.auth.models import User
from django.views.decorators.debug import sensitive_variables

from tailrace.db.query import database_now
from tailrace.domains.protection.models import RemovalRequest, RemovalState
from tailrace.domains.protection.models.removal import ENDED, RemovalStep
from tailrace.domains.protection.services.removals import moves
from tailrace.domains.protection.services.removals.brokers import (
    Broker,
    Confirmation,
    UnknownBroker,
    find_broker,
    known_brokers,
)
from tailrace.domains.protection.services.removals.person import Person
from tailrace.net.encryption import newest_key_id
from tailrace.subscriptions.models import PlanSubscription
from tailrace.web.accounts.user_lock import locked

NO_PLAN = "removals are part of a plan, and you have no active plan: see /me/plan. Nothing was sent"
PAUSE = timedelta(hours=24)
"""How long after the end of a request the same user has to wait to start another one at the
broker."""


class Refused(ValueError):
    """The decision is not possible. The message gives the reason, and the alternatives if there are
    any."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field
        """The wrong input, `brokers` or `person`; empty if no input is wrong."""


@sensitive_variables()
def start(user: User, keys: Sequence[str], person: Person) -> list[RemovalRequest]:
    """Start a request at each of these brokers; return the requests in the same order.

    If the user has an open request at a broker, it is returned instead of a new one. Raises
    Refused; then no request is started.
    """
    try:
        brokers = [find_broker(key) for key in dict.fromkeys(keys)]
    except UnknownBroker as error:
        raise Refused(str(error), "brokers") from None
    if not brokers:
        raise Refused("choose at least one broker", "brokers")
    for broker in brokers:
        if missing := broker.missing(person):
            needs = f"{broker.name} needs more data: fill in {', '.join(missing)}"
            raise Refused(needs, "person")
    with locked(user):
        if not PlanSubscription.objects.serves(user.pk):
            raise Refused(NO_PLAN)
        return [_start(user, broker, person) for broker in brokers]


def _start(user: User, broker: Broker, person: Person) -> RemovalRequest:
    requests = RemovalRequest.objects.filter(user=user, broker=broker.key)
    if row := requests.open().first():
        return row
    recent = requests.filter(changed_at__gt=database_now() - PAUSE).order_by("-changed_at").first()
    if recent is not None:
        raise Refused(
            f"your last request at {broker.name} ended less than a day ago: start another one after"
            f" {recent.changed_at + PAUSE:%Y-%m-%d %H:%M:%S} UTC"
        )
    now = database_now()
    row = RemovalRequest.objects.create(
        user=user,
        broker=broker.key,
        person=person.encrypted(),
        key_id=newest_key_id(),
        created_at=now,
        changed_at=now,
    )
    moves.start(row, user)
    return row


def withdraw(row: RemovalRequest, by: User) -> None:
    """End the request. Data that the broker has received cannot be taken back. Raises Refused."""
    if row.state in ENDED:
        raise Refused(f"the request is already {_label(row)}")
    _make_move(lambda: moves.withdraw(row, by))


def done(row: RemovalRequest, by: User) -> None:
    """Record that a person did the step of a parked request, or opened a mailed link. Raises
    Refused."""
    if waits_for_mailed_link(row):
        _make_move(lambda: moves.confirmed(row, by=by, note="the link was opened"))
    elif row.state != RemovalState.NEEDS_PERSON:
        raise Refused(f"the request is {_label(row)}: there is nothing to do")
    elif row.step == RemovalStep.VERIFY:
        _make_move(lambda: moves.not_listed(row, by=by, note="checked by a person"))
    elif row.step == RemovalStep.CONFIRM:
        _make_move(lambda: moves.confirmed(row, by=by, note="confirmed by a person"))
    else:
        _make_move(lambda: moves.submitted(row, by=by, note="submitted by a person"))


def reject(row: RemovalRequest, by: User) -> None:
    """Record that the broker has refused a parked request. Raises Refused."""
    if row.state != RemovalState.NEEDS_PERSON:
        raise Refused(f"only a parked request can be rejected; this one is {_label(row)}")
    _make_move(lambda: moves.reject(row, by))


def try_again(row: RemovalRequest, by: User) -> None:
    """Enqueue a job for the step of a parked or rejected request. Raises Refused."""
    if row.state not in (RemovalState.NEEDS_PERSON, RemovalState.REJECTED):
        raise Refused(
            f"only a parked or rejected request can be tried again; this one is {_label(row)}"
        )
    open_requests = RemovalRequest.objects.filter(user=row.user_id, broker=row.broker).open()
    if open_requests.exclude(pk=row.pk).exists():
        raise Refused("the user has started another request at this broker")
    _make_move(lambda: moves.try_again(row, by))


def may_be_done(row: RemovalRequest) -> bool:
    """Return whether the user can confirm that their part of the request is done."""
    return row.state == RemovalState.NEEDS_PERSON or waits_for_mailed_link(row)


def waits_for_mailed_link(row: RemovalRequest) -> bool:
    """Return whether the person has to open a link that the broker mails."""
    broker = known_brokers().get(row.broker)
    by_mail = broker is not None and broker.confirmation is Confirmation.MAIL
    return by_mail and row.state == RemovalState.SUBMITTED


def _make_move(move: Callable[[], None]) -> None:
    try:
        move()
    except moves.MovedOn:
        raise Refused("the request has changed: reload it") from None
    except UnknownBroker as error:
        raise Refused(f"{error}: the request can only be withdrawn") from None


def _label(row: RemovalRequest) -> str:
    return str(RemovalState(row.state).label).lower()
