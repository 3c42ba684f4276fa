"""Slow down password guessing: after some free attempts, each failure doubles the wait.

An attempt is counted before the password is checked and given back if the password is right, so
that all parallel attempts are counted. These failures are counted:

- in a browser that signed in as this user before (a signed cookie marks it): only the failures of
  this browser;
- in other browsers: the failures of the IP address with this login, of the IP address with any
  login, and of this login from all IP addresses. The limit per login is high and its wait is short,
  since strangers can exceed it: they can delay the user by at most 30 seconds in a new browser, and
  not at all in a known one.

Logins that no user has are counted in the same way.
"""

import math
import secrets
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from django.conf import settings
from django.contrib.auth.models import User
from django.core import signing
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import salted_hmac

from tailrace.db import clock
from tailrace.db.query import execute, query
from tailrace.db.sql.token_bucket import tokens_at
from tailrace.web.accounts.security.request import client_address, network

SLOTS = 65_536
"""Slots of each kind. Two values with the same slot share its attempts."""
DEEPEST = -12.0
"""The lowest number of attempts left; further failures are not counted. Time refills it."""
PLENTY = 1e6
"""A number above every limit. Attempts are capped by the limit when a slot is read."""
COOKIE = "known_browser"
COOKIE_DAYS = 180
COOKIE_USERS = 5
"""Maximum number of users for which a browser is known: the last ones that signed in."""


@dataclass(frozen=True, slots=True)
class Limit:
    """The failures without a wait (`free`), the seconds after which one more is free (`refill`),
    and the longest wait in seconds."""

    kind: str
    free: int
    refill: float
    longest: float


BROWSER = Limit("browser", 5, 600, 900)
PAIR = Limit("pair", 5, 600, 900)
ADDRESS = Limit("address", 20, 60, 900)
NAME = Limit("name", 100, 60, 30)
CODE = Limit("code", 5, 600, 900)
"""Codes of the second factor, per user who entered the right password."""
CONFIRMATION = Limit("confirmation", 5, 600, 900)
"""Passwords that a signed-in user is asked for again, per user."""
MAIL = Limit("mail", 3, 1200, 3600)
"""Password reset mails per mail address."""
MAIL_ADDRESS = Limit("mail_address", 20, 300, 3600)
"""Password reset mails per IP address that requests them."""


class TooManyAttempts(Exception):
    """The attempt was refused without checking the password; `wait` is in seconds."""

    def __init__(self, wait: float) -> None:
        self.wait = max(math.ceil(wait), 1)
        super().__init__(f"Too many attempts. Try again in {_duration(self.wait)}.")


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt that was counted."""

    slots: Sequence[str]
    failures: int
    """Failures in a row in the first slot, this attempt included."""
    own: Sequence[str] = field(default=())
    """The slots that a success clears, since only this user's failures count there."""

    def succeeded(self) -> None:
        """Give the attempt back and clear the user's own slots."""
        execute(_GIVE_BACK, slots=list(self.slots), own=list(self.own), plenty=PLENTY)

    def undo(self) -> None:
        """Give the attempt back, since the password was not checked."""
        execute(_GIVE_BACK, slots=list(self.slots), own=[], plenty=PLENTY)


def attempt_login(request: HttpRequest, name: str) -> Attempt:
    """Count an attempt to sign in with this login, or raise TooManyAttempts."""
    name = unicodedata.normalize("NFKC", name).casefold()
    address = network(client_address(request))
    if browser := _known_browser_ids(request).get(_login_hash(name)):
        return attempt([(BROWSER, f"{name} {browser}")], own=1)
    return attempt([(PAIR, f"{name} {address}"), (ADDRESS, address), (NAME, name)], own=1)


def attempt(limits: Iterable[tuple[Limit, str]], own: int = 0) -> Attempt:
    """Count an attempt for each limit and value, or raise TooManyAttempts and count nothing.

    The attempt's success clears the slots of the first `own` limits.
    """
    slots = {_slot(limit, value): limit for limit, value in limits}
    names = list(slots)
    columns = {
        "slots": names,
        "free": [float(limit.free) for limit in slots.values()],
        "refill": [1 / limit.refill for limit in slots.values()],
    }
    with transaction.atomic():
        execute(_CREATE, **columns)
        rows = {slot: row for slot, *row in query(_LOCK, **columns)}
        wait = max(_wait(slots[slot], tries, since) for slot, (tries, since, _) in rows.items())
        if wait > 0:
            raise TooManyAttempts(wait)
        execute(_COUNT, deepest=DEEPEST, **columns)
    return Attempt(names, rows[names[0]][2] + 1, names[:own])


