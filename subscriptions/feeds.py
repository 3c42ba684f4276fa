"""feeds: a user's events as Atom or RSS, for whoever knows the feed's token."""

import hashlib
import secrets

from django.conf import settings
from django.contrib.auth.models import User
from django.urls import reverse

from events import clock
from subscriptions.models import Feed

TOKEN_BYTES = 32


def make_feed(user: User, title: str = "Tailrace") -> tuple[Feed, str]:
    """Make a feed; return it with its address, which cannot be found out again later."""
    token = secrets.token_urlsafe(TOKEN_BYTES)
    feed = Feed.objects.create(user=user, title=title, token_hash=_hash(token))
    return feed, settings.PUBLIC_URL + reverse("feed", args=[token])


def find_feed(token: str) -> Feed | None:
    """Return the live feed of the token; the look-up by its hash tells a guesser no timing."""
    return (
        Feed.objects.select_related("user")
        .filter(token_hash=_hash(token), revoked_at=None, user__is_active=True)
        .first()
    )


def revoke_feed(feed: Feed) -> None:
    """Let the feed's address open nothing from now on; done again, it changes nothing."""
    Feed.objects.filter(pk=feed.pk, revoked_at=None).update(revoked_at=clock.now())
    feed.refresh_from_db(fields=["revoked_at"])


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
