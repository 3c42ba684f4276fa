"""A backend for each test, and its poller."""

from collections.abc import Callable, Iterator

import pytest

from tailrace.domains.builds.handlers.poll import Poll
from tailrace.domains.builds.models import Poller
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import Job
from tests.servers import backend as servers


@pytest.fixture
def backend(settings) -> Iterator[servers.TestBackend]:
    """A running backend that is configured under the name `main`, and read from its beginning."""
    with servers.running() as running:
        settings.OBS_BACKENDS = {"main": running.url}
        settings.OBS_TIMEOUT_SECONDS = 5
        settings.OBS_START, settings.OBS_PAST = "oldest", "notify"
        yield running


@pytest.fixture
def poll(run_jobs) -> Callable[[], Job]:
    """Let the poller of `main` have one job, run what is due, and return the job."""

    def once() -> Job:
        id = enqueue(Poll, routing_key="main")
        run_jobs("builds.poll")
        return Job.objects.get(pk=id)

    return once


@pytest.fixture
def poller() -> Callable[[], Poller]:
    """Return the poller of `main` as it stands now."""
    return lambda: Poller.objects.get(name="main")
