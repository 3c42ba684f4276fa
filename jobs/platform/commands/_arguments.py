"""Check arguments that several commands share."""

from django.core.management.base import CommandError

from tailrace.environment.suggest import did_you_mean
from tailrace.jobs.models import Queue


def queue_name(name: str) -> str:
    """Return the name if a queue has it; raises CommandError with "did you mean"."""
    names = list(Queue.objects.values_list("name", flat=True))
    if name not in names:
        raise CommandError(f"no queue is called {name!r}{did_you_mean(name, names)}")
    return name
