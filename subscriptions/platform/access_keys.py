"""Revoke a user's feeds and browsers with push, for example after a theft."""

from django.contrib.auth.models import User

from tailrace.subscriptions.channels.rss.feeds import revoke_feed
from tailrace.subscriptions.models import Device, Feed
from tailrace.web.accounts.access_keys import AccessKeys


def _revoke_feeds(user: User) -> None:
    for feed in Feed.objects.filter(user=user, revoked_at=None):
        revoke_feed(feed)


def _remove_devices(user: User) -> None:
    Device.objects.filter(user=user).delete()


ACCESS_KEYS = [
    AccessKeys("feeds", "feeds", _revoke_feeds),
    AccessKeys("devices", "browsers with push enabled", _remove_devices),
]
