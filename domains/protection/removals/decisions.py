"""What people decide of removal requests: customers start, confirm and withdraw theirs; operators
do what parked ones need."""

from collections.abc import Callable, Sequence
from datetime import timedelta

from django.contrib.auth.models import User
from django.views.decorators.debug import sensitive_variables

from tailrace.db.query import database_now
from tailrace.domains.protection.models import RemovalRequest, RemovalState
from tailrace.domains.protection.models.removal import ENDED, RemovalStep
from tailrace.domains.protection.removals import moves
from tailrace.domains.protection.removals.brokers import (
    Broker,
    Confirmation,
    InvalidBrokers,
    UnknownBroker,
    find_broker,
)
from tailrace.domains.protection.removals.person import Person
from tailrace.net.encryption import newest_key_id
from tailrace.subscriptions.models import PlanSubscription
from tailrace.web.user_lock import locked

NO_PLAN = (
    "removals are part of a plan, and you have none that is active: see /me/plan. Nothing was sent"
)
PAUSE = timedelta(hours=24)
"""After a request has ended, until the same user may start another at that broker."""


class Refused(ValueError):
    """It cannot be done; the message says why, and what can."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field
        """What is wrong of what was given: `brokers`, `person`, or nothing of it."""


@sensitive_variables()
def start(user: User, keys: Sequence[str], person: Person) -> list[RemovalRequest]:
    """Start a request at each of these brokers, in their order; return them.

    Where one is open already, that one is returned as it is. Raises Refused; then none is started.
    """
    brokers = [_broker(key) for key in dict.fromkeys(keys)]
    if not brokers:
        raise Refused("choose at least one broker", "brokers")
    for broker in brokers:
        if missing := broker.missing(person):
            needs = f"{broker.name} needs more of you: fill in {', '.join(missing)}"
            raise Refused(needs, "person")
    with locked(user):
        if not PlanSubscription.objects.serves(user.pk):
            raise Refused(NO_PLAN)
        return [_start(user, broker, person) for broker in brokers]


def _start(user: User, broker: Broker, person: Person) -> RemovalRequest:
    mine = RemovalRequest.objects.filter(user=user, broker=broker.key)
    if row := mine.open().first():
        return row
    recent = mine.filter(changed_at__gt=database_now() - PAUSE).order_by("-changed_at").first()
    if recent is not None:
        raise Refused(
            f"your last request at {broker.name} ended less than a day ago: start another after"
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
    """End the request. What the broker was sent cannot be taken back. Raises Refused."""
    if row.state in ENDED:
        raise Refused(f"it is {_label(row)} already")
    _decided(lambda: moves.withdraw(row, by))


def done(row: RemovalRequest, by: User) -> None:
    """A person has done what a parked request needs, or opened the link that a broker mailed.

    Raises Refused.
    """
    if waits_for_mailed_link(row):
        _decided(lambda: moves.confirmed(row, by=by, note="its link was opened"))
    elif row.state != RemovalState.NEEDS_PERSON:
        raise Refused(f"it is {_label(row)}: there is nothing to do")
    elif row.step == RemovalStep.VERIFY:
        _decided(lambda: moves.not_listed(row, by=by, note="seen by a person"))
    elif row.step == RemovalStep.CONFIRM:
        _decided(lambda: moves.confirmed(row, by=by, note="confirmed by a person"))
    else:
        _decided(lambda: moves.submitted(row, by=by, note="submitted by a person"))


def reject(row: RemovalRequest, by: User) -> None:
    """The broker has refused a parked request. Raises Refused."""
    if row.state != RemovalState.NEEDS_PERSON:
        raise Refused(f"only a parked request can be rejected; it is {_label(row)}")
    _decided(lambda: moves.reject(row, by, "the broker refuses"))


def try_again(row: RemovalRequest, by: User) -> None:
    """Let a job do the step of a parked request, or of a rejected one. Raises Refused."""
    if row.state not in (RemovalState.NEEDS_PERSON, RemovalState.REJECTED):
        raise Refused(f"only what is parked or rejected can be tried again; it is {_label(row)}")
    others = RemovalRequest.objects.filter(user=row.user_id, broker=row.broker).open()
    if others.exclude(pk=row.pk).exists():
        raise Refused("its user has started another request at this broker")
    _decided(lambda: moves.try_again(row, by))


def may_be_done(row: RemovalRequest) -> bool:
    """Whether its user can say that it is done: it is parked, or waits for a mailed link."""
    return row.state == RemovalState.NEEDS_PERSON or waits_for_mailed_link(row)


def waits_for_mailed_link(row: RemovalRequest) -> bool:
    """Whether the person has to open a link that the broker mails."""
    try:
        broker = find_broker(row.broker)
    except (UnknownBroker, InvalidBrokers):
        return False
    return row.state == RemovalState.SUBMITTED and broker.confirmation is Confirmation.MAIL


def _decided(call: Callable[[], None]) -> None:
    try:
        call()
    except moves.MovedOn:
        raise Refused("it has changed meanwhile: look at it again") from None
    except UnknownBroker as error:
        raise Refused(f"{error}: it can only be withdrawn") from None


def _broker(key: str) -> Broker:
    try:
        return find_broker(key)
    except UnknownBroker as error:
        raise Refused(str(error), "brokers") from None


def _label(row: RemovalRequest) -> str:
    return str(RemovalState(row.state).label).lower()
