"""The last result of a slow function is used again, for a time."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tailrace.jobs.platform.inspection.recent import Recent


class Slow:
    """Counts its calls; each call after the first waits for `go`."""

    def __init__(self) -> None:
        self.calls = 0
        self.began, self.go = threading.Event(), threading.Event()

    def __call__(self) -> int:
        self.calls += 1
        if self.calls > 1:
            self.began.set()
            assert self.go.wait(60)
        return self.calls


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as pool:
        yield pool


def test_the_function_is_called_once_until_its_result_is_old() -> None:
    work = Slow()
    recent = Recent(work)
    assert (recent.get(60), recent.get(60)) == (1, 1)
    work.go.set()
    assert recent.get(-1) == 2
    recent.forget()
    assert recent.get(60) == 3


def test_the_previous_result_is_used_while_another_thread_works(
    threads: ThreadPoolExecutor,
) -> None:
    work = Slow()
    recent = Recent(work)
    recent.get(60)
    other = threads.submit(recent.get, -1)
    assert work.began.wait(60)
    assert recent.get(-1) == 1
    work.go.set()
    assert other.result(60) == 2


def test_a_caller_that_needs_a_recent_result_waits(threads: ThreadPoolExecutor) -> None:
    work = Slow()
    recent = Recent(work)
    recent.get(60)
    other = threads.submit(recent.get, -1)
    assert work.began.wait(60)
    waiting = threads.submit(recent.get, -1, waits=True)
    assert not waiting.done()
    work.go.set()
    assert other.result(60) == 2
    assert waiting.result(60) == 3
