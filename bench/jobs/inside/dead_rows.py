"""Programs of the benchmark of a held snapshot: leave SECONDS | look.

leave: what so many seconds of load would leave behind. The jobs of that time have been claimed and
done; each of their four queues was woken and drained. look: print what the engine's looks cost.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import django

EVENTS_PER_SECOND = 75
DRAINS_PER_SECOND = 5
"""Of each queue. At the rate of the events there are up to 15 times as many."""
INSERT = """
INSERT INTO tailrace_jobs_job (handler, routing_key, state, priority, lane, due_at, attempt,
  claim_no, worker, isolate, progress_note, error, created_at, cancel_requested)
SELECT 'bench.effect_' || letter, '', 'pending', 1, '',
  now() - interval '1 second' * (%(seconds)s - n / %(rate)s::float8), 0, 0, 'dead', false, '', '',
  now(), false
FROM generate_series(1, %(seconds)s * %(rate)s) n, unnest('{a,b,c,d}'::text[]) letter
"""
CLAIM = """
UPDATE tailrace_jobs_job SET state = 'running', attempt = 1, claim_no = 1,
  lease_until = due_at + interval '1 minute' WHERE worker = 'dead'
"""
SETTLE = """
UPDATE tailrace_jobs_job SET state = 'completed', lease_until = NULL, finished_at = now()
WHERE worker = 'dead' AND state = 'running'
"""


def jobs(seconds: int) -> None:
    """Insert, claim and settle the jobs, in one transaction: no worker sees them before."""
    from django.db import connection, transaction

    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(INSERT, {"seconds": seconds, "rate": EVENTS_PER_SECOND})
        cursor.execute(CLAIM)
        cursor.execute(SETTLE)


def drains(seconds: int) -> None:
    """Wake the queues and begin to drain them, as fast as it goes, with a clock of that time."""
    from tailrace.db import clock, connections
    from tailrace.jobs.engine import registry
    from tailrace.jobs.engine.claiming.begin import begin
    from tailrace.jobs.engine.waking import wake

    names = [f"bench.effect_{letter}" for letter in "abcd"]
    with connections.engine():
        for number in range(seconds * DRAINS_PER_SECOND):
            clock.offset = number / DRAINS_PER_SECOND - seconds
            wake._mark(names)
            for name in names:
                begin(registry.get(name))


def look() -> dict[str, tuple[float, float]]:
    """The shortest and the longest of fifty times, in ms. Other work of the machine makes times
    longer; a claim or a tick looks from the beginning from time to time."""
    from tailrace.db import connections
    from tailrace.jobs.engine import registry
    from tailrace.jobs.engine.claiming.begin import begin
    from tailrace.jobs.engine.claiming.claim import Limits, claim
    from tailrace.jobs.engine.maintenance.ticking import tick
    from tailrace.jobs.engine.waking import wake

    handler = registry.get("bench.effect_a")
    with connections.engine():
        return {
            "a claim of one": _times(lambda: claim(handler, Limits(), 1)),
            "waking a queue": _times(lambda: wake._mark([handler.name])),
            "beginning a drain": _times(lambda: begin(handler)),
            "a look of the tick": _times(tick.wake_due),
        }


def _times(work: Callable[[], Any]) -> tuple[float, float]:
    times = []
    for _ in range(50):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times) * 1000, max(times) * 1000


if __name__ == "__main__":
    django.setup()
    if sys.argv[1] == "leave":
        jobs(int(sys.argv[2]))
        drains(int(sys.argv[2]))
    else:
        print(json.dumps(look()))
