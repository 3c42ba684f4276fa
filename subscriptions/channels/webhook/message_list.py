"""The messages of an endpoint, all or those of some states, page by page; and how it does."""

from collections.abc import Sequence
from statistics import median
from typing import Literal

from tailrace.subscriptions.channels.webhook.messages import Message, describe, of_endpoint
from tailrace.subscriptions.models import Delivery, Endpoint

ListName = Literal["waiting", "delivered", "failed"]
LISTS: dict[str, Sequence[str]] = {
    "waiting": ("waiting", "sending"),
    "delivered": ("delivered",),
    "failed": ("failed", "cancelled", "skipped"),
}
"""The states of the messages of a list, by its name."""
MAX_EXAMINED, CHUNK = 2000, 200
"""Messages that are looked at to find a page of those of a list, and how many at a time."""
LAST_TRIES = 100


def page_of(
    endpoint: Endpoint, size: int, before: int | None = None, name: str = ""
) -> tuple[list[Message], int | None]:
    """Return up to `size` messages before the one with this id, the newest first, and the id before
    which the next page begins; None: there are no older ones.

    With the name of a list, those of its states. A page may have fewer of them, or none, though
    there are older ones: MAX_EXAMINED are looked at.
    """
    found: list[Message] = []
    chunk = CHUNK if name else size
    for _ in range(MAX_EXAMINED // CHUNK):
        jobs = of_endpoint(endpoint)
        rows = list((jobs.filter(pk__lt=before) if before is not None else jobs)[: chunk + 1])
        for message in describe(endpoint, rows[:chunk]):
            before = message.id
            if not name or message.state in LISTS[name]:
                found.append(message)
            if len(found) == size:
                return found, before if before > rows[-1].pk else None
        if len(rows) <= chunk:
            return found, None
    return found, before


def last_tries(endpoint: Endpoint) -> dict[str, int]:
    """Return how the last LAST_TRIES tries went: `count`, those that were `delivered`, and the
    median of their `milliseconds`; empty if there is none."""
    rows = endpoint.deliveries.order_by("-id").values_list("outcome", "milliseconds")
    tries = list(rows[:LAST_TRIES])
    if not tries:
        return {}
    return {
        "count": len(tries),
        "delivered": sum(outcome == Delivery.Outcome.OK for outcome, _ in tries),
        "milliseconds": round(median(milliseconds for _, milliseconds in tries)),
    }
