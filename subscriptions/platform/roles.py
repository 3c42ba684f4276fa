"""The receiver roles of the security log: the account's holder, and the security officers."""

from django.contrib.auth.models import User

from tailrace.events.privacy.visibility import logins_with
from tailrace.events.publish import Recorded
from tailrace.subscriptions.types.roles import Receivers, role
from tailrace.web.event_types import HOLDER, OFFICER, VIEW_LOG, WATCHER


def _account_of(event: Recorded) -> Receivers:
    id = event.raw_payload.get("user_id")
    return Receivers.of(User.objects.filter(pk=id).values_list("username", flat=True) if id else ())


@role(HOLDER)
def account_holder(event: Recorded) -> Receivers:
    return _account_of(event)


@role(WATCHER, by_default=False)
def account_watcher(event: Recorded) -> Receivers:
    return _account_of(event)


@role(OFFICER, by_default=False)
def security(event: Recorded) -> Receivers:
    return Receivers.of(logins_with(VIEW_LOG))
