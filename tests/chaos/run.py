"""Run a cell: load, faults under load, load again; wait until all is settled, and check."""

import time
from datetime import UTC, datetime

from tests.chaos import expectations
from tests.chaos.cells import CELLS, FaultUnavailable, Site
from tests.chaos.deployment import TAILRACE, Deployment, wait_until
from tests.chaos.load import RATE, Load, load
from tests.chaos.verify import (
    BACK_SECONDS,
    WINDOW,
    Result,
    Times,
    effects,
    recovered_after,
    verify,
)

BEFORE = 5.0
"""Seconds of work before the faults, which later work is compared with."""
WEB_SECONDS = 60.0
"""Seconds that the web server may take to answer again after the last fault."""
AFTER = 5.0
"""Seconds of work after the faults, from when the web server answers; more until throughput is
back."""
SETTLED = 120.0
"""Seconds that all may take to be done after the last fault: a handler that met it may have failed,
and the first backoff of some is a minute."""
QUIET = 5.0
"""Seconds without an effect after which plain Celery, which keeps no state, counts as done."""


def run(
    deployment: Deployment,
    name: str,
    scale: float = 1.0,
    settled: float = SETTLED,
    rate: float = RATE,
) -> Result:
    """Run a cell on a running deployment; return the result."""
    chosen, times = CELLS[name], Times(began=time.monotonic())
    faults, crashed = len(deployment.faults), len(deployment.crashed)
    unavailable, started = "", datetime.now(UTC)
    with load(deployment, name, rate) as clients:
        time.sleep(BEFORE * max(scale, 0.5))
        times.fault_began = time.monotonic()
        site, failed = Site(deployment, clients, scale), ""
        try:
            chosen.act(site)
        except FaultUnavailable as missing:
            unavailable = str(missing)
        except TimeoutError as error:
            failed = str(error)
        times.fault_ended = time.monotonic()
        try:
            wait_until(deployment.web_answers, WEB_SECONDS, "the web server answers")
        except TimeoutError as error:
            failed = failed or str(error)
        time.sleep(AFTER * max(scale, 0.5))
        while scale >= 1 and not failed and _is_slow(deployment, times):
            time.sleep(1)
    with site.until_settled:
        late = _wait(deployment, clients, times, settled)
    times.settled, ended = time.monotonic(), datetime.now(UTC)
    result = verify(deployment, clients, times)
    result.expect(not late, late)
    result.expect(not failed, failed)
    result.problems.extend(site.problems)
    result.faults, result.crashed, result.unavailable = (
        len(deployment.faults) - faults,
        deployment.crashed[crashed:],
        unavailable,
    )
    if deployment.side == TAILRACE and not unavailable:
        happened = effects(deployment)
        expectations.goes_on(result, chosen, site.held, scale, happened, clients)
        ids = {int(effect.id) for effect in happened if effect.name == "chaos.slot"}
        expectations.slots(result, deployment, started, ended, ids)
        expectations.naps(result, deployment, started, happened)
        if not chosen.charges:
            expectations.nothing_charged(result, deployment, started)
        result.expect(chosen.crashes or not result.crashed, f"ended: {result.crashed}")
    return result


def _is_slow(deployment: Deployment, times: Times) -> bool:
    """Whether throughput is not back yet, and may still be in time. Processes that a cell starts at
    its end take as much CPU in their first seconds as all other work."""
    now = time.monotonic()
    in_time = now < times.fault_ended + BACK_SECONDS + WINDOW
    return in_time and recovered_after(effects(deployment), times, now) is None


def _wait(deployment: Deployment, clients: Load, times: Times, seconds: float) -> str:
    """Wait until all is done; return a text about what is not, or none."""
    left = times.fault_ended + seconds - time.monotonic()
    settled = _settled if deployment.side == TAILRACE else _is_quiet
    try:
        wait_until(lambda: settled(deployment, clients), left, "all is settled")
    except TimeoutError:
        return f"not settled {seconds:.0f} s after the last fault: {_left(deployment)}"
    return ""


def _is_quiet(deployment: Deployment, clients: Load) -> bool:
    """Whether there was no effect for a while: what plain Celery has not done by then is lost."""
    happened = effects(deployment)
    recent = bool(happened) and time.monotonic() - happened[-1].at < QUIET
    done = {(effect.id, effect.name) for effect in happened}
    return not recent and len(done) >= len(clients.acknowledged) and _all_done(clients, done)


def _all_done(clients: Load, done: set[tuple[str, str]]) -> bool:
    from tests.chaos import plain_celery

    return all(
        (id, f"plain.{name}") in done
        for id, (number, _) in clients.acknowledged.items()
        for name in plain_celery.expected(number)
    )


def _settled(deployment: Deployment, clients: Load) -> bool:
    recorded = "SELECT count(*) FROM tailrace_events_event WHERE source LIKE 'obs:chaos:%%'"
    live = (
        "SELECT count(*) FROM tailrace_jobs_job"
        " WHERE (event_id IS NOT NULL OR handler IN ('chaos.slot', 'chaos.long', 'chaos.nap'))"
        " AND state IN ('waiting', 'pending', 'running')"
    )
    behind = (
        "SELECT count(*) FROM tailrace_jobs_schedule"
        " WHERE handler = 'chaos.slot' AND next_run_at < now() - interval '5 seconds'"
    )
    return (
        deployment.number(recorded) >= clients.sent
        and deployment.number(live) == 0
        and deployment.number(behind) == 0
    )


def _left(deployment: Deployment) -> list[tuple]:
    with deployment.engines.connect() as database:
        return database.execute(
            "SELECT handler, state, count(*), min(due_at)::text, min(lease_until)::text,"
            " now()::text FROM tailrace_jobs_job"
            " WHERE (event_id IS NOT NULL OR handler IN ('chaos.slot', 'chaos.long', 'chaos.nap'))"
            " AND state IN ('waiting', 'pending', 'running') GROUP BY 1, 2"
        ).fetchall()
