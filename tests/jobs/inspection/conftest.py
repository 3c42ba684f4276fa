import pytest

from tailrace.db import clock
from tailrace.jobs.models import Pulse

QUEUES = ["test.work", "test.other", "test.fair", "test.ordered", "test.log"]


@pytest.fixture
def running_worker(db: None) -> None:
    """A worker and the tick have just been seen."""
    Pulse.objects.create(name="worker:w@test", at=clock.now(), queues=QUEUES)
    Pulse.objects.create(name="tick", at=clock.now())
