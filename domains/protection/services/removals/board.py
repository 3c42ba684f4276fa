"""The texts of removal requests on pages and in the API, and the board of requests by state."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db.models import QuerySet

from tailrace.domains.protection.models import RemovalChange, RemovalRequest, RemovalState
from tailrace.domains.protection.models.removal import ENDED, RemovalStep
from tailrace.domains.protection.services.removals import decisions
from tailrace.domains.protection.services.removals.brokers import Broker, Method, known_brokers

MAX_CARDS = 20
"""Cards per column. The page of a column shows all cards."""
LAST_CHANGES = 50


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the board, with the requests in some states."""

    key: str
    title: str
    states: Sequence[RemovalState]
    style: str = ""


COLUMNS = (
    Column("needs-you", "Action needed", (RemovalState.NEEDS_PERSON,), "tr-paused"),
    Column("waiting", "Waiting", (RemovalState.PENDING,)),
    Column("submitted", "Submitted", (RemovalState.SUBMITTED,), "tr-running"),
    Column("awaiting", "Awaiting removal", (RemovalState.AWAITING,), "tr-running"),
    Column("removed", "Removed", (RemovalState.REMOVED,), "tr-completed"),
    Column("ended", "Ended", ENDED),
)
METHOD_WORDS = {
    Method.MAIL: "by mail",
    Method.FORM: "by its web form",
    Method.MANUAL: "by you, with instructions",
}


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


def history_of(row: RemovalRequest) -> QuerySet[RemovalChange]:
    """Return the newest changes of the request, newest first."""
    return row.changes.select_related("by").order_by("-pk")[:LAST_CHANGES]


def card_of(row: RemovalRequest) -> dict[str, Any]:
    """Return the values that pages and the API show of a request."""
    broker = known_brokers().get(row.broker)
    return {
        "row": row,
        "name": broker.name if broker else row.broker,
        "broker": broker,
        "state": _state_words(row),
        "may_be_done": decisions.may_be_done(row),
        "may_be_withdrawn": row.state not in ENDED,
        "to_do": to_do(row, broker),
    }


def _state_words(row: RemovalRequest) -> str:
    if row.state == RemovalState.NEEDS_PERSON:
        return "Action needed"
    return RemovalState(row.state).label.capitalize()


def to_do(row: RemovalRequest, broker: Broker | None) -> str:
    """Return what a person has to do for this request, or an empty string."""
    if decisions.waits_for_mailed_link(row):
        return "Open the link that the broker mails you, then confirm here that it is done."
    if row.state != RemovalState.NEEDS_PERSON:
        return ""
    if broker is None:
        return "This server no longer knows the broker: withdraw the request."
    if row.step == RemovalStep.VERIFY:
        return "Check whether the broker still lists you. If not, confirm here that it is done."
    return (
        broker.instructions
        or "Send the request yourself on the broker's page, then confirm here that it is done."
    )


def available_brokers(user: User) -> list[Broker]:
    """Return the brokers where the user has no open request."""
    requests = RemovalRequest.objects.filter(user=user).open()
    open_keys = set(requests.values_list("broker", flat=True))
    return [broker for key, broker in known_brokers().items() if key not in open_keys]
