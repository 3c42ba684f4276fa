"""tokens: let a program act for a user, within scopes. Only a token's hash is kept."""

import hashlib
import re
import secrets
from collections.abc import Iterable
from datetime import timedelta

from django.contrib.auth.models import User
from django.db.models import Q
from django.db.models.functions import Now

from events import clock
from events.suggest import did_you_mean
from subscriptions.models import ApiToken
from subscriptions.text import one_line

PREFIX = "tr_"
TOKEN_BYTES = 32
SEEN_EVERY = timedelta(minutes=1)
"""How exactly the time of a token's last use is kept."""

SCOPES = {
    "subscriptions:read": "read one's subscriptions, blocks and preferences",
    "subscriptions:write": "change one's subscriptions, blocks and preferences",
    "inbox:read": "read one's inbox and those of one's groups",
    "inbox:write": "mark what stands there as read or unread",
    "feeds": "list, make and revoke one's feeds",
    "endpoints": "list, make and change one's webhook endpoints, and replay deliveries",
    "events:read": "read events, as far as one's permissions go",
    "events:write": "record events, if one has the permission",
}
"""Each with what it opens; other apps add theirs by `offer`."""

_SHAPE = re.compile(rf"{PREFIX}[\w-]{{43}}", re.ASCII)


class WrongToken(ValueError):
    """A token cannot be made so."""


def offer(scope: str, meaning: str) -> None:
    """Let tokens have this scope, too: call it in an app's `ready`. One meaning per scope."""
    if SCOPES.setdefault(scope, meaning) != meaning:
        raise ValueError(f"the scope {scope!r} means already: {SCOPES[scope]}")


def make(
    user: User, name: str, scopes: Iterable[str], days: float | None = None
) -> tuple[ApiToken, str]:
    """Make a token that expires after so many days (None: never).

    Returns it with its text, which cannot be found out again later. Raises WrongToken for a scope
    that there is not, none at all, or an empty name.
    """
    wanted = sorted(set(scopes))
    for scope in wanted:
        if scope not in SCOPES:
            raise WrongToken(f"no scope is called {scope!r}{did_you_mean(scope, SCOPES)}")
    if not wanted:
        raise WrongToken(f"a token needs a scope: {', '.join(SCOPES)}")
    if not one_line(name):
        raise WrongToken("a token needs a name, to know it again by")
    if days is not None and not 0 < days <= 36_500:
        raise WrongToken(
            f"{days:g} days are none that a token can live: more than 0, 36500 at most"
        )
    text = PREFIX + secrets.token_urlsafe(TOKEN_BYTES)
    token = ApiToken.objects.create(
        user=user,
        name=one_line(name)[:100],
        scopes=wanted,
        token_hash=_hash(text),
        expires_at=None if days is None else clock.now() + timedelta(days=days),
    )
    return token, text


def find(text: str) -> ApiToken | None:
    """Return the live token of this text, with its active user, and note that it is used."""
    if not _SHAPE.fullmatch(text):
        return None
    now = Now() + timedelta(seconds=clock.offset)
    token = (
        ApiToken.objects.select_related("user")
        .filter(Q(expires_at=None) | Q(expires_at__gt=now))
        .filter(token_hash=_hash(text), revoked_at=None, user__is_active=True)
        .first()
    )
    if token is not None and _unseen(token):
        stale = Q(last_used_at=None) | Q(last_used_at__lte=now - SEEN_EVERY)
        ApiToken.objects.filter(stale, pk=token.pk).update(last_used_at=now)
    return token


def live(user: User) -> "list[ApiToken]":
    """Return the user's tokens that are not revoked, the newest first."""
    return list(ApiToken.objects.filter(user=user, revoked_at=None).order_by("-id"))


def revoke(token: ApiToken) -> None:
    """Let the token open nothing from now on; done again, it changes nothing."""
    now = Now() + timedelta(seconds=clock.offset)
    ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=now)
    token.refresh_from_db(fields=["revoked_at"])


def _unseen(token: ApiToken) -> bool:
    return token.last_used_at is None or clock.now() - token.last_used_at >= SEEN_EVERY


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
