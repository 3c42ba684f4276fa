"""The raw limit: the same claims, effects and settlements in SQL, without Django and Celery.

`work` takes what `bench.sides.tailrace publish` made, on the same tables with the same indexes.
Two durable commits (effects, settlement) and one that does not wait (claim) per 100 jobs, as ours.
It has no limits, no lanes, no leases that are renewed, no errors, no wake-ups, no event with a job.
"""

import multiprocessing
import os
import time

import psycopg

from bench.servers import dsn

HANDLERS = [f"bench.effect_{letter}" for letter in "abcd"]
CLAIM = """
WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
UPDATE tailrace_jobs_job SET state = 'running', attempt = attempt + 1, claim_no = claim_no + 1,
  worker = 'raw', started_at = now(), lease_until = now() + interval '1 minute'
FROM quick WHERE id = ANY(ARRAY(
  SELECT id FROM tailrace_jobs_job WHERE handler = %s AND state = 'pending' AND priority = 1
    AND due_at <= now() ORDER BY due_at, id LIMIT 100 FOR UPDATE SKIP LOCKED))
RETURNING id, claim_no
"""
EFFECT = "INSERT INTO bench_effect (job) SELECT unnest(%s::bigint[])::text"
SETTLE = """
UPDATE tailrace_jobs_job j SET state = 'completed', finished_at = now(), lease_until = NULL
FROM unnest(%s::bigint[], %s::int[]) v (id, claim_no)
WHERE j.id = v.id AND j.claim_no = v.claim_no AND j.state = 'running'
"""


def work(number: int) -> None:
    """Take batches from the four queues in turn until all are empty."""
    database = os.environ["DATABASE_URL"]
    with psycopg.connect(dsn(database), autocommit=True, prepare_threshold=2) as connection:
        empty = 0
        turn = number
        while empty < len(HANDLERS):
            rows = connection.execute(CLAIM, [HANDLERS[turn % len(HANDLERS)]]).fetchall()
            turn += 1
            empty = 0 if rows else empty + 1
            if rows:
                ids, claims = [row[0] for row in rows], [row[1] for row in rows]
                connection.execute(EFFECT, [ids])
                connection.execute(SETTLE, [ids, claims])


if __name__ == "__main__":
    count = int(os.environ["BENCH_PROCESSES"])
    processes = [multiprocessing.Process(target=work, args=[number]) for number in range(count)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    while True:  # like the other sides, until it is stopped
        time.sleep(1)
