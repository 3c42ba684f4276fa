"""Faults while users import location histories."""

from dataclasses import replace
from itertools import product

from tests.chaos.cells.base import Site, at_work, cell
from tests.chaos.cells.engines import crash
from tests.chaos.deployment import wait_until
from tests.chaos.imports import PATIENCE, POINTS, Travellers

FAULTS = ("worker", "child", "flush", "crash")
STEPS = ("timeline.stage", "timeline.promote")
ROUNDS = 2


@cell("imports")
def imports(site: Site) -> None:
    """Three users import files: while one is parsed and while one is promoted, a worker and a child
    are killed, the broker forgets, PostgreSQL crashes; all of it twice."""
    deployment = site.deployment
    travellers = Travellers(deployment, round(POINTS * site.scale))
    travellers.import_undisturbed()
    travellers.start()
    faults = [*product(FAULTS, STEPS)] * ROUNDS
    count = max(len(FAULTS), round(len(faults) * site.scale))
    faults = deployment.random.sample(faults, count)
    try:
        for fault, step in faults:
            _wait_for(site, step)
            _act(site, fault, step)
            site.pause(1)
    finally:
        travellers.stop()
    site.problems.extend(travellers.problems())
    if not deployment.number(_LOST, list(STEPS)):
        site.problems.append("no fault has met an import")


def _wait_for(site: Site, step: str) -> None:
    wait_until(lambda: site.deployment.number(_RUNNING, step) > 0, PATIENCE, f"{step} runs")


def _act(site: Site, fault: str, step: str) -> None:
    if fault == "worker":
        site.deployment.kill(at_work(site, step))
    elif fault == "child":
        site.deployment.kill_child(at_work(site, step))
    elif fault == "flush":
        site.deployment.engines.flush()
        site.deployment.faults.append("flushed")
    else:
        crash(replace(site, scale=0.1))


_RUNNING = "SELECT count(*) FROM tailrace_jobs_job WHERE handler = %s AND state = 'running'"
_LOST = """
SELECT count(*) FROM tailrace_jobs_attempt a JOIN tailrace_jobs_job j ON j.id = a.job_id
WHERE j.handler = ANY(%s) AND a.outcome IN ('lost', 'failed', 'retried')
"""
