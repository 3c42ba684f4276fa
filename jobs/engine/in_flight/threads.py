"""The threads for sync code of async handlers: Django's ORM, `sync_to_async`.

By default asgiref uses one thread per process, in which one slow statement would delay all jobs.
Here there are several threads. Each job uses only one of them, so it has one database connection.
"""

import functools
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

from django.db import connections as django_connections

from tailrace.db import connections
from tailrace.jobs.engine.run.handler_call import left_clean

MOST_THREADS = 4
"""Threads for sync code of jobs, per process. Each opens a connection when it first needs one."""


class _Thread(ThreadPoolExecutor):
    """One thread, and the number of its unfinished calls."""

    def __init__(self, number: int) -> None:
        super().__init__(1, thread_name_prefix=f"sync-{number}")
        self.calls = 0

    def ended(self, _future: "Future[Any]") -> None:
        self.calls -= 1


class Threads:
    """The threads of one event loop. Used only from that loop."""

    def __init__(self) -> None:
        self._threads: list[_Thread] = []

    def least_busy(self) -> _Thread:
        """Return the thread with the fewest unfinished calls; a new thread if all are busy and
        there are fewer than MOST_THREADS."""
        best = min(self._threads, key=lambda thread: thread.calls, default=None)
        if best is None or (best.calls and len(self._threads) < MOST_THREADS):
            best = _Thread(len(self._threads))
            self._threads.append(best)
        return best

    def close(self) -> None:
        """Make the threads close their connections and end, without waiting for them."""
        for thread in self._threads:
            thread.submit(django_connections.close_all)
            thread.shutdown(wait=False)


class JobThread(Executor):
    """The thread of one job, chosen when the job first needs it."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._thread: _Thread | None = None

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        is_first = self._thread is None
        thread = self._thread = self._thread or self._threads.least_busy()
        thread.calls += 1
        future = thread.submit(_call, is_first, functools.partial(fn, *args, **kwargs))
        future.add_done_callback(thread.ended)
        return future


class OtherThreads(ThreadPoolExecutor):
    """The threads for `asyncio.to_thread` and for sync code that is not thread-sensitive."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        return super().submit(_call, True, functools.partial(fn, *args, **kwargs))


def _call(is_first: bool, call: Callable[[], Any]) -> Any:
    """Call `call`, then clean the connections of this thread for the next job. `is_first`: check
    them before they are used."""
    if is_first:
        connections.check_at_next_use()
    with left_clean("sync code"):
        return call()
