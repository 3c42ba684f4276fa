"""One job that runs a call."""

from typing import Any

import pytest

from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import Job
from tests.kit import claimed, run_and_settle
from tests.sandbox.handlers import Working


@pytest.fixture
def run_one(scripted, run_jobs):
    """Return `run_one(call)`: enqueue one job, run it with `call`, and return it."""

    def run(call: Any) -> Job:
        scripted("test.work", call)
        id = enqueue(Working)
        run_and_settle(claimed("test.work"))
        return Job.objects.get(pk=id)

    return run
