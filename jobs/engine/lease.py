"""Renew the leases of claims while their handlers run: a claim is valid as long as its lease."""

import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import structlog
from django.db import DatabaseError

from db import clock, connections
from db.plans import probe, unindexed
from db.query import execute
from jobs.handler import ClaimedJob

log = structlog.get_logger(__name__)

IDLE_SECONDS = 30
"""The thread ends when there was no claim for this long."""

# A row that someone holds is passed over, so that the others are renewed: until its next turn
# nobody can rescue it either.
_RENEW = f"""
WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)),
free AS MATERIALIZED (
  SELECT j.id FROM unnest(%(ids)s::bigint[], %(claim_nos)s::int[]) AS mine (id, claim_no), quick,
    jobs_job j
  WHERE {probe("j.id", "mine.id")} AND j.claim_no = mine.claim_no
    AND {unindexed("j.state")} = 'running' AND j.worker = %(worker)s
  FOR NO KEY UPDATE OF j SKIP LOCKED
)
UPDATE jobs_job j SET lease_until = {clock.NOW} + make_interval(secs => %(lease)s)
FROM free WHERE {probe("j.id", "free.id")}
"""


def renew(jobs: Sequence[ClaimedJob]) -> int:
    """Prolong the leases of these jobs of one claim; return of how many: those that are still ours
    and whose rows nobody holds."""
    return execute(
        _RENEW,
        lease=jobs[0].handler.claim_timeout,
        worker=jobs[0].worker,
        ids=[job.id for job in jobs],
        claim_nos=[job.claim_no for job in jobs],
    )


@contextmanager
def renewed(jobs: Sequence[ClaimedJob]) -> Iterator[None]:
    """Renew the leases of `jobs`, three times per lease, until the block is left.

    One thread does it for all claims of the process, by the wall clock. It opens a connection only
    if the work lasts that long, and continues after a database error.
    """
    _renewer.add(jobs)
    try:
        yield
    finally:
        _renewer.remove(jobs)


class _Renewer:
    """The running claims of this process, and the thread that renews their leases."""

    def __init__(self) -> None:
        self._begin()
        os.register_at_fork(after_in_child=self._begin)  # the thread is the parent's

    def _begin(self) -> None:
        self._changed = threading.Condition()
        self._renewals: dict[int, tuple[float, Sequence[ClaimedJob]]] = {}
        self._wakes_at = 0.0
        self._runs = False
        self._has_renewed = False

    def add(self, jobs: Sequence[ClaimedJob]) -> None:
        at = time.monotonic() + _interval(jobs)
        with self._changed:
            self._renewals[id(jobs)] = (at, jobs)
            if self._runs:
                if at < self._wakes_at:
                    self._changed.notify()
                return
            self._runs = True
        try:
            threading.Thread(target=self._work, name="lease", daemon=True).start()
        except RuntimeError as error:  # the work may be done before the lease ends
            log.warning("lease.no_thread", error=str(error))
            self._runs = False

    def remove(self, jobs: Sequence[ClaimedJob]) -> None:
        with self._changed:
            del self._renewals[id(jobs)]
            if self._has_renewed and not self._renewals:
                self._changed.notify()

    def _work(self) -> None:
        with connections.engine():
            while due := self._next():
                for jobs in due:
                    try:
                        renew(jobs)
                    except DatabaseError as error:
                        log.warning("lease.not_renewed", jobs=len(jobs), error=str(error))
                        connections.current().close()
            connections.current().close()

    def _next(self) -> list[Sequence[ClaimedJob]]:
        """Wait for the next renewal, and return its claims. Without any the thread ends, which
        closes its connection once the long work is done."""
        with self._changed:
            while True:
                now = time.monotonic()
                due = [jobs for at, jobs in self._renewals.values() if at <= now]
                if due:
                    for jobs in due:
                        self._renewals[id(jobs)] = (now + _interval(jobs), jobs)
                    self._has_renewed = True
                    return due
                idle = not self._renewals and (self._has_renewed or now >= self._wakes_at > 0)
                if idle:
                    self._runs = self._has_renewed = False
                    self._wakes_at = 0.0
                    return []
                beats = [at for at, _jobs in self._renewals.values()]
                self._wakes_at = min(beats, default=now + IDLE_SECONDS)
                self._changed.wait(self._wakes_at - now)


def _interval(jobs: Sequence[ClaimedJob]) -> float:
    return jobs[0].handler.claim_timeout / 3


_renewer = _Renewer()
