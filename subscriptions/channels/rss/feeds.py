"""The feeds of users. Anyone with a feed's token can read its events as Atom or RSS."""

import hashlib
import secrets

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.urls import reverse

from tailrace.db import clock
from tailrace.subscriptions.models import Feed
from tailrace.web.accounts.security.log import record
from tailrace.web.accounts.user_lock import locked
from tailrace.web.event_types import FeedMade, FeedRevoked

TOKEN_BYTES = 32
MAX_FEEDS = 50
"""The maximum of active feeds per user."""
FEED_ITEMS = 100
"""The number of items that a user's feeds show. Older items are deleted."""


class TooManyFeeds(ValueError):
    """The user already has MAX_FEEDS feeds."""


def make_feed(user: User, title: str = "Tailrace") -> tuple[Feed, str]:
    """Create a feed; return it and its URL, which cannot be read again. Raise TooManyFeeds."""
    token = secrets.token_urlsafe(TOKEN_BYTES)
    with locked(user):
        if Feed.objects.filter(user=user, revoked_at=None).count() >= MAX_FEEDS:
            raise TooManyFeeds(f"{user} already has {MAX_FEEDS} feeds, the maximum: revoke one")
        feed = Feed.objects.create(user=user, title=title, token_hash=_hash(token))
        record(FeedMade, user, feed=feed.pk, title=title)
    return feed, settings.PUBLIC_URL + reverse("feed", args=[token])


def find_feed(token: str) -> Feed | None:
    """Return the feed with this token, or None if it is revoked, unknown, or its user inactive."""
    feeds = Feed.objects.filter(token_hash=_hash(token), revoked_at=None, user__is_active=True)
    return feeds.select_related("user").first()


def revoke_feed(feed: Feed) -> None:
    """Make the feed's URL invalid. Safe to repeat."""
    with transaction.atomic():
        if Feed.objects.filter(pk=feed.pk, revoked_at=None).update(revoked_at=clock.now()):
            record(FeedRevoked, feed.user, feed=feed.pk, title=feed.title)
    feed.refresh_from_db(fields=["revoked_at"])


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
