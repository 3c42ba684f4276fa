"""Receiver roles of protection."""

from django.contrib.auth.models import User

from tailrace.events.publish import Recorded
from tailrace.subscriptions.types.roles import Receivers, role


@role("protected_person")
def protected_person(event: Recorded) -> Receivers:
    """The user whom the alert concerns."""
    users = User.objects.filter(pk=event.raw_payload.get("account") or 0)
    return Receivers.of(users.values_list("username", flat=True))
