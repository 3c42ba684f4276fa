"""Renew the leases of the calls in flight from a separate thread, three times per lease.

If the engine thread has not worked for UNWATCHED_SECONDS, it does not settle the calls: their
leases are not renewed, so that other workers run the jobs.
"""

import threading
import time
from collections import defaultdict
from collections.abc import Sequence

import structlog
from django.db import DatabaseError

from tailrace.db import connections
from tailrace.jobs.engine.in_flight.call import Call
from tailrace.jobs.engine.leases.renew import renew
from tailrace.jobs.runtime import thread_failures

log = structlog.get_logger(__name__)

LOOK_SECONDS = 0.25
RETRY_SECONDS = 1.0
"""The wait after a database error."""
UNWATCHED_SECONDS = 60.0


class Leases:
    """A thread that renews the leases of calls. It opens a connection only when it first needs
    one, so not for short calls."""

    def __init__(self) -> None:
        self._in_flight: Sequence[Call] = ()
        self._watched_at = time.monotonic()
        self._any = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="in-flight-leases", daemon=True)
        self._thread.start()

    def watch(self, in_flight: Sequence[Call]) -> None:
        """Renew the leases of these calls from now on, instead of those given before."""
        self._in_flight, self._watched_at = in_flight, time.monotonic()
        if bool(in_flight) != self._any.is_set():
            (self._any.set if in_flight else self._any.clear)()

    def stop(self) -> None:
        self._stopping = True
        self._any.set()
        self._thread.join(1)

    def _run(self) -> None:
        with connections.engine():
            thread_failures.keep_running("in-flight-leases", self._work)

    def _work(self) -> None:
        while not self._stopping:
            if not self._any.is_set():
                connections.current().close()
            self._any.wait()
            time.sleep(0 if self._stopping else LOOK_SECONDS)
            try:
                self._renew(time.monotonic())
            except DatabaseError as error:  # it tries again
                log.warning("lease.not_renewed", error=str(error).strip())
                connections.current().close()
                time.sleep(RETRY_SECONDS)
        connections.current().close()

    def _renew(self, now: float) -> None:
        if now - self._watched_at > UNWATCHED_SECONDS:
            return
        by_handler = defaultdict(list)
        for call in self._in_flight:
            if call.renew_at <= now:
                by_handler[call.handler.name].append(call)
        for calls in by_handler.values():
            renew([call.job for call in calls])
            for call in calls:
                call.renew_at = now + call.handler.claim_timeout / 3
