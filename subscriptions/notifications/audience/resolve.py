"""Find the recipients of events, with channel and role; and the events of a subscription. Both use
the roles' own queries, then one statement (see sql.py) for any number of events."""

from collections.abc import Iterable, Mapping

from tailrace.db.query import query
from tailrace.events.publish import Recorded
from tailrace.events.readers import Readers
from tailrace.subscriptions.notifications.audience import sql
from tailrace.subscriptions.notifications.audience.facts import facts_of
from tailrace.subscriptions.types.recipient import Recipient


def audiences(
    events: Iterable[Recorded],
    restricted: Mapping[int, Readers] | None = None,
    *,
    only_login: str | None = None,
) -> list[Recipient]:
    """Return the recipients of the events, sorted by event, channel and recipient.

    `restricted` is the result of `readers_of`, if it was called. With `only_login`, the only
    recipients are this user and groups.
    """
    facts = facts_of(events, restricted=restricted, only_login=only_login)
    if not facts.receiver:
        return []
    return [Recipient(*row) for row in query(sql.recipients(), **facts.params())]


def events_of_subscription(
    subscription_id: int,
    events: Iterable[Recorded],
    role: str | None = None,
    login: str | None = None,
) -> set[int]:
    """Return the ids of the events that have a recipient because of the subscription. With its
    `role` and the `login` of its user, nothing else is looked up."""
    facts = facts_of(events, role, only_login=login)
    if not facts.receiver:
        return set()
    rows = query(sql.events_of_subscription(), id=subscription_id, **facts.params())
    return {event for (event,) in rows}
