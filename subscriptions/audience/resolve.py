"""Who is notified of an event, by which channel and why; and what a subscription leads to.

Both questions are answered by one definition (see sql.py): the roles' own queries, then one
statement, whatever the number of events and recipients.
"""

from collections.abc import Iterable, Mapping

from tailrace.db.query import query
from tailrace.events.publish import Recorded
from tailrace.events.readers import Readers
from tailrace.subscriptions.audience import sql
from tailrace.subscriptions.audience.facts import Facts, facts_of
from tailrace.subscriptions.types.recipient import Recipient


def audiences(
    events: Iterable[Recorded],
    restricted: Mapping[int, Readers] | None = None,
    *,
    only_login: str | None = None,
) -> list[Recipient]:
    """Return who is notified of any of the events, sorted by event, channel and recipient.

    Give what `readers_of` returned, if it was called for these events. With `only_login` nobody
    else is looked up but this user, and groups.
    """
    facts = facts_of(events, restricted=restricted)
    _keep_only(facts, only_login)
    if not facts.receiver:
        return []
    return [Recipient(*row) for row in query(sql.recipients(), **facts.params())]


def events_of_subscription(
    subscription_id: int,
    events: Iterable[Recorded],
    role: str | None = None,
    login: str | None = None,
) -> set[int]:
    """Return the ids of those events of which somebody is notified because of the subscription.

    Give its role where it is known, so that no other role is called, and the login of its user, so
    that no other receiver is looked up.
    """
    facts = facts_of(events, role)
    _keep_only(facts, login)
    if not facts.receiver:
        return set()
    rows = query(sql.events_of_subscription(), id=subscription_id, **facts.params())
    return {event for (event,) in rows}


def _keep_only(facts: Facts, login: str | None) -> None:
    """Leave out the receivers with another login, if one is given; groups have none."""
    if login is not None:
        facts.receiver = [row for row in facts.receiver if row[3] in (None, login)]
