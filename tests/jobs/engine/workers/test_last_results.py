"""A worker's child that ends: its last results are waited for, and not for long."""

import os

import pytest
from billiard import get_context, pool


class NothingRead:
    """Billiard's count of the results that the main process has read, which stays at 0."""

    looks = 0

    @property
    def value(self) -> int:
        self.looks += 1
        return 0


def test_a_child_waits_two_seconds_for_its_results_to_be_read(monkeypatch) -> None:
    """Billiard has no setting for it: this fails, too, if its constant has another name."""
    interval = pool.GUARANTEE_MESSAGE_CONSUMPTION_RETRY_INTERVAL
    monkeypatch.setattr(pool, "GUARANTEE_MESSAGE_CONSUMPTION_RETRY_INTERVAL", 0)
    jobs, results, count = get_context().SimpleQueue(), get_context().SimpleQueue(), NothingRead()
    child = pool.Worker(jobs, results, maxtasks=1, on_ready_counter=count)
    child._make_child_methods()
    jobs.put((pool.TASK, (1, 0, len, ("ab",), {})))
    child.workloop(pid=os.getpid())
    assert [results.get()[0] for _ in range(2)] == [pool.ACK, pool.READY]
    assert count.looks * interval == pytest.approx(2)
