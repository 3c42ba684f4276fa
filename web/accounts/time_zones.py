"""The time zones of users, for pages, mails and reports."""

from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from django.contrib.auth.models import User

from tailrace.environment.discovery import import_modules


def zone_of(user: User) -> ZoneInfo:
    """Return the user's time zone by the first app whose `time_zone_of` returns one, else UTC."""
    hooks = [getattr(module, "time_zone_of", None) for module in import_modules("menu")]
    names = [hook(user) for hook in hooks if hook]
    return zone_named(next(filter(None, names), "UTC"))


def zone_named(name: str) -> ZoneInfo:
    """Return the time zone with this name, or UTC if the name is unknown."""
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError):  # a name that a newer time zone database has dropped
        return ZoneInfo("UTC")


@cache
def time_zone_names() -> frozenset[str]:
    """Return all names of the time zone database, such as Europe/Berlin. They are cached, since
    reading its files takes some milliseconds."""
    return frozenset(available_timezones())
