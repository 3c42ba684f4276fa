"""Read events, and summarize them for the lists of the API and the pages."""

from collections.abc import Iterable
from datetime import datetime

from django.contrib.auth.models import User
from pydantic import BaseModel, ConfigDict, Field

from tailrace.events.models import Event
from tailrace.events.privacy.visibility import may_read
from tailrace.events.publish import Recorded
from tailrace.subscriptions.notifications.rendering.event_text import render_event


class EventSummary(BaseModel):  # not an `Out`: workers import this module, and not the API
    """An event in one line."""

    model_config = ConfigDict(from_attributes=True)

    id: int
    type: str
    subject: str
    title: str
    link: str = Field(description="The page with more details; empty if there is none.")
    occurred_at: datetime

    @property
    def safe_link(self) -> str:
        """The link if it is an HTTP URL or a path of this site, else an empty text."""
        return self.link if self.link.startswith(("https://", "http://", "/")) else ""


def recorded_events(ids: Iterable[int]) -> list[Recorded]:
    """Return the events with these ids, ordered by id; deleted ones are missing."""
    return list(map(Recorded.from_model, Event.objects.filter(pk__in=set(ids)).order_by("pk")))


def summarize(user: User, events: Iterable[Recorded]) -> dict[int, EventSummary]:
    """Return summaries by event id, without the events that the user may not read."""
    events = list(events)
    readable = may_read(user, events)
    texts = [(event, render_event(event)) for event in events if event.id in readable]
    return {
        event.id: EventSummary(
            id=event.id,
            type=event.type,
            subject=event.subject,
            title=text.title,
            link=text.link,
            occurred_at=event.occurred_at,
        )
        for event, text in texts
    }
