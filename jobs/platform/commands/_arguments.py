"""Parse arguments that several commands share."""

from django.core.management.base import CommandError

from tailrace.environment.suggest import did_you_mean
from tailrace.jobs.models import Queue

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def seconds(text: str) -> int | None:
    """Return the seconds of a duration such as `2h` or `7d`; None if the text is no duration."""
    if text[-1:] in _UNITS and text[:-1].isdecimal():
        return int(text[:-1]) * _UNITS[text[-1]]
    return None


def queue_name(name: str) -> str:
    """Return the name if a queue has it; raises CommandError with "did you mean"."""
    names = list(Queue.objects.values_list("name", flat=True))
    if name not in names:
        raise CommandError(f"no queue is called {name!r}{did_you_mean(name, names)}")
    return name
