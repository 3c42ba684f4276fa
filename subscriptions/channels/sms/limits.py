"""How many texts a user and a number get per day: two users cannot flood one number."""

from collections import Counter
from collections.abc import Iterable

from django.conf import settings
from django.utils.crypto import salted_hmac

from tailrace.jobs.destinations.rate_limit import take_from_window

DAY = 86_400.0
CODES_PER_DAY = 5
"""Codes that a user may ask for and a number gets, to confirm the number."""


class Left:
    """Texts that may be sent now, by user and number."""

    def __init__(self, counts: dict[str, int]) -> None:
        self._counts = counts

    def take(self, user: int, phone: str) -> bool:
        """Whether one more text may be sent."""
        names = _names(user, phone)
        if not all(self._counts.get(name, 0) > 0 for name in names):
            return False
        for name in names:
            self._counts[name] -= 1
        return True


def within_a_day(texts: Iterable[tuple[int, str]]) -> Left:
    """Count these texts, each to a user and a number (empty: none), in one statement."""
    wanted = Counter(name for user, phone in texts if phone for name in _names(user, phone))
    return Left(take_from_window(wanted, settings.SMS_PER_DAY, DAY))


def take_code(user: int, phone: str) -> bool:
    """Count one more code; False if the user or the number has had CODES_PER_DAY."""
    names = {f"{name}:code": 1 for name in _names(user, phone)}
    return all(take_from_window(names, CODES_PER_DAY, DAY).values())


def _names(user: int, phone: str) -> tuple[str, str]:
    number = salted_hmac("subscriptions.sms_limits", phone, algorithm="sha256").hexdigest()[:32]
    return f"sms:user:{user}", f"sms:number:{number}"
