from collections.abc import Iterator
from typing import Any

import pytest

from tailrace.db import clock
from tailrace.jobs.models import Pulse
from tailrace.jobs.platform.inspection import broker, verdict
from tailrace.jobs.platform.inspection.verdict.causes.workers import worker_outdated
from tests.jobs import operators


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    """No verdict and no code of another test; the broker answers."""
    verdict.forget()
    worker_outdated.on_disk.forget()
    broker.recent.forget()
    yield
    broker.recent.forget()
    worker_outdated.on_disk.forget()


@pytest.fixture
def system(db: Any) -> None:
    """One worker that serves all queues ticks, and nothing is wrong."""
    operators.register_handlers()
    Pulse.objects.create(name="tick", at=clock.now(), by="w@test")
    operators.worker("w@test")
