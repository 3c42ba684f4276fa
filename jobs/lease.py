"""lease: a claim holds as long as its worker says so; the heartbeat says so while handlers run."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import structlog
from django.db import DatabaseError, connection

from events import clock

if TYPE_CHECKING:
    from jobs.claimed import ClaimedJob

log = structlog.get_logger(__name__)

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
    """Renew the leases of `jobs` in a thread, three times per lease, until the block is left.

    The thread opens a connection only if the work lasts that long. It beats by the wall clock,
    and goes on after a database error: the lease may still be saved by the next beat.
    """
    done = threading.Event()
    thread = threading.Thread(target=_beat, args=(jobs, done), name="lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _beat(jobs: Sequence["ClaimedJob"], done: threading.Event) -> None:
    every = jobs[0].handler.claim_timeout / 3
    try:
        while not done.wait(every):
            try:
                renew(jobs)
            except DatabaseError as error:
                log.warning("lease.not_renewed", jobs=len(jobs), error=str(error))
                connection.close()
    finally:
        connection.close()


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