def _wait(limit: Limit, tries: float, since: float) -> float:
    """Return the seconds left to wait. The wait is 1, 2, 4 … seconds after the free attempts."""
    if tries >= 1:
        return 0.0
    return min(limit.longest, 2.0 ** (1 - tries)) - since


def remember_browser(request: HttpRequest, response: HttpResponse, user: User) -> None:
    """Mark the browser as known for the user with a cookie: failures elsewhere do not delay it."""
    name = unicodedata.normalize("NFKC", user.get_username()).casefold()
    ids = _known_browser_ids(request)
    browser = ids.pop(_login_hash(name), "") or secrets.token_urlsafe(12)
    ids = dict([*ids.items(), (_login_hash(name), browser)][-COOKIE_USERS:])
    response.set_cookie(
        COOKIE,
        signing.dumps(ids, salt=COOKIE),
        max_age=COOKIE_DAYS * 86_400,
        path="/accounts/",
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def _known_browser_ids(request: HttpRequest) -> dict[str, str]:
    """Return the ids of this browser, by the login hashes of the users that signed in."""
    try:
        ids = signing.loads(
            request.COOKIES.get(COOKIE, ""), salt=COOKIE, max_age=COOKIE_DAYS * 86_400
        )
    except signing.BadSignature:
        return {}
    return {str(login): str(browser) for login, browser in ids.items()}


def _login_hash(name: str) -> str:
    digest = salted_hmac("tailrace.web.security.known_browser", name, algorithm="sha256")
    return digest.hexdigest()[:16]


def _slot(limit: Limit, value: str) -> str:
    digest = salted_hmac("tailrace.web.security.login_throttle", value, algorithm="sha256").digest()
    return f"{limit.kind}:{int.from_bytes(digest[:4], 'big') % SLOTS}"


def _duration(seconds: int) -> str:
    minutes = math.ceil(seconds / 60)
    if seconds < 60:
        return "1 second" if seconds == 1 else f"{seconds} seconds"
    return "1 minute" if minutes == 1 else f"{minutes} minutes"


_WANTED = """unnest(%(slots)s::text[], %(free)s::float8[], %(refill)s::float8[])
  AS w (slot, free, refill)"""
_TRIES = tokens_at(
    clock.NOW, tokens="t.tries", filled_at="t.at", capacity="w.free", rate="w.refill"
)
_CREATE = f"""
INSERT INTO tailrace_web_loginthrottle (slot, tries, failures, at)
SELECT slot, free, 0, {clock.NOW}
FROM unnest(%(slots)s::text[], %(free)s::float8[]) AS w (slot, free) ORDER BY slot
ON CONFLICT (slot) DO NOTHING
"""
# The rows are locked in the order of their slots, so that two attempts cannot deadlock.
_LOCK = f"""
SELECT t.slot, {_TRIES}, greatest(extract(epoch FROM {clock.NOW} - t.at), 0)::float8,
  CASE WHEN {_TRIES} >= w.free THEN 0 ELSE t.failures END
FROM tailrace_web_loginthrottle t JOIN {_WANTED} USING (slot)
ORDER BY t.slot FOR UPDATE OF t
"""
_COUNT = f"""
UPDATE tailrace_web_loginthrottle t SET
  tries = greatest({_TRIES} - 1, %(deepest)s),
  failures = CASE WHEN {_TRIES} >= w.free THEN 1 ELSE t.failures + 1 END,
  at = {clock.NOW}
FROM {_WANTED} WHERE t.slot = w.slot
"""
_GIVE_BACK = """
WITH held AS MATERIALIZED (
  SELECT slot FROM tailrace_web_loginthrottle WHERE slot = ANY(%(slots)s) ORDER BY slot FOR UPDATE
)
UPDATE tailrace_web_loginthrottle t SET
  tries = CASE WHEN t.slot = ANY(%(own)s) THEN %(plenty)s ELSE t.tries + 1 END,
  failures = CASE WHEN t.slot = ANY(%(own)s) THEN 0 ELSE greatest(t.failures - 1, 0) END
FROM held WHERE t.slot = held.slot
"""
