"""API tokens, with which a program acts for a user, within scopes. Only their hashes are stored."""

import hashlib
import re
import secrets
from collections.abc import Iterable
from datetime import timedelta
from functools import cache

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from tailrace.db import clock
from tailrace.db.query import database_now
from tailrace.environment.discovery import import_modules
from tailrace.environment.suggest import did_you_mean
from tailrace.events.catalog.topics import EVERYTHING, all_topic_names, topic_names
from tailrace.events.types import EventType
from tailrace.net.sanitize import one_line
from tailrace.web.accounts.security.log import record
from tailrace.web.accounts.user_lock import locked
from tailrace.web.event_types import TokenMade, TokenRevoked
from tailrace.web.models import ApiToken

PREFIX = "tr_"
TOKEN_BYTES = 32
MAX_DAYS = 36_500
MAX_TOKENS = 100
"""Maximum number of active tokens of a user."""
MAX_SOURCE_LENGTH = 40
"""Maximum length of a token's event source, which is stored after the user's name."""
RECORDS_EVENTS = "events:write"
"""The scope for recording events. A token with it needs event types and a source."""
LAST_USED_EVERY = timedelta(minutes=1)
"""`last_used_at` of a token is updated at most this often."""

_FORMAT = re.compile(rf"{PREFIX}[\w-]{{43}}", re.ASCII)


class WrongToken(ValueError):
    """The properties of a token are not valid; the message says which."""


@cache
def scopes() -> dict[str, str]:
    """Return the meanings of all scopes, by scope, as declared in the `api` modules of the apps.
    Raises ValueError if two apps declare different meanings of a scope."""
    meanings: dict[str, str] = {}
    for module in import_modules("api"):
        for scope, meaning in getattr(module, "scopes", {}).items():
            if meanings.setdefault(scope, meaning) != meaning:
                raise ValueError(f"the scope {scope!r} has another meaning: {meanings[scope]}")
    return meanings


def make(
    user: User,
    name: str,
    granted: Iterable[str],
    days: float | None = None,
    *,
    event_types: Iterable[str] = (),
    event_source: str = "",
) -> tuple[ApiToken, str]:
    """Create a token with these scopes that expires after `days` (None: never); return it and its
    text, which is not stored. With the scope events:write it may record only events of
    `event_types` (names of types and families), with the source `event_source`. Raises WrongToken
    if one of these is invalid or missing, or the user has MAX_TOKENS tokens."""
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
    recorded = checked_event_types(event_types)
    source = checked_event_source(event_source)
    check_rights(granted, recorded, source)
    text = PREFIX + secrets.token_urlsafe(TOKEN_BYTES)
    with locked(user):
        if len(active(user)) >= MAX_TOKENS:
            raise WrongToken(f"{user} already has {MAX_TOKENS} tokens: revoke one first.")
        token = ApiToken.objects.create(
            user=user,
            name=one_line(name)[:100],
            scopes=granted,
            event_types=recorded,
            event_source=source,
            token_hash=_hash(text),
            expires_at=None if days is None else database_now() + timedelta(days=days),
        )
    return token, text


def check_rights(scopes: Iterable[str], event_types: Iterable[str], event_source: str) -> None:
    """Raise WrongToken unless the token has the scope events:write, event types and a source, or
    none of the three."""
    records = RECORDS_EVENTS in scopes
    if records and not (event_types and event_source):
        raise WrongToken(
            f"The scope {RECORDS_EVENTS} needs the event types that the token may record, and the"
            " source of its events, such as /ci."
        )
    if not records and (event_types or event_source):
        raise WrongToken(f"Event types and a source need the scope {RECORDS_EVENTS}.")


def event_type_names() -> list[str]:
    """Return the names of all event types and families that a token may record."""
    return [name for name in all_topic_names(api=True) if name != EVERYTHING]


def checked_event_types(names: Iterable[str]) -> list[str]:
    """Return the names sorted and without duplicates. Raises WrongToken for an unknown name."""
    names, known = sorted({name.strip() for name in names}), event_type_names()
    for name in names:
        if name == EVERYTHING:
            raise WrongToken("'*' is not an event type: name each family that the token may record")
        if name not in known:
            raise WrongToken(
                f"The API can record no event type or family called {name!r}"
                f"{did_you_mean(name, known)}"
            )
    return names


def checked_event_source(source: str) -> str:
    """Return the source without surrounding spaces. Raises WrongToken if it is not valid."""
    source = source.strip()
    if source != one_line(source) or len(source) > MAX_SOURCE_LENGTH:
        raise WrongToken(
            f"A source is a path or URI of at most {MAX_SOURCE_LENGTH} characters, such as /ci;"
            f" not {source[:50]!r}"
        )
    return source


def may_record(token: ApiToken, event_type: type[EventType]) -> bool:
    """Whether the token may record events of this type: it has the type or one of its families."""
    return event_type.api_records and not {*topic_names(event_type)}.isdisjoint(token.event_types)


def record_made(token: ApiToken) -> None:
    """Record a new token in the security log, in the transaction that created the token."""
    fields = {"scopes": token.scopes, "expires_at": token.expires_at}
    record(TokenMade, token.user, token=token.pk, token_name=token.name, **fields)


def find(text: str) -> ApiToken | None:
    """Return the valid token with this text, if its user is active, and update `last_used_at`."""
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
    """Return the user's tokens that are not revoked, newest first."""
    return list(ApiToken.objects.filter(user=user, revoked_at=None).order_by("-id"))


def revoke(token: ApiToken) -> None:
    """Revoke the token and record it in the security log. A second call changes nothing."""
    now = Now() + timedelta(seconds=clock.offset)
    with transaction.atomic():
        if ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=now):
            record(TokenRevoked, token.user, token=token.pk, token_name=token.name)
    token.refresh_from_db(fields=["revoked_at"])


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
