"""Faults while flows run: each callback runs after all of its parents, and ends once."""

from dataclasses import replace

from tests.chaos.cells.base import CELLS, Site, at_work, cell
from tests.chaos.deployment import wait_until

FAULTS = ("worker", "child", "flush", "cut", "child", "worker", "crash", "cut")
PARTS = 12
AT_ONCE = 4
"""Flows that are enqueued before each fault."""
PATIENCE = 300


@cell("flows")
def flows(site: Site) -> None:
    """Flows with callbacks: workers and children that run their parts are killed, the broker
    forgets, sessions are cut, PostgreSQL crashes."""
    keys: list[str] = []
    for fault in FAULTS[: max(4, round(len(FAULTS) * site.scale))]:
        for _ in range(AT_ONCE):
            keys.append(f"{site.load.name}:{len(keys)}")
            if not site.load.enqueue_flow(keys[-1], PARTS):
                site.problems.append(f"flow {keys[-1]} was never acknowledged")
        _act(site, fault)
        site.pause(1)
    ended = (len(keys) * (PARTS + 3),)
    wait_until(lambda: (site.deployment.number(_ENDED),) == ended, PATIENCE, "all flows end")
    site.problems.extend(_problems(site, keys))


def _act(site: Site, fault: str) -> None:
    if fault == "worker":
        site.deployment.kill(at_work(site, "chaos.part"))
    elif fault == "child":
        site.deployment.kill_child(at_work(site, "chaos.part"))
    elif fault == "crash":
        CELLS["pg-immediate"].act(replace(site, scale=0.1))
    else:
        CELLS[fault].act(replace(site, scale=0.1))


_ENDED = """
SELECT count(*) FROM tailrace_jobs_job
WHERE flow_id IS NOT NULL AND state NOT IN ('waiting', 'pending', 'running')
"""
# How each job ended, when it was first claimed, and when the last job that it waits for ended.
_JOBS = """
SELECT f.unique_key, j.flow_name, j.state, j.id,
  least(j.started_at, (
    SELECT min(a.started_at) FROM tailrace_jobs_attempt a WHERE a.job_id = j.id)),
  CASE j.flow_name
    WHEN 'callback' THEN max(j.finished_at) FILTER (WHERE j.flow_name LIKE 'part-%') OVER flow
    WHEN 'last' THEN max(j.finished_at) FILTER (WHERE j.flow_name = 'callback') OVER flow END
FROM tailrace_jobs_flow f JOIN tailrace_jobs_job j ON j.flow_id = f.id
WINDOW flow AS (PARTITION BY f.id)
"""


def _problems(site: Site, keys: list[str]) -> list[str]:
    with site.deployment.engines.connect() as database:
        rows = database.execute(_JOBS).fetchall()
    expected = [(key, name) for key in keys for name in _names()]
    problems = []
    if sorted((key, name) for key, name, *_ in rows) != sorted(expected):
        problems.append(f"{len(rows)} jobs of flows, {len(expected)} expected")
    for key, name, state, id, claimed_at, parents_ended_at in rows:
        what = f"job {id}, {name} of flow {key},"
        if state != ("skipped" if name == "alarm" else "completed"):
            problems.append(f"{what} is {state}")
        elif parents_ended_at is not None and claimed_at < parents_ended_at:
            problems.append(f"{what} ran at {claimed_at}, before {parents_ended_at}")
    effects = _effects(site)
    problems += [
        f"job {id}, {name} of flow {key}, had {effects.get(id, 0)} effects"
        for key, name, _state, id, *_ in rows
        if (effects.get(id, 0) > 0) != (name != "alarm")
    ]
    return problems


def _names() -> list[str]:
    return [*(f"part-{number}" for number in range(1, PARTS + 1)), "callback", "alarm", "last"]


def _effects(site: Site) -> dict[int, int]:
    """Return how often each job has had its effect. (An effect that doubled although no claim was
    lost is found by `verify`.)"""
    counts: dict[int, int] = {}
    for line in site.deployment.effects.read_text().splitlines():
        _at, name, id, *_ = line.split()
        if name in ("chaos.part", "chaos.callback"):
            counts[int(id)] = counts.get(int(id), 0) + 1
    return counts
