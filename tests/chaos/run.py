"""One cell: work goes on, harm is done, work goes on, all settles, and the judge looks."""

import time

from tests.chaos.cells import CELLS, NotHere, Site
from tests.chaos.house import TAILRACE, House, wait_until
from tests.chaos.judge import Judgement, Times, effects, judge
from tests.chaos.load import Load, load

BEFORE = 5.0
"""Seconds of undisturbed work, which the work after the harm is compared with."""
AFTER = 5.0
"""Seconds of work after the harm."""
SETTLED = 60.0
"""Seconds from the end of the harm until all is done."""
QUIET = 5.0
"""Seconds without an effect after which plain Celery, which keeps no state, counts as done."""


def run(house: House, name: str, scale: float = 1.0) -> Judgement:
    """Run a cell on a house at work; return what the judge says."""
    chosen, times = CELLS[name], Times(began=time.monotonic())
    harm, fell = len(house.harm), len(house.fell)
    not_here = ""
    with load(house, name) as made:
        time.sleep(BEFORE * max(scale, 0.5))
        times.harm = time.monotonic()
        try:
            chosen.act(Site(house, made, scale))
        except NotHere as missing:
            not_here = str(missing)
        times.over = time.monotonic()
        time.sleep(AFTER)
    late = _wait(house, made, times)
    times.settled = time.monotonic()
    found = judge(house, made, times)
    found.expect(not late, late)
    found.harm, found.fell, found.not_here = len(house.harm) - harm, house.fell[fell:], not_here
    return found


def _wait(house: House, made: Load, times: Times) -> str:
    """Wait until all is done; return what is not, in words."""
    left = times.over + SETTLED - time.monotonic()
    settled = _settled if house.side == TAILRACE else _is_quiet
    try:
        wait_until(lambda: settled(house, made), left, "all is settled")
    except TimeoutError:
        return f"not settled {SETTLED:.0f} s after the last fault: {_left(house)}"
    return ""


def _is_quiet(house: House, made: Load) -> bool:
    """Whether there is no effect for a while. What is lost for good cannot be waited for: so all
    that plain Celery has not done when it is quiet for as long as it may take counts as lost."""
    happened = effects(house)
    recent = bool(happened) and time.monotonic() - happened[-1].at < QUIET
    everything = {(effect.id, effect.name) for effect in happened}
    return not recent and len(everything) >= len(made.said) and _all_done(made, everything)


def _all_done(made: Load, done: set[tuple[str, str]]) -> bool:
    from tests.chaos import plain

    return all(
        (id, f"plain.{name}") in done
        for id, (number, _) in made.said.items()
        for name in plain.owed(number)
    )


def _settled(house: House, made: Load) -> bool:
    told = "SELECT count(*) FROM events_event WHERE source LIKE 'obs:chaos:%%'"
    live = (
        "SELECT count(*) FROM jobs_job WHERE event_id IS NOT NULL"
        " AND state IN ('waiting', 'pending', 'running')"
    )
    return house.one(told) >= made.sent and house.one(live) == 0


def _left(house: House) -> list[tuple]:
    with house.engines.connect() as database:
        return database.execute(
            "SELECT handler, state, count(*), min(due_at)::text, min(lease_until)::text,"
            " now()::text FROM jobs_job"
            " WHERE event_id IS NOT NULL AND state IN ('waiting', 'pending', 'running')"
            " GROUP BY 1, 2"
        ).fetchall()
