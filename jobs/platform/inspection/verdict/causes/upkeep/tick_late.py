from datetime import timedelta

from tailrace.db import clock
from tailrace.jobs.platform.inspection.display.formatting import duration
from tailrace.jobs.platform.inspection.verdict.cause import Cause, Check, Facts, worker_command

_ALIVE = (
    "Workers are alive, so their upkeep cannot reach the database or waits for a lock: look for"
    " upkeep.failed in their logs."
)
_AWAY = "No worker was seen in the last 30 seconds. Start a worker: it runs the tick, too."


class TickLate(Check):
    """Without the tick there are no retries, no schedules and no rescue."""

    code = "tick_late"
    rank = 30

    def causes(self, facts: Facts) -> list[Cause]:
        tick = facts.tick
        if not tick.late:
            return []
        since = None if tick.age is None else clock.now() - timedelta(seconds=tick.age)
        last = "The tick has never run"
        if tick.age is not None:
            last = f"The last tick was {duration(tick.age)} ago"
            last += f", by {tick.by}" if tick.by else ""
        words = f"{last}, so retries, schedules and the sweeper do not run."
        if facts.pools:
            return [Cause(words, since=since, advice=_ALIVE)]
        return [Cause(words, since=since, advice=_AWAY, command=worker_command(facts.workers))]
