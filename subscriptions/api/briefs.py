"""briefs: an event in a line, for lists; never one that the caller may not read of."""

from collections.abc import Iterable
from datetime import datetime

from django.contrib.auth.models import User

from events.models import Event
from events.publish import Recorded
from subscriptions.api.shapes import Out
from subscriptions.readable import may_read
from subscriptions.recall import recall
from subscriptions.story import tell


class EventBrief(Out):
    """An event in a line."""

    id: int
    type: str
    subject: str
    title: str
    link: str
    """Where a person reads more; empty: nowhere."""
    occurred_at: datetime


def briefs(user: User, events: Iterable[Recorded]) -> dict[int, EventBrief]:
    """Put into a line those of the events that the user may read of, by id."""
    known = list(events)
    readable = may_read(user, known)
    return {event.id: _brief(event) for event in known if event.id in readable}


def briefs_of(user: User, ids: Iterable[int]) -> dict[int, EventBrief]:
    """The same for events by their ids; those that are gone are left out."""
    return briefs(user, map(recall, Event.objects.filter(pk__in=set(ids)).order_by("pk")))


def _brief(event: Recorded) -> EventBrief:
    story = tell(event)
    return EventBrief(
        id=event.id,
        type=event.type,
        subject=event.subject,
        title=story.title,
        link=story.link,
        occurred_at=event.occurred_at,
    )
