"""Find the recipients of events, with channel and role; and the events of a subscription. Both use
the roles' own queries, then one statement (see sql.py) for any number of events."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from tailrace.db.query import query
from tailrace.events.publish import Recorded
from tailrace.events.readers import Readers
from tailrace.subscriptions.models import EventSubscription
from tailrace.subscriptions.notifications.audience import sql
from tailrace.subscriptions.notifications.audience.facts import facts_of
from tailrace.subscriptions.types.recipient import Recipient
from tailrace.subscriptions.types.subscribable import is_urgent


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
    events = list(events)
    facts = facts_of(events, restricted=restricted, only_login=only_login)
    if not facts.receiver:
        return []
    urgent = {event.id for event in events if is_urgent(event.event_type)}
    recipients = (Recipient(*row) for row in query(sql.recipients(), **facts.params()))
    return [_urgent(each) if each.event_id in urgent else each for each in recipients]


def _urgent(recipient: Recipient) -> Recipient:
    """Return the recipient of an urgent event, which waits only for a digest that they chose."""
    pace = recipient.pace if recipient.is_chosen else EventSubscription.Pace.INSTANT.value
    return replace(recipient, pace=pace, urgent=True)


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
