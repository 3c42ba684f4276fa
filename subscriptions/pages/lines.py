"""lines: events in a line each, as far as the reader may read of them."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import User

from events.models import Event
from subscriptions.readable import may_read
from subscriptions.recall import recall
from subscriptions.story import tell


@dataclass(frozen=True, slots=True)
class Line:
    """An event in a line."""

    title: str
    link: str
    """Where a person reads more; empty: nowhere."""
    occurred_at: datetime


@dataclass(frozen=True, slots=True)
class Hidden:
    """What stands in the place of an event that cannot be read of."""

    why: str


def lines(user: User, ids: Collection[int]) -> dict[int, Line | Hidden]:
    """Return a line for each of these events, in their order, hidden where the user may not read
    of it, or where it is gone."""
    known = {event.pk: recall(event) for event in Event.objects.filter(pk__in=set(ids))}
    readable = may_read(user, known.values())
    found: dict[int, Line | Hidden] = {}
    for id in ids:
        if id not in known:
            found[id] = Hidden("It is past its retention.")
        elif id not in readable:
            found[id] = Hidden("You may not read of it any more.")
        else:
            story = tell(known[id])
            link = story.link if story.link.startswith(("https://", "http://", "/")) else ""
            found[id] = Line(story.title, link, known[id].occurred_at)
    return found
