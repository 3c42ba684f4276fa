"""Pages of the messages of an endpoint, optionally by state; and statistics of its last tries."""

from collections.abc import Sequence
from statistics import median
from typing import Literal

from tailrace.subscriptions.channels.webhook.history.messages import Message, describe, of_endpoint
from tailrace.subscriptions.models import Delivery, Endpoint

ListName = Literal["waiting", "delivered", "failed"]
LISTS: dict[str, Sequence[str]] = {
    "waiting": ("waiting", "sending"),
    "delivered": ("delivered",),
    "failed": ("failed", "cancelled", "skipped"),
}
"""The states of the messages in each list."""
MAX_EXAMINED, CHUNK = 2000, 200
"""The number of messages that are examined to fill one page of a list, and per query."""
LAST_TRIES = 100


def page_of(
    endpoint: Endpoint, size: int, before: int | None = None, name: str = ""
) -> tuple[list[Message], int | None]:
    """Return up to `size` messages, newest first, and the `before` of the next page, or None.

    Only messages older than `before`, an id, are returned; with the `name` of a list, only messages
    in its states. Since at most MAX_EXAMINED are examined, a page may be short or even empty.
    """
    page: list[Message] = []
    chunk = CHUNK if name else size
    for _ in range(MAX_EXAMINED // CHUNK):
        jobs = of_endpoint(endpoint)
        rows = list((jobs.filter(pk__lt=before) if before is not None else jobs)[: chunk + 1])
        for message in describe(endpoint, rows[:chunk]):
            before = message.id
            if not name or message.state in LISTS[name]:
                page.append(message)
            if len(page) == size:
                return page, before if before > rows[-1].pk else None
        if len(rows) <= chunk:
            return page, None
    return page, before


def last_tries(endpoint: Endpoint) -> dict[str, int]:
    """Return the `count` of the last LAST_TRIES tries, the number `delivered`, and the median of
    their `milliseconds`; empty if there are no tries."""
    rows = endpoint.deliveries.order_by("-id").values_list("outcome", "milliseconds")
    tries = list(rows[:LAST_TRIES])
    if not tries:
        return {}
    return {
        "count": len(tries),
        "delivered": sum(outcome == Delivery.Outcome.OK for outcome, _ in tries),
        "milliseconds": round(median(milliseconds for _, milliseconds in tries)),
    }
