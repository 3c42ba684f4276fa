"""inbox: what stands in the inboxes of users and groups, and what of it was read."""

from collections.abc import Iterable

from django.contrib.auth.models import Group, User
from django.db import connection
from django.db.models import Q, QuerySet

from events import clock
from events.publish import Recorded
from subscriptions.audible import thread_of
from subscriptions.models import InboxItem

# A newer event takes the place of the older one and is unread; one that comes again, or late,
# changes nothing.
_PUT = f"""
INSERT INTO subscriptions_inboxitem AS item
  (user_id, group_id, thing, event_id, role, events, arrived_at)
VALUES (%(user)s, %(group)s, %(thing)s, %(event)s, %(role)s, 1, {clock.NOW})
ON CONFLICT (user_id, group_id, thing) DO UPDATE SET
  event_id = excluded.event_id, role = excluded.role, events = item.events + 1,
  arrived_at = excluded.arrived_at, read_at = NULL
WHERE item.event_id < excluded.event_id
"""


def put(event: Recorded, *, user: User | None, group: Group | None, role: str) -> None:
    """Put an event into the inbox of a user or of a group; done again, it changes nothing."""
    values = {
        "user": user and user.pk, "group": group and group.pk, "thing": thread_of(event)[:600],
        "event": event.id, "role": role,
    }  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute(_PUT, clock.params() | values)


def of(user: User) -> QuerySet[InboxItem]:
    """Return what stands in the user's inbox and in those of the user's groups, newest first."""
    groups = list(user.groups.values_list("pk", flat=True))  # a subquery would read the whole table
    mine = Q(user=user) | Q(group__in=groups)
    return InboxItem.objects.filter(mine).order_by("-arrived_at", "-id")


def mark(user: User, ids: Iterable[int] | None, *, read: bool, up_to: int | None = None) -> int:
    """Mark the user's items as read or unread (None: all); return how many were changed.

    With `up_to`, the id of an event: only those to which nothing newer has come since.
    """
    items = of(user).order_by()
    if ids is not None:
        items = items.filter(pk__in=list(ids))
    if up_to is not None:
        items = items.filter(event_id__lte=up_to)
    now = clock.now()
    if read:
        return items.filter(read_at=None).update(read_at=now, last_seen_at=now)
    return items.exclude(read_at=None).update(read_at=None)
