"""Recognise a request that was sent before, by its Idempotency-Key."""

from tailrace.db import clock, locks
from tailrace.db.query import execute, query
from tailrace.jobs.requests.errors import KeyInUse, KeyReused

HOURS = 24
"""How long a key stands for the job of its first request."""
MAX_LENGTH = 255

# Who comes second waits until the first has committed, or was rolled back.
_TAKE = f"""
WITH {locks.LIMITED},
taken AS (
  INSERT INTO tailrace_jobs_requestkey AS k (user_id, key, digest, created_at)
  SELECT %(user)s, %(key)s, %(digest)s, {clock.NOW} FROM limited
  ON CONFLICT (user_id, key) DO UPDATE
    SET digest = excluded.digest, job_id = NULL, created_at = excluded.created_at
    WHERE k.created_at < excluded.created_at - make_interval(hours => {HOURS})
  RETURNING id
), {locks.restored("taken")}
SELECT taken.id FROM restored, taken
"""
_KNOWN = """
SELECT digest, job_id FROM tailrace_jobs_requestkey WHERE user_id = %(user)s AND key = %(key)s
"""
_SET_JOB = """
UPDATE tailrace_jobs_requestkey SET job_id = %(job)s WHERE user_id = %(user)s AND key = %(key)s
"""


def take(user: int, key: str, digest: str) -> int | None:
    """Take the user's key for a new request, in the caller's transaction, and return None; or
    return the job of the request that it was taken for within HOURS.

    Raises KeyReused if that was another request, KeyInUse if it is not committed soon.
    """
    try:
        with locks.named(lambda: f"the Idempotency-Key {key!r}"):
            rows = query(_TAKE, user=user, key=key, digest=digest, **locks.params())
    except locks.Blocked:
        raise KeyInUse(f"a request with the Idempotency-Key {key!r} is being worked on") from None
    if rows:
        return None
    known, job = query(_KNOWN, user=user, key=key)[0]
    if known != digest:
        raise KeyReused(
            f"the Idempotency-Key {key!r} came with another request within {HOURS} hours;"
            " send each request with a key of its own"
        )
    return int(job)


def set_job(user: int, key: str, job: int) -> None:
    execute(_SET_JOB, user=user, key=key, job=job)
