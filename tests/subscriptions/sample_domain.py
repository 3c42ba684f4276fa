"""A small domain for the tests: event types, roles whose holders a test sets, people."""

from collections.abc import Sequence
from typing import Any

from django.contrib.auth.models import Group, User
from pydantic import BaseModel

from tailrace.events.publish import NewEvent, Recorded, publish
from tailrace.events.readers import Readers
from tailrace.events.types import EventType
from tailrace.subscriptions.models import EventSubscription
from tailrace.subscriptions.types.roles import Receivers, role
from tailrace.subscriptions.types.subscribable import Subscribable

FIRST, SECOND = "stage_owner", "stage_watcher"
holders: dict[str, Receivers] = {}
"""By role: who holds it in this test."""
readers: dict[str, Readers] = {}
"""By subject: who alone may read of it."""


@role(FIRST)
def first(event: Recorded) -> Receivers:
    return holders.get(FIRST, Receivers())


@role(SECOND, by_default=False)
def second(event: Recorded) -> Receivers:
    return holders.get(SECOND, Receivers())


class Play(Subscribable, EventType):
    """Something is played."""

    abstract = True
    receiver_roles = [FIRST, SECOND]
    can_mail = can_rss = can_web = True

    class Payload(BaseModel):
        title: str = ""
        note: str = ""

    @classmethod
    def readers(cls, events: Sequence[Recorded]) -> dict[int, Readers | None]:
        return {event.id: readers.get(event.subject) for event in events}

    @classmethod
    def subject(cls, payload: dict[str, Any]) -> str:
        return payload.get("title", "")


class Premiere(Play):
    """A play was shown for the first time."""

    name = "stage.premiere"


class Gala(Premiere):
    """A premiere with guests."""

    name = "stage.gala"


class Rehearsal(Play):
    """A play was rehearsed. It is not sent by mail."""

    name = "stage.rehearsal"
    can_mail = can_web = False


class Silence(EventType):
    """Has no receiver roles."""

    name = "stage.silence"


def publish_event(event_type: type[EventType] = Premiere, **fields: Any) -> Recorded:
    """Publish one event; its payload is `payload`, its title the subject."""
    (recorded,) = publish(NewEvent(event_type, **fields))
    return recorded


def person(login: str, *, email: str | None = None, active: bool = True) -> User:
    address = f"{login}@example.org" if email is None else email
    return User.objects.create_user(login, address, is_active=active)


def assign_role(name: str, *users: User, groups: tuple[Group, ...] = ()) -> None:
    """Let these hold the role from now on."""
    holders[name] = Receivers.of(
        (user.username for user in users), (group.name for group in groups)
    )


def subscribe(
    event_type: str = "stage.premiere", role: str = FIRST, channel: str = "mail", **rest: Any
) -> EventSubscription:
    return EventSubscription.objects.create(
        event_type=event_type, role=role, channel=channel, **rest
    )
