"""The calls in flight of the test's own process, ended after each test."""

from collections.abc import Callable, Iterator

import pytest

from tailrace.jobs.engine import in_flight
from tailrace.jobs.models import Job


@pytest.fixture
def ring() -> Iterator[Callable[[str], None]]:
    """Return what the Celery task of an async handler does: let this process look at its queue."""
    yield in_flight.notify
    in_flight.shut_down(0)
    in_flight._begin()


def states(name: str) -> list[str]:
    """Return the states of the jobs of this queue, in the order in which they were enqueued."""
    return list(Job.objects.filter(handler=name).order_by("id").values_list("state", flat=True))


def all_in(*wanted: str) -> Callable[[], bool]:
    """Return a condition: all jobs are in one of these states."""
    return lambda: not Job.objects.exclude(state__in=wanted).exists()
