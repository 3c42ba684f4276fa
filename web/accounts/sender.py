"""The sender of a request, as far as its head tells: before the body is read."""

from dataclasses import dataclass
from importlib import import_module

from django.conf import settings
from django.contrib.auth import get_user
from django.db import close_old_connections
from django.http import HttpRequest, parse_cookie

from tailrace.db import connections
from tailrace.db.limits import time_limits
from tailrace.web.accounts import budget, tokens

STATEMENT_SECONDS = 2.0


@dataclass(frozen=True)
class Credentials:
    """A token's text, a session's key, or both. Either is enough, since pages take only the
    session and the API prefers the token."""

    token: str
    session: str

    @classmethod
    def of(cls, authorization: str, cookies: str) -> "Credentials | None":
        """Return the credentials in these two headers, or None if there are none."""
        scheme, _, token = authorization.partition(" ")
        token = token.strip() if scheme.lower() == "bearer" else ""
        session = parse_cookie(cookies).get(settings.SESSION_COOKIE_NAME, "")
        session = session if session.isprintable() else ""
        return cls(token, session) if token or session else None


def user_of(credentials: Credentials, network: str) -> int | None:
    """Return the id of the active user with these credentials, or None; then one request counts
    against the budget of the network. Changes nothing else, so the app still has to check and
    count the request. For threads outside of requests. Raises BudgetExceeded and DatabaseError."""
    close_old_connections()
    try:
        user = _user_of(credentials)
        if user is None:
            budget.spend_of_network(network, "unknown_sender")
        return user
    finally:
        close_old_connections()


def _user_of(credentials: Credentials) -> int | None:
    with time_limits(STATEMENT_SECONDS, STATEMENT_SECONDS):
        try:
            if token := tokens.find(credentials.token):
                return token.user_id
            request = HttpRequest()
            sessions = import_module(settings.SESSION_ENGINE)
            request.session = sessions.SessionStore(credentials.session)
            user = get_user(request)
            return user.pk if user.is_active else None
        finally:
            # Both may write: when a token was last used, the end of a session.
            connections.current().set_rollback(True)
