"""The inboxes of users and groups."""

from collections.abc import Iterable

from django.contrib.auth.models import Group, User
from django.db.models import Q, QuerySet

from tailrace.db import clock
from tailrace.db.query import execute
from tailrace.events.publish import Recorded
from tailrace.subscriptions.models import InboxItem
from tailrace.subscriptions.types.subscribable import thread_of

# A newer event replaces the older one, and makes the item unread. A repeated or older event changes
# nothing.
_PUT = f"""
INSERT INTO tailrace_subscriptions_inboxitem AS item
  (user_id, group_id, thing, event_id, role, events, arrived_at)
VALUES (%(user)s, %(group)s, %(thing)s, %(event)s, %(role)s, 1, {clock.NOW})
ON CONFLICT (user_id, group_id, thing) DO UPDATE SET
  event_id = excluded.event_id, role = excluded.role, events = item.events + 1,
  arrived_at = excluded.arrived_at, read_at = NULL
WHERE item.event_id < excluded.event_id
"""


def put(event: Recorded, *, user: User | None, group: Group | None, role: str) -> None:
    """Put an event into the inbox of a user or a group. Safe to repeat."""
    execute(
        _PUT, user=user and user.pk, group=group and group.pk, thing=thread_of(event)[:600],
        event=event.id, role=role,
    )  # fmt: skip


def of(user: User) -> QuerySet[InboxItem]:
    """Return the items in the inboxes of the user and of the user's groups, newest first."""
    groups = list(user.groups.values_list("pk", flat=True))  # a subquery would read the whole table
    owner = Q(user=user) | Q(group__in=groups)
    return InboxItem.objects.filter(owner).order_by("-arrived_at", "-id")


def mark(user: User, ids: Iterable[int] | None, *, read: bool, up_to: int | None = None) -> int:
    """Mark items (None: all) as read or unread, and return the number of changed items. With
    `up_to`, the id of an event, mark only items without a newer event."""
    items = of(user).order_by()
    if ids is not None:
        items = items.filter(pk__in=list(ids))
    if up_to is not None:
        items = items.filter(event_id__lte=up_to)
    now = clock.now()
    if read:
        return items.filter(read_at=None).update(read_at=now, last_seen_at=now)
    return items.exclude(read_at=None).update(read_at=None)
