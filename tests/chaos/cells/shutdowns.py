"""Workers that have to end while a hundred calls and more are in flight."""

from tests.chaos.cells.base import CELLS, Site, at_work, cell
from tests.chaos.deployment import START_SECONDS, wait_until

RESTARTS = 20
PER_SECOND = 100


@cell("rolling", charges=False)
def rolling(site: Site) -> None:
    """Twenty restarts of workers, one after the other, under 100 calls per second of 0 to 5 s."""
    workers = site.deployment.named("worker")
    for number in range(round(RESTARTS * site.scale) or 1):
        site.load.enqueue("chaos.nap", PER_SECOND)
        name = workers[number % len(workers)]
        _wait_until_it_serves(site, name)
        site.load.enqueue("chaos.nap", PER_SECOND)
        site.deployment.restart(name, group=bool(number % 2))
        site.pause(2)


def _wait_until_it_serves(site: Site, name: str) -> None:
    """A process that has not installed its handlers of signals yet is ended by any."""
    pulse = (
        "SELECT count(*) FROM tailrace_jobs_pulse"
        " WHERE name LIKE %s AND at > now() - interval '5 seconds'"
    )
    wait_until(
        lambda: site.deployment.number(pulse, f"worker:{name}@chaos %") == 1, START_SECONDS, name
    )


@cell("in-flight")
def in_flight(site: Site) -> None:
    """With a hundred calls in flight each time: kill -9, SIGTERM, the broker forgets, PostgreSQL
    restarts."""
    deployment = site.deployment
    running = (
        "SELECT count(*) FROM tailrace_jobs_job WHERE state = 'running' AND handler = 'chaos.nap'"
    )
    for fault in (
        lambda: deployment.kill(at_work(site)),
        lambda: deployment.restart(at_work(site), group=True),
        deployment.engines.flush,
        lambda: CELLS["pg-fast"].act(site),
    ):
        site.load.enqueue("chaos.nap", 3 * PER_SECOND)
        wait_until(
            lambda: deployment.number(running) >= PER_SECOND, START_SECONDS, "calls are in flight"
        )
        fault()
        deployment.faults.append("with calls in flight")
        site.pause(4)
