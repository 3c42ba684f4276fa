"""Others hold what the deployment needs: a lock, all children of the workers, all connections."""

import time
from contextlib import ExitStack

from tests.chaos.cells.base import Site, cell
from tests.chaos.deployment import START_SECONDS, wait_until

OTHERS = ("together", "fair", "ordered", "slow", "flaky", "ring", "echo", "split")
"""All queues with work of their own but the one that is locked."""


@cell("queue-lock", goes_on={f"chaos.{name}": 5 for name in (*OTHERS, "slot")}, published=50)
def queue_lock(site: Site) -> None:
    """A session holds a lock on the rows of one queue for 20 s."""
    with site.deployment.engines.connect() as session:
        session.execute("BEGIN")
        for table in ("tailrace_jobs_queue", "tailrace_jobs_queueactivity"):
            session.execute(f"SELECT FROM {table} WHERE name = 'chaos.one' FOR UPDATE")
        site.deployment.faults.append("queue locked")
        site.pause(6)  # who waits for it waits by now
        with site.holding():
            site.pause(14)
        session.execute("ROLLBACK")


FREE = ("one", "flaky", "slot")
"""The queues of the worker that has no long call."""


@cell("full-pool", goes_on={"chaos.one": 50, "chaos.flaky": 5, "chaos.slot": 3}, published=50)
def full_pool(site: Site) -> None:
    """Every child of all workers is in a call that takes as long as the fault; one worker, which
    serves three queues and no other, has none."""
    deployment = site.deployment
    queues = ",".join(f"chaos.{name}" for name in FREE)
    deployment.start_worker("worker4", options=("-Q", queues))
    pulse = "SELECT count(*) FROM tailrace_jobs_pulse WHERE name LIKE 'worker:worker4@chaos %%'"
    wait_until(lambda: deployment.number(pulse) == 1, START_SECONDS, "the fourth worker serves")
    children = sum(len(deployment.children(f"worker{number}")) for number in (1, 2, 3))
    deployment.end_long_calls(False)
    site.load.enqueue("chaos.long", children)
    try:
        running = (
            "SELECT count(*) FROM tailrace_jobs_job"
            " WHERE state = 'running' AND handler = 'chaos.long'"
        )
        wait_until(
            lambda: deployment.number(running) == children,
            START_SECONDS,
            "each child has a long call",
        )
        deployment.faults.append("pools full")
        with site.holding():
            site.pause(20)
    finally:
        deployment.end_long_calls(True)
    deployment.halt("worker4")


@cell("connections", crashes=False)
def connections(site: Site) -> None:
    """A session ends all others and takes every connection for 15 s, again and again."""
    with site.deployment.engines.connect() as own, ExitStack() as taken:
        until, fewest = time.monotonic() + max(15 * site.scale, 5), 100
        while time.monotonic() < until:
            site.deployment.engines.end_others(own)
            for connection in site.deployment.engines.all_left():
                taken.callback(connection.close)
            fewest = min(fewest, site.deployment.engines.count_others(own))
            time.sleep(0.5)
        site.deployment.faults.append(f"all but {fewest} connections taken")
