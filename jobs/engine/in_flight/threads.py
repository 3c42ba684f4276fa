"""The threads in which async handlers run sync code: Django's ORM, `sync_to_async`.

asgiref's default is one thread for all of a process, in which one slow statement would delay all
jobs. Here there are a few; each job keeps to one of them, so that it has one database connection.
"""

import functools
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

from django.db import connections as django_connections

from tailrace.db import connections
from tailrace.jobs.clean_connections import left_clean

MOST_THREADS = 4
"""For sync code of jobs, per process; each has a connection once it has used the database."""


class _Thread(ThreadPoolExecutor):
    """One thread, and how many calls it has to do."""

    def __init__(self, number: int) -> None:
        super().__init__(1, thread_name_prefix=f"sync-{number}")
        self.calls = 0


class Threads:
    """The threads of one event loop; used from that loop alone."""

    def __init__(self) -> None:
        self._threads: list[_Thread] = []

    def least_busy(self) -> _Thread:
        """Return a thread that has nothing to do, if there is one or may be another."""
        best = min(self._threads, key=lambda thread: thread.calls, default=None)
        if best is None or (best.calls and len(self._threads) < MOST_THREADS):
            best = _Thread(len(self._threads))
            self._threads.append(best)
        return best

    def close(self) -> None:
        """Let the threads close their connections and end; does not wait for them."""
        for thread in self._threads:
            thread.submit(django_connections.close_all)
            thread.shutdown(wait=False)


class JobThread(Executor):
    """The thread of one job: chosen when the job first needs it."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._thread: _Thread | None = None

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        is_first = self._thread is None
        thread = self._thread = self._thread or self._threads.least_busy()
        thread.calls += 1
        future = thread.submit(_call, is_first, functools.partial(fn, *args, **kwargs))
        future.add_done_callback(lambda _future: _done(thread))
        return future


def _done(thread: _Thread) -> None:
    thread.calls -= 1


class OtherThreads(ThreadPoolExecutor):
    """For `asyncio.to_thread` and sync code that is not thread sensitive."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        return super().submit(_call, True, functools.partial(fn, *args, **kwargs))


def _call(is_first: bool, call: Callable[[], Any]) -> Any:
    """Call, and prove the connections of this thread clean after it, for they are the next job's.

    `is_first`: let them be proved alive before they are used.
    """
    if is_first:
        connections.check_at_next_use()
    with left_clean("sync code"):
        return call()
