"""Recognise a request that was sent before, by its Idempotency-Key."""

from tailrace.db import clock, locks
from tailrace.db.query import execute, query
from tailrace.jobs.platform.requests.errors import KeyInUse, KeyReused

HOURS = 24
"""How long a key returns the job of its first request."""
MAX_LENGTH = 255

# A second request with the key waits until the first is committed or rolled back.
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
    """Reserve the user's key for a new request, in the caller's transaction, and return None.

    If the key was used in the last HOURS hours for the same request, return the id of its job.
    Raises KeyReused if that was another request, KeyInUse if it is not committed soon.
    """
    try:
        with locks.named(lambda: f"the Idempotency-Key {key!r}"):
            rows = query(_TAKE, user=user, key=key, digest=digest, **locks.params())
    except locks.Blocked:
        raise KeyInUse(f"a request with the Idempotency-Key {key!r} is being processed") from None
    if rows:
        return None
    used_digest, job = query(_KNOWN, user=user, key=key)[0]
    if used_digest != digest:
        raise KeyReused(key)
    return int(job)


def set_job(user: int, key: str, job: int) -> None:
    execute(_SET_JOB, user=user, key=key, job=job)
