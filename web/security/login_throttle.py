"""Slow down those who guess passwords: after some free attempts each failure doubles the wait.

An attempt is counted before the password is checked, and given back when it was right, so forty
attempts at once are forty attempts. What is counted:

- in a browser that signed in as this user before (it has a signed cookie): its own failures alone;
- elsewhere: those of the address with this name, of the address with any name, and of the name from
  all such browsers. That of a name is generous and its wait short, since strangers cause it: with
  it, they delay the user in a new browser for half a minute at most, and never in a known one.

Names that nobody has are counted like all others.
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
from tailrace.db.token_bucket import tokens_at
from tailrace.web.security.request import client_address, network

SLOTS = 65_536
"""Of each kind; who shares one is slowed down a little by the other."""
DEEPEST = -12.0
"""The failures that are counted at most, below none that are free: time makes up for them."""
PLENTY = 1e6
"""More free attempts than any limit has: a slot has no more than its limit when it is read."""
COOKIE = "known_browser"
COOKIE_DAYS = 180
COOKIE_USERS = 5
"""Users that one browser is known for, at most: the last ones."""


@dataclass(frozen=True, slots=True)
class Limit:
    """How many failures are free, after how many seconds one more is, and the longest wait."""

    kind: str
    free: int
    refill: float
    longest: float


BROWSER = Limit("browser", 5, 600, 900)
PAIR = Limit("pair", 5, 600, 900)
ADDRESS = Limit("address", 20, 60, 900)
NAME = Limit("name", 100, 60, 30)
CODE = Limit("code", 5, 600, 900)
"""Of a user who has given the right password: codes of the second factor."""
CONFIRMATION = Limit("confirmation", 5, 600, 900)
"""Of a user who is signed in and asked for the password again."""
MAIL = Limit("mail", 3, 1200, 3600)
"""Mails to reset a password, per mail address."""
MAIL_ADDRESS = Limit("mail_address", 20, 300, 3600)
"""Mails to reset a password that one IP address may ask for."""


class TooManyAttempts(Exception):
    """Refused without a look at the password; `wait` is in seconds."""

    def __init__(self, wait: float) -> None:
        self.wait = max(math.ceil(wait), 1)
        super().__init__(f"Too many attempts. Try again in {_in_words(self.wait)}.")


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt that was counted."""

    slots: Sequence[str]
    failures: int
    """How many there are in a row, this one included, in the slot that counts the least."""
    own: Sequence[str] = field(default=())
    """The slots that a success clears: nobody else fills them."""

    def succeeded(self) -> None:
        """Take back what was counted, and forget the failures of the same person."""
        execute(_GIVE_BACK, slots=list(self.slots), own=list(self.own), plenty=PLENTY)

    def undo(self) -> None:
        """Take back what was counted, since the password was not checked."""
        execute(_GIVE_BACK, slots=list(self.slots), own=[], plenty=PLENTY)


def attempt_login(request: HttpRequest, name: str) -> Attempt:
    """Count an attempt to sign in under this name, or raise TooManyAttempts."""
    name = unicodedata.normalize("NFKC", name).casefold()
    address = network(client_address(request))
    if browser := _known(request).get(_mark(name)):
        return attempt([(BROWSER, f"{name} {browser}")], own=1)
    return attempt([(PAIR, f"{name} {address}"), (ADDRESS, address), (NAME, name)], own=1)


def attempt(limits: Iterable[tuple[Limit, str]], own: int = 0) -> Attempt:
    """Count an attempt in the slots of these values, or raise TooManyAttempts and count nothing.

    A success clears the first `own` of them.
    """
    slots = {_slot(limit, value): limit for limit, value in limits}
    names = list(slots)
    with transaction.atomic():
        execute(_CREATE, slots=names, free=[float(limit.free) for limit in slots.values()])
        rows = {
            slot: (tries, since, failures)
            for slot, tries, since, failures in query(_LOCK, **_columns(slots))
        }
        wait = max(_wait(slots[slot], tries, since) for slot, (tries, since, _) in rows.items())
        if wait > 0:
            raise TooManyAttempts(wait)
        execute(_COUNT, deepest=DEEPEST, **_columns(slots))
    return Attempt(names, rows[names[0]][2] + 1, names[:own])


def _wait(limit: Limit, tries: float, since: float) -> float:
    """Return the seconds that are left to wait: 1, 2, 4 … after the free attempts."""
    if tries >= 1:
        return 0.0
    return min(limit.longest, 2.0 ** (1 - tries)) - since


def remember_browser(request: HttpRequest, response: HttpResponse, user: User) -> None:
    """Let the user sign in from this browser, however often others fail elsewhere."""
    name = unicodedata.normalize("NFKC", user.get_username()).casefold()
    known = _known(request)
    browser = known.pop(_mark(name), "") or secrets.token_urlsafe(12)
    known = dict([*known.items(), (_mark(name), browser)][-COOKIE_USERS:])
    response.set_cookie(
        COOKIE,
        signing.dumps(known, salt=COOKIE),
        max_age=COOKIE_DAYS * 86_400,
        path="/accounts/",
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def _known(request: HttpRequest) -> dict[str, str]:
    """Return the ids of this browser, by the marks of the users that signed in."""
    try:
        known = signing.loads(
            request.COOKIES.get(COOKIE, ""), salt=COOKIE, max_age=COOKIE_DAYS * 86_400
        )
    except signing.BadSignature:
        return {}
    return {str(mark): str(browser) for mark, browser in known.items()}


def _mark(name: str) -> str:
    return salted_hmac("tailrace.web.security.known_browser", name, algorithm="sha256").hexdigest()[
        :16
    ]


def _slot(limit: Limit, value: str) -> str:
    digest = salted_hmac("tailrace.web.security.login_throttle", value, algorithm="sha256").digest()
    return f"{limit.kind}:{int.from_bytes(digest[:4], 'big') % SLOTS}"


def _columns(slots: dict[str, Limit]) -> dict[str, list[object]]:
    return {
        "slots": list(slots),
        "free": [float(limit.free) for limit in slots.values()],
        "refill": [1 / limit.refill for limit in slots.values()],
    }


def _in_words(seconds: int) -> str:
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
# Locked in the order of their names: two attempts never wait for each other.
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
