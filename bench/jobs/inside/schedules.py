"""Schedules: fill TOTAL | tick DUE ROUNDS | enrol ACCOUNTS. Prints JSON.

A tick is that of the product, with what it commits. Between two of them its jobs and slots are
deleted, so that no job is still live when the next slot comes.
"""

import json
import sys
import time
from datetime import UTC, datetime
from typing import Any

import django

DAY = (datetime.now(UTC).day + 14) % 28 + 1
"""None comes by itself while this runs."""
CRONS = (f"0 8 {DAY} * *", f"30 6 {DAY} * *", f"0 0 {DAY} * *", f"15 */4 {DAY} * *")
ZONES = ("Europe/Berlin", "America/New_York", "Asia/Tokyo", "UTC")
CALL = 100_000


def fill(total: int) -> list[float]:
    """Create that many; return the seconds of each call of at most CALL."""
    from tailrace.jobs.operations.schedules import NewSchedule, create_schedules

    seconds = []
    for start in range(0, total, CALL):
        rows = [
            NewSchedule(
                name=f"subscription:{n}:renew", handler="bench.plain", routing_key=str(n),
                owner=f"subscription:{n}", cron=CRONS[n % 4], time_zone=ZONES[n // 4 % 4],
                spread=3600,
            )
            for n in range(start, min(start + CALL, total))
        ]  # fmt: skip
        began = time.perf_counter()
        create_schedules(rows)
        seconds.append(time.perf_counter() - began)
    return seconds


def enrol(accounts: int) -> list[float]:
    """Subscribe that many accounts to the plan basic in one call, with their two schedules; return
    the seconds of that, and of the same again."""
    from django.contrib.auth.models import User

    from tailrace.jobs.models import Schedule
    from tailrace.subscriptions.plans import installed
    from tailrace.subscriptions.plans.enrolment import Enrolment, enrol_many

    installed.update()
    users = (User(username=f"customer{n}") for n in range(accounts))
    rows = [Enrolment(user.pk, "basic") for user in User.objects.bulk_create(users, 5000)]
    seconds = []
    for _time in range(2):
        began = time.perf_counter()
        enrol_many(rows)
        seconds.append(time.perf_counter() - began)
    if (made := Schedule.objects.filter(owner__startswith="plan:").count()) != 2 * accounts:
        raise SystemExit(f"{accounts} accounts have {made} schedules")
    return seconds


def tick(due: int, rounds: int) -> dict[str, Any]:
    """Return the ms of each round in which so many are due, and of the longest single tick."""
    from tailrace.db.query import execute, query
    from tailrace.jobs.engine.maintenance.ticking import tick

    times, longest = [], 0.0
    for number in range(rounds):
        execute("TRUNCATE tailrace_jobs_job, tailrace_jobs_slot, tailrace_jobs_attempt")
        # Every n-th, so that they are all over the table.
        execute(
            """
            UPDATE tailrace_jobs_schedule
              SET next_run_at = date_trunc('minute', now()) - interval '1 hour'
            WHERE id = ANY(ARRAY(SELECT id FROM tailrace_jobs_schedule
              WHERE id %% (SELECT greatest(count(*) / greatest(%(due)s, 1), 1)
                FROM tailrace_jobs_schedule)
                = %(number)s %% (SELECT greatest(count(*) / greatest(%(due)s, 1), 1)
                                 FROM tailrace_jobs_schedule)
              LIMIT %(due)s))""",
            due=due,
            number=number,
        )
        spent = 0.0
        while True:
            began = time.perf_counter()
            tick.tick()
            took = (time.perf_counter() - began) * 1000
            spent, longest = spent + took, max(longest, took)
            [(left,)] = query(
                "SELECT count(*) FROM tailrace_jobs_schedule WHERE enabled AND next_run_at <= now()"
            )
            if not left:
                break
        times.append(spent)
        [(jobs,)] = query("SELECT count(*) FROM tailrace_jobs_job WHERE handler = 'bench.plain'")
        if jobs != due:
            raise SystemExit(f"{due} schedules were due, {jobs} jobs were made")
    return {"times": times, "longest": longest}


if __name__ == "__main__":
    django.setup()
    actions = {"fill": fill, "tick": tick, "enrol": enrol}
    print(json.dumps(actions[sys.argv[1]](*map(int, sys.argv[2:]))))
