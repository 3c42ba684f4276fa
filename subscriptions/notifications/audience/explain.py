"""Explain to a user, channel by channel, why they were notified of an event, or why not."""

from dataclasses import dataclass, replace

from django.contrib.auth.models import User

from tailrace.db.query import query
from tailrace.events.catalog.topics import EVERYTHING
from tailrace.events.publish import Recorded
from tailrace.events.types import EventType
from tailrace.subscriptions.notifications.audience import sql
from tailrace.subscriptions.notifications.audience.facts import facts_of
from tailrace.subscriptions.notifications.audience.sent import sent_by_channel
from tailrace.subscriptions.types.channel import Sent, all_channels
from tailrace.subscriptions.types.roles import role_words
from tailrace.subscriptions.types.subscribable import is_urgent, offered_channels, receiver_roles


@dataclass(frozen=True, slots=True)
class Explanation:
    """Whether a user would be notified of one event by one channel now, and why; and the record of
    the message that the channel sent."""

    channel: str
    notified: bool
    why: str
    """A text such as `own subscription: on for builds.request (as reviewer)`."""
    role: str = ""
    subscription_id: int | None = None
    """The deciding subscription."""
    group: str = ""
    """The group that is notified instead of the user."""
    record: Sent | None = None
    """The record of the message; None if there is none."""

    @property
    def sent(self) -> str:
        """The state of the record; an empty string if there is none."""
        return self.record.state if self.record else ""


@dataclass(frozen=True, slots=True)
class _Case:
    """A role that the user holds, a channel, and the deciding subscription."""

    channel: str
    role: str
    group: str | None
    excluded: str | None
    reached: bool
    group_notified: bool
    subscription_id: int | None
    state: str | None
    pattern: str | None
    pace: str | None
    owner: int | None
    topic: str | None
    matches: bool | None

    @property
    def is_notified(self) -> bool:
        return (
            self.excluded is None
            and self.reached
            and not self.group_notified
            and self.state == "on"
            and bool(self.matches)
        )

    @property
    def role_words(self) -> str:
        through = f" through group {self.group}" if self.group else ""
        return f"as {role_words(self.role)}{through}"

    @property
    def row_words(self) -> str:
        """The deciding subscription, e.g. `default: on for everything, only devel:*`."""
        owners = ("own subscription", f"subscription of group {self.group}", "default")
        topic = "everything" if self.topic == "*" else self.topic
        pattern = f", only {self.pattern}" if self.pattern else ""
        pace = f", {self.pace}" if self.pace not in (None, "instant") else ""
        return f"{owners[self.owner or 0]}: {self.state} for {topic}{pattern}{pace}"

    def urgency(self, event_type: type[EventType]) -> str:
        """Return how an urgent event is sent; an empty string if it is sent like other events."""
        is_chosen = self.owner == 0 and self.topic != EVERYTHING
        if not is_urgent(event_type) or (is_chosen and self.pace != "instant"):
            return ""
        digest = (
            f", not {self.pace}, since nobody chose that for it" if self.pace != "instant" else ""
        )
        return f"; urgent: sent at once{digest}, and no limit of messages applies"


def explain(event: Recorded, user: User) -> list[Explanation]:
    """Return an explanation for each channel: by the current roles, subscriptions and blocks, with
    the record of its message."""
    facts = facts_of([event])
    rows = query(sql.explanation(), user=user.pk, **facts.params()) if facts.receiver else []
    cases, records = [_Case(*row) for row in rows], sent_by_channel(event.id, user)
    explanations = (
        _explanation(key, event, user, [case for case in cases if case.channel == key])
        for key in all_channels()
    )
    return [replace(each, record=records.get(each.channel)) for each in explanations]


def _explanation(key: str, event: Recorded, user: User, cases: list[_Case]) -> Explanation:
    def no(why: str) -> Explanation:
        return Explanation(channel=key, notified=False, why=why)

    event_type = event.event_type
    if event_type is None or not receiver_roles(event_type):
        return no(f"nobody is notified of {event.type}")
    if key not in offered_channels(event_type):
        return no(f"{event.type} is not sent by {key}")
    if not cases:
        roles = ", ".join(map(role_words, receiver_roles(event_type)))
        return no(f"{user.username} has none of the roles: {roles}")
    case = next((case for case in cases if case.is_notified), None)
    if notified := case is not None:
        why, group = f"{case.row_words} ({case.role_words}){case.urgency(event_type)}", ""
    else:
        case = next((case for case in cases if case.group_notified), cases[0])
        why = "; ".join(dict.fromkeys(_exclusion_reason(each, event, user) for each in cases))
        group = (case.group or "") if case.group_notified else ""
    return Explanation(
        channel=key,
        notified=notified,
        why=why,
        role=case.role,
        subscription_id=case.subscription_id,
        group=group,
    )


_EXCLUDED = {
    "inactive": "{user} is not active",
    "actor": "{user} caused the event",
    "blocked": "{user} has blocked {actor}, who caused the event",
    "hidden": "{user} may not read {subject}, which is hidden",
}


def _exclusion_reason(case: _Case, event: Recorded, user: User) -> str:
    if case.excluded is not None:
        return _EXCLUDED[case.excluded].format(
            user=user.username, actor=event.actor, subject=event.subject or event.type
        )
    if case.group_notified:
        return f"group {case.group} is notified instead of its members ({case.role_words})"
    if not case.reached:
        reason = all_channels()[case.channel].unreachable_because
        return f"{case.channel} cannot reach {user.username}: {reason}"
    if case.subscription_id is None:
        return f"there is no subscription ({case.role_words})"
    if case.state == "off":
        return f"{case.row_words} ({case.role_words})"
    return f"{case.row_words}, and {event.subject!r} does not match ({case.role_words})"
