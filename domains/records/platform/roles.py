"""The receiver roles of deposition events."""

from django.contrib.auth.models import User

from tailrace.events.publish import Recorded
from tailrace.subscriptions.types.roles import Receivers, role


@role("depositor")
def depositor(event: Recorded) -> Receivers:
    """The user who submitted the deposition, or owns the record, of the event.

    Harvested depositions and records have none.
    """
    account = event.raw_payload.get("account")
    users = User.objects.filter(pk=account) if account is not None else User.objects.none()
    return Receivers.of(users.values_list("username", flat=True))
