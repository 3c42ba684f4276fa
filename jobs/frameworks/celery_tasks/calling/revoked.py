"""Interrupt a call whose task is revoked with `terminate` while it runs."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from tailrace.db import connections
from tailrace.db.query import query
from tailrace.jobs.frameworks.celery_tasks.calling.limits import Limits
from tailrace.jobs.runtime import thread_failures

log = structlog.get_logger(__name__)

LOOK_SECONDS = 0.5
"""Seconds between two looks at the database for a call that takes longer than this."""
IDLE_SECONDS = 30
"""Without a call for this long, the thread closes its database connection."""
_REVOKED = """
SELECT 1 FROM tailrace_jobs_celerytask t JOIN tailrace_jobs_live j ON j.id = t.job_id
WHERE t.job_id = %(job)s AND t.state = 'REVOKED' AND j.cancel_requested
"""


class _Watcher:
    """The call that this process runs, and the thread that looks whether it was revoked."""

    def __init__(self) -> None:
        self._begin()
        os.register_at_fork(after_in_child=self._begin)  # the thread stays in the parent

    def _begin(self) -> None:
        self._changed = threading.Condition()
        self._call: tuple[int, Limits] | None = None
        self._runs = False

    @contextmanager
    def watched(self, job: int, limits: Limits) -> Iterator[None]:
        call = (job, limits)
        with self._changed:
            self._call = call
            starts, self._runs = not self._runs, True
            self._changed.notify()
        if starts:
            self._start()
        try:
            yield
        finally:
            self._call = None

    def _start(self) -> None:
        try:
            threading.Thread(target=self._run, name="revoked", daemon=True).start()
        except RuntimeError as error:  # there are too many threads: the call runs to its end
            log.warning("celery_tasks.no_thread", error=str(error))
            self._runs = False

    def _run(self) -> None:
        with connections.engine():
            thread_failures.keep_running("revoked", self._work)

    def _work(self) -> None:
        while True:
            with self._changed:
                while self._call is None:
                    if not self._changed.wait(IDLE_SECONDS):
                        self._close()
                call = self._call
            time.sleep(LOOK_SECONDS)
            if self._call is call:
                self._look(*call)

    def _look(self, job: int, limits: Limits) -> None:
        try:
            with connections.engine():
                if query(_REVOKED, job=job):
                    limits.terminate()
        except Exception as error:  # usually a database error; it looks again
            log.warning("celery_tasks.not_looked", job=job, error=str(error).strip())
            self._close()

    def _close(self) -> None:
        with connections.engine():
            connections.current().close()


_watcher = _Watcher()


@contextmanager
def watched(job: int, limits: Limits) -> Iterator[None]:
    """End the block with Terminated soon after the task was revoked with `terminate`, if it takes
    longer than LOOK_SECONDS."""
    is_main = threading.current_thread() is threading.main_thread()
    if connections.is_one.get() or not is_main:  # the thread would not see the job
        yield
        return
    with _watcher.watched(job, limits):
        yield
