"""API tokens: a program acts for a user, within scopes. Only a token's hash is stored."""

import hashlib
import re
import secrets
from collections.abc import Iterable
from datetime import timedelta
from functools import cache

from django.contrib.auth.models import User
from django.db.models import Q
from django.db.models.functions import Now

from db import clock
from db.query import database_now
from events.discovery import import_modules
from events.suggest import did_you_mean
from net.sanitize import one_line
from web.models import ApiToken

PREFIX = "tr_"
TOKEN_BYTES = 32
MAX_DAYS = 36_500
LAST_USED_EVERY = timedelta(minutes=1)
"""The time of a token's last use is updated at most this often."""

_FORMAT = re.compile(rf"{PREFIX}[\w-]{{43}}", re.ASCII)


class WrongToken(ValueError):
    """A token cannot be created like this."""


@cache
def scopes() -> dict[str, str]:
    """Return all scopes with their meanings, as the `api` modules of the apps declare them.

    Raises ValueError if two apps give one scope different meanings.
    """
    meanings: dict[str, str] = {}
    for module in import_modules("api"):
        for scope, meaning in getattr(module, "scopes", {}).items():
            if meanings.setdefault(scope, meaning) != meaning:
                raise ValueError(f"the scope {scope!r} already means: {meanings[scope]}")
    return meanings


def make(
    user: User, name: str, granted: Iterable[str], days: float | None = None
) -> tuple[ApiToken, str]:
    """Create a token with these scopes that expires after so many days (None: never).

    Returns it with its text, which is not stored. Raises WrongToken for an unknown scope, no scope
    or an empty name.
    """
    granted, known = sorted(set(granted)), scopes()
    for scope in granted:
        if scope not in known:
            raise WrongToken(f"There is no scope {scope!r}{did_you_mean(scope, known)}")
    if not granted:
        raise WrongToken(f"A token needs a scope: {', '.join(known)}")
    if not one_line(name):
        raise WrongToken("A token needs a name.")
    if days is not None and not 0 < days <= MAX_DAYS:
        raise WrongToken(f"Lifetime must be between 1 and {MAX_DAYS} days.")
    text = PREFIX + secrets.token_urlsafe(TOKEN_BYTES)
    token = ApiToken.objects.create(
        user=user,
        name=one_line(name)[:100],
        scopes=granted,
        token_hash=_hash(text),
        expires_at=None if days is None else database_now() + timedelta(days=days),
    )
    return token, text


def find(text: str) -> ApiToken | None:
    """Return the valid token of this text with its active user, and record that it is used."""
    if not _FORMAT.fullmatch(text):
        return None
    now = Now() + timedelta(seconds=clock.offset)
    stale = Q(last_used_at=None) | Q(last_used_at__lte=now - LAST_USED_EVERY)
    token = (
        ApiToken.objects.select_related("user")
        .annotate(stale=stale)
        .filter(Q(expires_at=None) | Q(expires_at__gt=now))
        .filter(token_hash=_hash(text), revoked_at=None, user__is_active=True)
        .first()
    )
    if token is not None and token.stale:
        ApiToken.objects.filter(stale, pk=token.pk).update(last_used_at=now)
    return token


def active(user: User) -> list[ApiToken]:
    """Return the user's tokens that are not revoked, the newest first."""
    return list(ApiToken.objects.filter(user=user, revoked_at=None).order_by("-id"))


def revoke(token: ApiToken) -> None:
    """Make the token invalid; a second call changes nothing."""
    now = Now() + timedelta(seconds=clock.offset)
    ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=now)
    token.refresh_from_db(fields=["revoked_at"])


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
