"""What the pages and the API show of removal requests: their words, and the board by state."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db.models import QuerySet

from tailrace.domains.protection.models import RemovalRequest, RemovalState
from tailrace.domains.protection.models.removal import ENDED
from tailrace.domains.protection.removals import decisions
from tailrace.domains.protection.removals.brokers import (
    Broker,
    InvalidBrokers,
    Method,
    all_brokers,
)

MAX_CARDS = 20
"""In a column; its heading leads to the others."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the board: the requests in some states."""

    key: str
    title: str
    states: Sequence[RemovalState]
    style: str = ""


COLUMNS = (
    Column("needs-you", "Needs you", (RemovalState.NEEDS_PERSON,), "tr-paused"),
    Column("waiting", "Waiting", (RemovalState.PENDING,)),
    Column("submitted", "Submitted", (RemovalState.SUBMITTED,), "tr-running"),
    Column("awaiting", "Awaiting removal", (RemovalState.AWAITING,), "tr-running"),
    Column("removed", "Removed", (RemovalState.REMOVED,), "tr-completed"),
    Column("ended", "Ended", ENDED),
)
METHOD_WORDS = {
    Method.MAIL: "by mail",
    Method.FORM: "by its form",
    Method.MANUAL: "by you, as it says",
}


def known_brokers() -> Mapping[str, Broker]:
    """Return the brokers; none while their file cannot be used, which a check reports."""
    try:
        return all_brokers()
    except InvalidBrokers:
        return {}


def rows_of(user: User, column: Column) -> QuerySet[RemovalRequest]:
    return RemovalRequest.objects.filter(user=user, state__in=column.states)


def columns_of(user: User) -> list[dict[str, Any]]:
    """Return each column with its newest cards, and whether there are more."""
    columns = []
    for column in COLUMNS:
        rows = list(rows_of(user, column).order_by("-pk")[: MAX_CARDS + 1])
        cards = [card_of(row) for row in rows[:MAX_CARDS]]
        columns.append({"column": column, "cards": cards, "more": len(rows) > MAX_CARDS})
    return columns


def card_of(row: RemovalRequest) -> dict[str, Any]:
    """Return what is shown of a request."""
    broker = known_brokers().get(row.broker)
    return {
        "row": row,
        "name": broker.name if broker else row.broker,
        "broker": broker,
        "state": RemovalState(row.state).label.capitalize(),
        "may_be_done": decisions.may_be_done(row),
        "may_be_withdrawn": row.state not in ENDED,
        "to_do": to_do(row, broker),
    }


def to_do(row: RemovalRequest, broker: Broker | None) -> str:
    """Return what a person has to do for this request; empty: nothing."""
    if decisions.waits_for_mailed_link(row):
        return "Open the link that the broker mails you, then say here that it is done."
    if row.state != RemovalState.NEEDS_PERSON:
        return ""
    if broker is None:
        return "This server does not know the broker any more: withdraw the request."
    if row.step == row.Step.VERIFY:
        return "Look whether the broker still lists you; if not, say here that it is done."
    return (
        broker.instructions or "Do it yourself on the broker's page, then say here that it is done."
    )


def available_to(user: User) -> list[Broker]:
    """Return the brokers where the user has no open request."""
    mine = RemovalRequest.objects.filter(user=user).open().values_list("broker", flat=True)
    taken = set(mine)
    return [broker for key, broker in known_brokers().items() if key not in taken]
