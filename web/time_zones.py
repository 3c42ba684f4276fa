"""The time zones of people: apart from the pages, since mails and reports have them, too."""

from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from django.contrib.auth.models import User

from tailrace.events.discovery import import_modules


def zone_of(user: User) -> ZoneInfo:
    """Return the time zone of the user as the `time_zone_of` of an app returns it, else UTC."""
    hooks = [getattr(module, "time_zone_of", None) for module in import_modules("menu")]
    names = [hook(user) for hook in hooks if hook]
    return zone_named(next(filter(None, names), "UTC"))


def zone_named(name: str) -> ZoneInfo:
    """Return the time zone of this name, or UTC."""
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError):  # a name that a newer time zone database has dropped
        return ZoneInfo("UTC")


@cache
def time_zone_names() -> frozenset[str]:
    """Return all names of the time zone database, such as Europe/Berlin. Its files are read once in
    each process: that takes some milliseconds."""
    return frozenset(available_timezones())
