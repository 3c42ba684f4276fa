"""How to check one invariant as the sweeper does."""

from tailrace.jobs.engine.maintenance.sweeping import sweep
from tailrace.jobs.models import SweepRun

CORE = [
    "jobs.events_have_their_jobs",
    "jobs.lease_ended",
    "jobs.unknown_handler",
    "jobs.waits_for_finished",
    "jobs.waits_for_missing",
    "queues.asleep",
    "schedules.behind",
]


def check(name: str) -> SweepRun:
    (run,) = sweep.sweep([name])
    return run


def repaired(name: str, count: int = 1) -> None:
    """It finds and repairs so many, and then holds."""
    run = check(name)
    assert (run.outcome, run.error) == ("checked", "")
    assert (run.found, run.repaired) == (count, count)
    again = check(name)
    assert (again.outcome, again.found, again.repaired) == ("checked", 0, 0)
