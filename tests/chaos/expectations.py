"""What must go on while a cell holds what the deployment needs, and what schedules must do."""

import math
from collections import Counter
from datetime import datetime

from tests.chaos.cells import Held
from tests.chaos.cells.base import Cell
from tests.chaos.deployment import Deployment
from tests.chaos.load import Load
from tests.chaos.verify import DONE, Effect, Result

EVERY = 2.0
"""Seconds between two slots of each schedule of the run."""


def goes_on(
    result: Result, cell: Cell, held: Held, scale: float, happened: list[Effect], load: Load
) -> None:
    """Count effects and acknowledged events in the time in which the cell held something."""
    made = Counter(effect.name for effect in happened if held.began <= effect.at <= held.ended)
    for handler, wanted in cell.goes_on.items():
        least = math.ceil(wanted * scale)
        result.expect(
            made[handler] >= least,
            f"{handler} had {made[handler]} effects during the fault, {least} expected",
        )
    published = sum(held.began <= at <= held.ended for _number, at in load.acknowledged.values())
    least = math.ceil(cell.published * scale)
    result.expect(
        published >= least, f"{published} events published during the fault, {least} expected"
    )


def naps(result: Result, deployment: Deployment, began: datetime, happened: list[Effect]) -> None:
    """Each of the calls that were in flight is done, and has had its effect."""
    with deployment.engines.connect() as database:
        rows = database.execute(
            "SELECT id, state FROM tailrace_jobs_job WHERE handler = 'chaos.nap'"
            " AND created_at >= %s",
            [began],
        ).fetchall()
    done = {int(effect.id) for effect in happened if effect.name == "chaos.nap"}
    left = [id for id, state in rows if state != "completed" or id not in done]
    result.expected += len(rows)
    result.lost += len(left)
    result.expect(not left, f"{len(left)} calls are not done: {left[:5]}")


def nothing_charged(result: Result, deployment: Deployment, began: datetime) -> None:
    """No job waited for the end of its lease, or was charged for the end of its worker; no effect
    happened twice."""
    with deployment.engines.connect() as database:
        lost = database.execute(
            "SELECT j.handler, count(*) FROM tailrace_jobs_attempt a"
            " JOIN tailrace_jobs_job j ON j.id = a.job_id"
            " WHERE a.outcome = 'lost' AND a.finished_at >= %s GROUP BY 1",
            [began],
        ).fetchall()
        charged = database.execute(
            "SELECT handler, count(*) FROM tailrace_jobs_job WHERE created_at >= %s AND attempt > 1"
            " AND handler <> 'chaos.flaky' AND handler LIKE 'chaos.%%' GROUP BY 1",
            [began],
        ).fetchall()
    result.expect(not result.doubled, f"{result.doubled} effects happened twice")
    result.expect(not lost, f"claims were lost: {lost}")
    result.expect(not charged, f"jobs were charged more than one attempt: {charged}")


def slots(
    result: Result, deployment: Deployment, began: datetime, settled: datetime, ids: set[int]
) -> None:
    """Each slot of the schedules ran once: by PostgreSQL's clock, and not before its time.

    `ids`: the jobs that have had an effect. A slot may be passed over if nothing ran until the next
    one was due, or if the job of the one before was not done; with catch_up = all none is.
    """
    with deployment.engines.connect() as database:
        rows = database.execute(SLOTS, [began, settled]).fetchall()
        [(ahead,)] = database.execute(
            "SELECT count(*) FROM tailrace_jobs_schedule WHERE handler = 'chaos.slot'"
            " AND next_run_at > now() + %s * interval '1 second'",
            [EVERY],
        ).fetchall()
    result.expect(not ahead, f"{ahead} schedules are ahead of their time")
    last: dict[str, datetime] = {}
    for policy, at, outcome, reason, late, job, state in rows:
        what = f"slot {at:%H:%M:%S} of catch_up={policy}"
        result.expect(late >= 0, f"{what} was {outcome} {-late:.0f} s before its time")
        step = (at - last[policy]).total_seconds() if policy in last else EVERY
        result.expect(abs(step - EVERY) < 0.01, f"{what} comes {step:g} s after the one before")
        last[policy] = at
        if outcome == "ran":
            done = state in DONE and job in ids
            result.expect(done, f"{what}: its job {job} is {state}, effect: {job in ids}")
        else:
            excused = late >= EVERY or "is not finished yet" in reason
            legal = outcome in PASSED_OVER[policy] and excused
            result.expect(legal, f"{what} was {outcome} {late:.1f} s after its time: {reason}")
    made = Counter(row[5] for row in rows if row[5])
    twice = [job for job, count in made.items() if count > 1]
    result.expect(not twice, f"jobs of two slots: {twice[:5]}")


PASSED_OVER = {"all": (), "latest": ("merged",), "skip": ("merged", "missed")}
"""Policy → what may become of a slot that does not run."""

SLOTS = """
SELECT s.catch_up, t.at, t.outcome, t.reason,
       extract(epoch FROM t.recorded_at - t.at)::float8, t.job_id, j.state
FROM tailrace_jobs_slot t JOIN tailrace_jobs_schedule s ON s.id = t.schedule_id
LEFT JOIN tailrace_jobs_job j ON j.id = t.job_id
WHERE s.handler = 'chaos.slot' AND t.recorded_at BETWEEN %s AND %s
ORDER BY t.schedule_id, t.at
"""
