"""Limit the texts per day, per user and per number, so that two users cannot flood one number."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from django.conf import settings
from django.utils.crypto import salted_hmac

from tailrace.db.clock import DAY_SECONDS
from tailrace.jobs.destinations.rate_limit import take_from_window

CODES_PER_DAY = 5
"""The maximum number of confirmation codes per user and per number per day."""


class Text(NamedTuple):
    """A text to a user's number."""

    user: int
    phone: str
    urgent: bool = False

    @property
    def names(self) -> list[str]:
        """The names of the counters."""
        suffix = ":urgent" if self.urgent else ""
        return [f"{name}{suffix}" for name in _names(self.user, self.phone)]


def within_a_day(texts: Iterable[Text]) -> Callable[[Text], bool]:
    """Reserve these texts in one statement; an empty number is ignored.

    Return a function that returns whether a text may be sent, and counts it. Urgent texts have a
    limit of their own, so that no other text uses it up.
    """
    counts = Counter(name for text in texts if text.phone for name in text.names)
    left = take_from_window(counts, settings.SMS_PER_DAY, DAY_SECONDS)

    def take(text: Text) -> bool:
        names = text.names
        if not all(left.get(name, 0) > 0 for name in names):
            return False
        for name in names:
            left[name] -= 1
        return True

    return take


def take_code(user: int, phone: str) -> bool:
    """Count a code; return False if the user or the number has reached CODES_PER_DAY."""
    names = {f"{name}:code": 1 for name in _names(user, phone)}
    return all(take_from_window(names, CODES_PER_DAY, DAY_SECONDS).values())


def _names(user: int, phone: str) -> tuple[str, str]:
    number = salted_hmac("subscriptions.sms_limits", phone, algorithm="sha256").hexdigest()[:32]
    return f"sms:user:{user}", f"sms:number:{number}"
