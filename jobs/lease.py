"""lease: a claim holds as long as its worker says so; the heartbeat says so while handlers run."""

import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import structlog
from django.db import DatabaseError, connection

from events import clock

if TYPE_CHECKING:
    from jobs.claimed import ClaimedJob

log = structlog.get_logger(__name__)

IDLE_SECONDS = 30
"""A thread that has seen no claim for this long ends."""

_MINE = "id = %(id)s AND state = 'running' AND claim_no = %(claim_no)s AND worker = %(worker)s"

_RENEW = f"""
WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
UPDATE jobs_job j SET lease_until = {clock.NOW} + make_interval(secs => %(lease)s)
FROM quick, unnest(%(ids)s::bigint[], %(claim_nos)s::int[]) AS mine (id, claim_no)
WHERE j.id = mine.id AND j.claim_no = mine.claim_no AND j.state = 'running'
  AND j.worker = %(worker)s
"""


def renew(jobs: Sequence["ClaimedJob"]) -> int:
    """Prolong the leases of these jobs of one claim; return how many are still ours."""
    params = {
        "lease": jobs[0].handler.claim_timeout,
        "worker": jobs[0].worker,
        "ids": [job.id for job in jobs],
        "claim_nos": [job.claim_no for job in jobs],
    }
    with connection.cursor() as cursor:
        cursor.execute(_RENEW, clock.params() | params)
        return int(cursor.rowcount)


@contextmanager
def heartbeat(jobs: Sequence["ClaimedJob"]) -> Iterator[None]:
    """Renew the leases of `jobs`, three times per lease, until the block is left.

    One thread does it for all claims of the process, by the wall clock. It opens a connection only
    if the work lasts that long, and goes on after a database error: the next beat may come through.
    """
    _heart.add(jobs)
    try:
        yield
    finally:
        _heart.remove(jobs)


class _Heart:
    """The claims of this process that are at work, and the thread that renews them."""

    def __init__(self) -> None:
        self._begin()
        os.register_at_fork(after_in_child=self._begin)  # the thread is the parent's

    def _begin(self) -> None:
        self._changed = threading.Condition()
        self._beats: dict[int, tuple[float, Sequence[ClaimedJob]]] = {}
        self._looks_at = 0.0
        self._runs = False
        self._has_beaten = False

    def add(self, jobs: Sequence["ClaimedJob"]) -> None:
        at = time.monotonic() + _interval(jobs)
        with self._changed:
            self._beats[id(jobs)] = (at, jobs)
            if self._runs:
                if at < self._looks_at:
                    self._changed.notify()
                return
            self._runs = True
        try:
            threading.Thread(target=self._work, name="lease", daemon=True).start()
        except RuntimeError as error:  # the work may be done before the lease ends
            log.warning("lease.no_thread", error=str(error))
            self._runs = False

    def remove(self, jobs: Sequence["ClaimedJob"]) -> None:
        with self._changed:
            del self._beats[id(jobs)]
            if self._has_beaten and not self._beats:
                self._changed.notify()

    def _work(self) -> None:
        while due := self._next():
            for jobs in due:
                try:
                    renew(jobs)
                except DatabaseError as error:
                    log.warning("lease.not_renewed", jobs=len(jobs), error=str(error))
                    connection.close()
        connection.close()

    def _next(self) -> list[Sequence["ClaimedJob"]]:
        """Wait for the next beat; return what it renews. Nothing: the thread ends, which gives
        its connection back once the long work is done."""
        with self._changed:
            while True:
                now = time.monotonic()
                due = [jobs for at, jobs in self._beats.values() if at <= now]
                if due:
                    for jobs in due:
                        self._beats[id(jobs)] = (now + _interval(jobs), jobs)
                    self._has_beaten = True
                    return due
                idle = not self._beats and (self._has_beaten or now >= self._looks_at > 0)
                if idle:
                    self._runs = self._has_beaten = False
                    self._looks_at = 0.0
                    return []
                beats = [at for at, _jobs in self._beats.values()]
                self._looks_at = min(beats, default=now + IDLE_SECONDS)
                self._changed.wait(self._looks_at - now)


def _interval(jobs: Sequence["ClaimedJob"]) -> float:
    return jobs[0].handler.claim_timeout / 3


_heart = _Heart()


def look(job: "ClaimedJob") -> tuple[bool, bool]:
    """Return whether the claim is still ours, and whether an operator asked to cancel."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT cancel_requested FROM jobs_job WHERE {_MINE}", _key(job))
        row = cursor.fetchone()
    return row is not None, bool(row and row[0])


def record_progress(job: "ClaimedJob", done: int, total: int | None, note: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE jobs_job SET progress_done = %(done)s, progress_total = %(total)s,"
            f" progress_note = %(note)s WHERE {_MINE}",
            _key(job) | {"done": done, "total": total, "note": note[:500]},
        )


def _key(job: "ClaimedJob") -> dict[str, Any]:
    return {"id": job.id, "claim_no": job.claim_no, "worker": job.worker}
